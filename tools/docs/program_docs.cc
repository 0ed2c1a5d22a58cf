// SPDX-License-Identifier: Apache-2.0
#include "tools/docs/program_docs.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "curtail/base/internal/closest.h"

namespace curtail::tool {
namespace {

// The name of a flag's value: the words in capitals with which its description begins, "NAME=VALUE: a variable", or VALUE.
// They leave the description.
std::string TakeValueName(const CLI::Option& option, std::string* description) {
  if (!TakesValue(option)) return "";
  std::string name = "VALUE";
  const size_t colon = description->find(": ");
  const std::string begin = description->substr(0, std::min(colon, description->size()));
  if (colon != std::string::npos &&
      begin.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ=,.>:") == std::string::npos) {
    name = begin;
    description->erase(0, colon + 2);
  }
  return option.get_items_expected_min() == 0 ? absl::StrCat(" [", name, "]") : absl::StrCat(" ", name);
}

// The words of a program, which are files or addresses.
std::string WordsInRoff(const CLI::App& app, std::string* synopsis) {
  std::string words;
  for (const CLI::Option* word : app.get_options([](const CLI::Option* o) { return o->get_positional(); })) {
    const std::string name = word->get_name(/*positional=*/true);
    absl::StrAppend(synopsis, word->get_required() ? " " + name : absl::StrCat(" [", name, "]"));
    absl::StrAppend(&words, ".TP\n.I ", Roff(name), Roff(word->get_description()));
  }
  return words;
}

// Names of other load generators, and the flags here.
constexpr std::pair<std::string_view, std::string_view> kElsewhere[] = {{"--rate", "--rps"},
                                                                        {"--concurrency", "--closed"}};

// Of a flag that `names` lacks: "; did you mean \"--rps\"?", or nothing.
std::string FlagHint(std::string_view wrong, const std::vector<std::string>& names) {
  for (const auto& [elsewhere, here] : kElsewhere) {
    if (wrong == elsewhere && std::ranges::count(names, here) > 0)
      return absl::StrCat("; did you mean \"", std::string(here), "\"?");
  }
  return internal::DidYouMean(wrong, names);
}

}  // namespace

std::vector<const CLI::Option*> FlagsOf(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return option->nonpositional(); });
}

bool TakesValue(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

std::vector<std::string> NamesOf(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

std::string UnknownWord(const std::vector<std::string>& words, const std::vector<const CLI::App*>& apps) {
  std::vector<std::string> names;
  for (const CLI::App* of : apps) {
    for (const CLI::Option* flag : FlagsOf(*of)) {
      for (std::string& name : NamesOf(*flag)) names.push_back(std::move(name));
    }
  }
  // A value that follows an unknown flag is not the mistake.
  const auto flag =
      std::find_if(words.begin(), words.end(), [](const std::string& word) { return word.starts_with('-'); });
  const std::string& wrong = flag == words.end() ? words.front() : *flag;
  const bool may_be_near = wrong.starts_with("--");  // all short ones are near each other
  return absl::StrCat(wrong, ": unknown flag or word",
                      may_be_near ? FlagHint(wrong.substr(0, wrong.find('=')), names) : "");
}

std::string Roff(std::string_view text) {
  std::string out;
  for (const absl::string_view line : absl::StrSplit(std::string(text), '\n')) {
    const bool control = absl::StartsWith(line, ".") || absl::StartsWith(line, "'");
    absl::StrAppend(&out, control ? "\\&" : "", absl::StrReplaceAll(line, {{"\\", "\\e"}, {"-", "\\-"}}),
                    "\n");
  }
  return out;
}

std::string ProseInRoff(std::string_view text) {
  std::string out;
  bool kept = false;
  for (const absl::string_view line : absl::StrSplit(std::string(text), '\n')) {
    const bool keep = absl::StartsWith(line, "  ");
    if (keep != kept) absl::StrAppend(&out, keep ? ".nf\n" : ".fi\n.PP\n");
    kept = keep;
    absl::StrAppend(&out, line.empty() ? ".PP\n" : Roff(std::string(line)));
  }
  return absl::StrCat(".PP\n", out, kept ? ".fi\n" : "");
}

std::string FlagsInRoff(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : FlagsOf(app)) {
    std::string description = option->get_description();
    const std::string value = TakeValueName(*option, &description);
    absl::StrAppend(&text, ".TP\n.B ", Roff(absl::StrCat(absl::StrJoin(NamesOf(*option), ", "), value)));
    const std::string usual = option->get_default_str();
    absl::StrAppend(&text,
                    Roff(absl::StrCat(description, usual.empty() ? "" : absl::StrCat(" [", usual, "]"))));
  }
  return text;
}

std::string ValuesOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();  // "TEXT:{kubernetes,helm,compose}"
  const size_t begin = type.find('{'), end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos) return "";
  const std::string set = type.substr(begin + 1, end - begin - 1);
  return absl::StrReplaceAll(set, {{",", " "}});
}

