// SPDX-License-Identifier: Apache-2.0
#include "curtail/deploy/internal/yaml_text.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace curtail::deploy {
namespace {

using NodeList = std::vector<std::pair<YAML::Node, YAML::Node>>;

constexpr size_t kMaxBytes = 1u << 20;
constexpr size_t kMaxEntries = 10'000;  // of a map, with all that is merged into it
constexpr int kMaxMerges = 16;          // within each other

bool IsMergeKey(const YAML::Node& key) { return key.IsScalar() && key.Scalar() == "<<" && key.Tag() == "?"; }

bool Has(const NodeList& entries, const YAML::Node& key) {
  return key.IsScalar() && std::any_of(entries.begin(), entries.end(), [&key](const auto& entry) {
           return entry.first.IsScalar() && entry.first.Scalar() == key.Scalar();
         });
}

// Adds the entries of a map, then those that `<<: *anchor` or `<<: [*a, *b]` merge into it and that are not there yet.
void Merge(const YAML::Node& map, int depth, size_t* merges, NodeList* entries) {
  NodeList merged;
  const bool first = entries->empty();
  for (auto it = map.begin(); it != map.end(); ++it) {
    if (IsMergeKey(it->first)) {
      merged.emplace_back(it->first, it->second);
    } else if (first || !Has(*entries, it->first)) {
      entries->emplace_back(it->first, it->second);
    }
    if (entries->size() > kMaxEntries) Fail(it->first, "too many entries");
  }
  for (const auto& [key, value] : merged) {
    if (depth == kMaxMerges) Fail(key, "too many merges (<<) within each other");
    std::vector<YAML::Node> bases;
    if (value.IsSequence()) {
      for (const YAML::Node& base : value) bases.push_back(base);
    } else {
      bases.push_back(value);
    }
    for (const YAML::Node& base : bases) {
      if (!base.IsMap()) Fail(key, "<< takes a map, or a list of maps, such as *anchor");
      if (++*merges > kMaxEntries) Fail(key, "too many merges (<<)");
      Merge(base, depth + 1, merges, entries);
    }
  }
}

// The line, counted from 0, of the first `{` or `[` that is not closed; -1 if all are.
int UnclosedLine(std::string_view yaml) {
  std::vector<int> open;
  int line = 0;
  char quote = 0;
  bool comment = false;
  for (size_t i = 0; i < yaml.size(); ++i) {
    const char c = yaml[i];
    const char before = i == 0 ? ' ' : yaml[i - 1];
    const bool starts = std::string_view(" \t\n,[{").find(before) != std::string_view::npos;
    if (c == '\n') {
      ++line;
      comment = false;
    } else if (comment) {
      continue;
    } else if (quote != 0) {
      if (c == quote && before != '\\') quote = 0;
    } else if (c == '#' && starts) {
      comment = true;
    } else if ((c == '"' || c == '\'') && starts) {
      quote = c;
    } else if ((c == '{' || c == '[') && starts) {
      open.push_back(line);
    } else if ((c == '}' || c == ']') && !open.empty()) {
      open.pop_back();
    }
  }
  return open.empty() ? -1 : open.front();
}

// The line, counted from 0, of the first one that a tab indents; -1 if there is none.
int TabbedLine(std::string_view yaml) {
  int line = 0;
  bool indents = true;
  for (const char c : yaml) {
    if (c == '\t' && indents) return line;
    if (c == '\n') ++line;
    indents = c == '\n' || (indents && c == ' ');
  }
  return -1;
}

// Says what is wrong in the text, where yaml-cpp says but how its own reading ended. It sets the line to that of the cause.
std::string CauseOf(std::string_view yaml, std::string what, int* at) {
  if (const int line = TabbedLine(yaml); line >= 0 && line <= *at) {
    *at = line;
    return "a tab indents this line; YAML takes spaces alone";
  }
  if (!what.starts_with("end of ")) return what;
  if (const int line = UnclosedLine(yaml); line >= 0) {
    *at = line;
    return "a { or [ is not closed";
  }
  return "no line above is indented like this one; align it with the keys beside it";
}

}  // namespace

