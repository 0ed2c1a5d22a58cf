// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/main/command_docs.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "curtail/base/internal/closest.h"
#include "tools/docs/program_docs.h"

namespace curtail::tool {
namespace {

std::vector<const CLI::App*> CommandsOf(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::string FlagWords(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::Option* option : FlagsOf(app)) {
    for (std::string& name : NamesOf(*option)) words.push_back(std::move(name));
  }
  return absl::StrJoin(words, " ");
}

// True if its first word may be the name of an application.
bool TakesApplication(const CLI::App& command) {
  const auto words = command.get_options([](const CLI::Option* option) { return option->get_positional(); });
  if (words.empty()) return false;
  const std::string name = words.front()->get_name(/*positional=*/true);
  return absl::StrContains(name, "APP") || absl::StrContains(name, "TARGET");
}

// `app` and the command among its words, if there is one.
std::vector<const CLI::App*> GivenCommands(const CLI::App& app) {
  std::vector<const CLI::App*> given = {&app};
  for (const CLI::App* command : CommandsOf(app)) {
    if (command->parsed()) given.push_back(command);
  }
  return given;
}

std::string CommandNames(const CLI::App& app) {
  return absl::StrJoin(CommandsOf(app), " ",
                       [](std::string* out, const CLI::App* command) { out->append(command->get_name()); });
}

// ----- the man page --------------------------------------------------------------------------------------------------

std::string CommandInRoff(const CLI::App& command) {
  std::string synopsis = absl::StrCat("curtail ", command.get_name());
  std::string words;
  for (const CLI::Option* word :
       command.get_options([](const CLI::Option* o) { return o->get_positional(); })) {
    const std::string name = word->get_name(/*positional=*/true);
    absl::StrAppend(&synopsis, word->get_required() ? " " + name : absl::StrCat(" [", name, "]"));
    absl::StrAppend(&words, ".TP\n.I ", Roff(name), Roff(word->get_description()));
  }
  std::string text =
      absl::StrCat(".SS ", Roff(synopsis), Roff(command.get_description()), words, FlagsInRoff(command));
  if (!command.get_footer().empty()) {
    absl::StrAppend(&text, ProseInRoff(command.get_footer()));
  }
  return text;
}

// ----- completion: values -------------------------------------------------------------------------------------------

// True for commands whose first word names an application that is up.
bool TakesRunning(const CLI::App& command) {
  static constexpr std::string_view kSuch[] = {"down",  "failover", "loglevel", "logs", "ps",    "restart",
                                               "scale", "status",   "switch",   "top",  "traces"};
  return std::ranges::count(kSuch, command.get_name()) > 0;
}

// A command line of a shell that lists what is up.
constexpr char kRunning[] =
    R"sh(curtail ps --json 2>/dev/null | sed -n 's/.*"application": *"\([^"]*\)".*/\1/p')sh";

// ----- completion ----------------------------------------------------------------------------------------------------

std::string BashCompletion(const CLI::App& app, const std::string& applications,
                           const std::map<std::string, std::string>& settings) {
  std::string text = absl::StrFormat(
      R"(# Completion of curtail for bash: source <(curtail completion bash)
_curtail() {
  local word command= words= names= values=
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    if [[ $word != -* ]]; then command=$word; break; fi
  done
  case $command in
    '') words='%s'; names='%s' ;;
)",
      FlagWords(app), CommandNames(app));
  for (const CLI::App* command : CommandsOf(app)) {
    const std::string names = TakesRunning(*command)          ? absl::StrCat("$(", kRunning, ")")
                              : TakesApplication(*command)    ? absl::StrCat("'", applications, "'")
                              : command->get_name() == "help" ? absl::StrCat("'", CommandNames(app), "'")
                                                              : "''";
    absl::StrAppendFormat(&text, "    %s) words='%s'; names=%s ;;\n", command->get_name(),
                          FlagWords(*command), names);
  }
  text += "  esac\n  case $command${COMP_WORDS[COMP_CWORD-1]} in\n";
  for (const CLI::App* command : CommandsOf(app)) {
    for (const CLI::Option* option : FlagsOf(*command)) {
      if (const std::string values = ValuesOf(*option); !values.empty()) {
        for (const std::string& name : NamesOf(*option))
          absl::StrAppendFormat(&text, "    %s%s) values='%s' ;;\n", command->get_name(), name, values);
      }
      // Some names are the variables of the application's topology.
      if (option->check_lname("set"))
        absl::StrAppendFormat(&text, "    %s--set) values=$(_curtail_variables) ;;\n", command->get_name());
    }
  }
  text += R"(  esac
  if [[ $values ]]; then words=$values; names=$values; fi
  if [[ ${COMP_WORDS[COMP_CWORD]} != -* ]]; then words=$names; fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}")
}
_curtail_variables() {
  case ${COMP_WORDS[2]} in
)";
  for (const auto& [application, variables] : settings) {
    absl::StrAppendFormat(&text, "    %s) echo '%s' ;;\n", application, variables);
  }
  text += R"(  esac
}
complete -o default -F _curtail curtail
)";
  return text;
}