std::string Quoted(std::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(std::string(text), {{"\n", " "}, {"'", "'\\''"}}), "'");
}

std::string ZshText(std::string_view text) {
  return absl::StrReplaceAll(std::string(text), {{"[", "("}, {"]", ")"}, {":", "\\:"}});
}

std::string ZshFlags(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : FlagsOf(app)) {
    for (const std::string& name : NamesOf(*option)) {
      const std::string values = ValuesOf(*option);
      const std::string value = !TakesValue(*option) ? ""
                                : values.empty()     ? ":value:_files"
                                                     : absl::StrCat(":value:(", values, ")");
      absl::StrAppend(&text, " \\\n        ",
                      Quoted(absl::StrCat("*", name, "[", ZshText(option->get_description()), "]", value)));
    }
  }
  return text;
}

std::string FishFlags(const CLI::App& app, std::string_view before) {
  std::string text;
  for (const CLI::Option* option : FlagsOf(app)) {
    text.append(before);
    for (const std::string& name : option->get_snames()) absl::StrAppend(&text, " -s ", name);
    for (const std::string& name : option->get_lnames()) absl::StrAppend(&text, " -l ", name);
    const std::string values = ValuesOf(*option);
    absl::StrAppend(&text, TakesValue(*option) ? " -r" : "",
                    values.empty() ? "" : absl::StrCat(" -f -a '", values, "'"), " -d ",
                    Quoted(option->get_description()), "\n");
  }
  return text;
}

std::string ProgramManPage(const CLI::App& app, std::string_view name, std::string_view version) {
  const std::string program(name);
  std::string synopsis = "[OPTIONS]";
  const std::string words = WordsInRoff(app, &synopsis);
  return absl::StrCat(".TH ", absl::AsciiStrToUpper(program), " 1 \"\" \"curtail ", std::string(version),
                      "\"\n.ad l\n.SH NAME\n", Roff(absl::StrCat(program, " - ", app.get_description())),
                      ".SH SYNOPSIS\n.B ", Roff(program), Roff(synopsis), ".SH OPTIONS\n", words,
                      FlagsInRoff(app), ".SH EXAMPLES\n", ProseInRoff(app.get_footer()));
}

std::string ProgramCompletion(const CLI::App& app, std::string_view name, std::string_view shell) {
  const std::string program(name);
  if (shell == "zsh")
    return absl::StrCat("#compdef ", program, "\n_arguments", ZshFlags(app),
                        " \\\n        '*:file:_files'\n");
  if (shell == "fish") return FishFlags(app, absl::StrCat("complete -c ", program));
  if (shell != "bash") return "";
  std::vector<std::string> words;
  for (const CLI::Option* option : FlagsOf(app)) {
    for (std::string& word : NamesOf(*option)) words.push_back(std::move(word));
  }
  return absl::StrCat("complete -o default -W '", absl::StrJoin(words, " "), "' ", program, "\n");
}

}  // namespace curtail::tool