void Fail(const YAML::Node& at, std::string what) { throw Wrong{at.Mark(), std::move(what)}; }

std::string Text(const YAML::Node& node, std::string_view what) {
  if (!node.IsScalar()) Fail(node, absl::StrCat(std::string(what), " must be one value"));
  return node.Scalar();
}

std::vector<std::pair<YAML::Node, YAML::Node>> Entries(const YAML::Node& map) {
  std::vector<std::pair<YAML::Node, YAML::Node>> entries;
  size_t merges = 0;
  Merge(map, 0, &merges, &entries);
  return entries;
}

std::vector<std::string> Texts(const YAML::Node& node, std::string_view what) {
  if (!node.IsSequence()) return {Text(node, what)};
  std::vector<std::string> texts;
  for (const YAML::Node& item : node) texts.push_back(Text(item, what));
  return texts;
}

bool Truth(const YAML::Node& node, std::string_view what) {
  const std::string text = Text(node, what);
  if (text != "true" && text != "false")
    Fail(node, absl::StrCat(std::string(what), " must be true or false"));
  return text == "true";
}

double Amount(const YAML::Node& node, std::string_view what, double least, double most,
              std::string_view rule) {
  double value = 0;
  if (!node.IsScalar() || !absl::SimpleAtod(node.Scalar(), &value) || !(value == 0 || value >= least) ||
      value > most) {
    Fail(node, absl::StrCat(std::string(what), " must be ", std::string(rule),
                            node.IsScalar() ? absl::StrCat(", not ", node.Scalar()) : ""));
  }
  return value;
}

std::map<std::string, std::string> Values(const YAML::Node& node, std::string_view what) {
  if (!node.IsMap()) Fail(node, absl::StrCat(std::string(what), " must be NAME: VALUE lines"));
  std::map<std::string, std::string> values;
  for (const auto& [key, value] : Entries(node)) {
    if (!values.emplace(Text(key, what), Text(value, key.Scalar())).second)
      Fail(key, absl::StrCat(std::string(what), " has ", key.Scalar(), " twice; name it once"));
  }
  return values;
}

std::vector<std::string> Words(const YAML::Node& node, std::string_view what) {
  if (node.IsSequence()) return Texts(node, what);
  std::vector<std::string> words;
  bool within = false;  // a word has begun
  char quote = 0;
  for (const char c : Text(node, what)) {
    if (quote == 0 && absl::ascii_isspace(static_cast<unsigned char>(c))) {
      within = false;
      continue;
    }
    if (!within) words.emplace_back();
    within = true;
    if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else {
      words.back() += c;
    }
  }
  if (quote != 0)
    Fail(node, absl::StrCat(std::string(what), ": a ", std::string(1, quote), " is not closed"));
  return words;
}

absl::Status ReadYaml(std::string_view yaml, std::string_view origin,
                      const std::function<absl::Status(const YAML::Node& root)>& read) {
  if (yaml.size() > kMaxBytes) {
    return absl::InvalidArgumentError(absl::StrCat(std::string(origin), ": longer than 1 MiB"));
  }
  // A file without a node has no mark.
  const auto error = [origin](const YAML::Mark& mark, const std::string& what) {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(origin), ":", std::max(mark.line, 0) + 1, ": ", what));
  };
  try {
    return read(YAML::Load(std::string(yaml)));
  } catch (const Wrong& wrong) {
    return error(wrong.mark, wrong.what);
  } catch (const YAML::Exception& wrong) {
    YAML::Mark mark = wrong.mark;
    const std::string what = CauseOf(yaml, wrong.msg, &mark.line);
    return error(mark, what);
  }
}

}  // namespace curtail::deploy