std::string ZshCompletion(const CLI::App& app, const std::string& applications) {
  std::string text =
      "#compdef curtail\n# Completion of curtail for zsh, a file _curtail in a folder of $fpath.\n"
      "_curtail() {\n  local -a commands\n  commands=(\n";
  for (const CLI::App* command : CommandsOf(app)) {
    absl::StrAppend(&text, "    ",
                    Quoted(absl::StrCat(command->get_name(), ":", ZshText(command->get_description()))),
                    "\n");
  }
  text +=
      "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
      "  shift words; (( CURRENT-- ))\n  case $words[1] in\n";
  for (const CLI::App* command : CommandsOf(app)) {
    absl::StrAppend(&text, "    ", command->get_name(), ")\n      _arguments", ZshFlags(*command));
    const std::string words =
        TakesRunning(*command) ? absl::StrCat("*:what is up:{ compadd $(", kRunning, ") }")
        : TakesApplication(*command)
            ? absl::StrCat("*:application or file:{ compadd ", applications, "; _files }")
            : "*:file:_files";
    absl::StrAppend(&text, " \\\n        ", Quoted(words), "\n      ;;\n");
  }
  return text + "  esac\n}\n_curtail \"$@\"\n";
}

std::string FishCompletion(const CLI::App& app, const std::string& applications) {
  std::string text = "# Completion of curtail for fish: curtail completion fish | source\n";
  for (const CLI::App* command : CommandsOf(app)) {
    absl::StrAppend(&text, "complete -c curtail -n __fish_use_subcommand -f -a ", command->get_name(), " -d ",
                    Quoted(command->get_description()), "\n");
    const std::string of =
        absl::StrCat("complete -c curtail -n '__fish_seen_subcommand_from ", command->get_name(), "'");
    if (TakesRunning(*command))
      absl::StrAppend(&text, of, " -a ", Quoted(absl::StrCat("(", kRunning, ")")), "\n");
    else if (TakesApplication(*command)) absl::StrAppend(&text, of, " -a '", applications, "'\n");
    absl::StrAppend(&text, FishFlags(*command, of));
  }
  return text;
}

}  // namespace

namespace {

// "; did you mean \"load\"?" for "lode": the first name that has all letters of `wrong` but one; else nothing.
std::string SameLetters(const std::string& wrong, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (name.size() != wrong.size() || name.size() < 4 || name.front() != wrong.front()) continue;
    std::string left = wrong;
    for (const char c : name) {
      if (const size_t at = left.find(c); at != left.npos) left.erase(at, 1);
    }
    if (left.size() <= 1) return absl::StrCat("; did you mean \"", name, "\"?");
  }
  return "";
}

// The error of words without a command; empty where flags alone are enough.
std::string Unfinished(const CLI::App& app, const std::vector<std::string>& words) {
  bool ends = false;  // --help, --version
  for (const std::string& word : words) {
    const CLI::Option* const flag = app.get_option_no_throw(word.substr(0, word.find('=')));
    if (flag == nullptr) return UnknownWord({word}, {&app});
    ends |= word != "--quiet";
  }
  return ends ? "" : "name a command";
}

}  // namespace

std::string ResolveHelp(const CLI::App& app, std::vector<std::string>* words) {
  const auto first = std::find_if(words->begin(), words->end(),
                                  [](const std::string& word) { return !word.starts_with("-"); });
  if (first == words->end()) return Unfinished(app, *words);
  const bool help = *first == "help";
  auto named = help ? std::next(first) : first;
  if (named != words->end() && named->starts_with("-")) named = words->end();  // "help --help"
  const std::vector<std::string> names = absl::StrSplit(CommandNames(app), ' ');
  if (named != words->end() && std::find(names.begin(), names.end(), *named) == names.end()) {
    std::string meant = internal::DidYouMean(*named, names);
    if (meant.empty()) meant = SameLetters(*named, names);
    return absl::StrCat("there is no command \"", *named, "\"", meant);
  }
  if (!help) return "";
  const bool whole = named == words->end() || *named == "help";
  *words = whole ? std::vector<std::string>{"--help"} : std::vector<std::string>{*named, "--help"};
  return "";
}

std::string UnknownWord(const CLI::App& app) {
  for (const CLI::App* command : GivenCommands(app)) {
    if (command->get_name() == "man" || command->get_name() == "version")
      return absl::StrCat(command->get_name(),
                          " takes no words; curtail help COMMAND is the help of a command");
  }
  return UnknownWord(app.remaining(/*recurse=*/true), GivenCommands(app));
}

bool LacksRunning(const CLI::App& app, std::string_view error) {
  const CLI::App& command = *GivenCommands(app).back();
  if (!TakesRunning(command)) return false;
  const auto words = command.get_options([](const CLI::Option* option) { return option->get_positional(); });
  return error == absl::StrCat(words.front()->get_name(/*positional=*/true), " is required");
}

std::string HelpHint(const CLI::App& app) {
  std::string command;
  for (const CLI::App* of : GivenCommands(app)) command += of->get_name() + " ";
  return absl::StrCat("see ", command, "--help");
}

std::string ManPage(const CLI::App& app, std::string_view version) {
  std::string text = absl::StrCat(
      ".TH CURTAIL 1 \"\" \"curtail ", std::string(version), "\"\n.ad l\n.SH NAME\n",
      Roff("curtail - microservices that choose their own threading, and the tools to measure them"),
      ".SH SYNOPSIS\n.B curtail\n[OPTIONS] COMMAND [...]\n.SH OPTIONS\n", FlagsInRoff(app), ".SH COMMANDS\n");
  for (const CLI::App* command : CommandsOf(app)) text += CommandInRoff(*command);
  return absl::StrCat(text, ".SH EXAMPLES\n", ProseInRoff(app.get_footer()));
}

std::string CompletionScript(const CLI::App& app, std::string_view shell,
                             const std::vector<std::string>& applications,
                             const std::map<std::string, std::string>& settings) {
  const std::string names = absl::StrJoin(applications, " ");
  if (shell == "zsh") return ZshCompletion(app, names);
  return shell == "fish" ? FishCompletion(app, names) : BashCompletion(app, names, settings);
}

}  // namespace curtail::tool
