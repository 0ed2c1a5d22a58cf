// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. Our templates have an action that removes the white space before it ("{{- ") on a line of its own only, and
// all other actions within a line. So a template can be read line by line.
#include "tools/curtail/render/helm_testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <regex>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace curtail::tool {
namespace {

// ".Values.tracing.to", or "(index .Values.services.cache.addresses 1)".
YAML::Node Find(absl::string_view path, const YAML::Node& known) {
  std::optional<size_t> index;
  if (absl::ConsumePrefix(&path, "(index ") && absl::ConsumeSuffix(&path, ")")) {
    const std::vector<std::string> words = absl::StrSplit(path, ' ');
    index.emplace();
    EXPECT_TRUE(words.size() == 2 && absl::SimpleAtoi(words[1], &*index)) << path;
    path = path.substr(0, path.find(' '));
  }
  EXPECT_TRUE(absl::ConsumePrefix(&path, ".")) << path;
  YAML::Node found = known;
  for (const absl::string_view key : absl::StrSplit(path, '.')) found.reset(found[std::string(key)]);
  if (index) found.reset(found[*index]);
  EXPECT_TRUE(found.IsDefined()) << "the chart has no value " << path;
  return found;
}

// A quoted text has the tag "!".
bool IsTrue(const YAML::Node& value) {
  if (!value.IsScalar()) return value.size() > 0;
  if (value.Tag() == "!") return !value.Scalar().empty();
  return value.Scalar() != "0" && value.Scalar() != "false";
}

// An action within a line: a path or a text, and functions after bars.
std::string Evaluate(absl::string_view action, const YAML::Node& known) {
  if (action == R"("{{")") return "{{";
  std::string value;
  for (absl::string_view part : absl::StrSplit(action, " | ")) {
    if (part.data() == action.data()) {
      value = Find(part, known).Scalar();
    } else if (absl::ConsumePrefix(&part, "regexFind \"") && absl::ConsumeSuffix(&part, "\"")) {
      std::smatch match;
      const std::string text = value;
      value = std::regex_search(text, match, std::regex(std::string(part))) ? match.str() : "";
    } else if (absl::ConsumePrefix(&part, "default \"") && absl::ConsumeSuffix(&part, "\"")) {
      if (value.empty()) value = std::string(part);
    } else {
      ADD_FAILURE() << "unknown function " << part;
    }
  }
  return value;
}

std::string FillInLine(absl::string_view line, const YAML::Node& known) {
  std::string out;
  for (size_t open; (open = line.find("{{ ")) != line.npos;) {
    const size_t close = line.find(" }}", open);
    if (close == line.npos) break;
    absl::StrAppend(&out, line.substr(0, open), Evaluate(line.substr(open + 3, close - open - 3), known));
    line.remove_prefix(close + 3);
  }
  return absl::StrCat(out, line, "\n");
}

// "toYaml .Values.imagePullSecrets | nindent 8".
std::string Block(absl::string_view action, const YAML::Node& known) {
  const std::vector<absl::string_view> parts = absl::StrSplit(action, " | nindent ");
  size_t indent = 0;
  absl::string_view path = parts[0];
  if (parts.size() != 2 || !absl::ConsumePrefix(&path, "toYaml ") || !absl::SimpleAtoi(parts[1], &indent)) {
    ADD_FAILURE() << "unknown action " << action;
    return "";
  }
  const std::string spaces(indent, ' ');
  return absl::StrCat(spaces, absl::StrReplaceAll(YAML::Dump(Find(path, known)), {{"\n", "\n" + spaces}}),
                      "\n");
}

}  // namespace

std::string FillInTemplate(const std::string& text, const YAML::Node& known) {
  std::string out;
  std::vector<bool> conditions;  // of each `if` that is open
  for (const absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
    const bool shown = std::count(conditions.begin(), conditions.end(), false) == 0;
    absl::string_view action = absl::StripLeadingAsciiWhitespace(line);
    if (!absl::ConsumePrefix(&action, "{{- ") || !absl::ConsumeSuffix(&action, " }}")) {
      if (shown) out += FillInLine(line, known);
    } else if (absl::ConsumePrefix(&action, "if ")) {
      const bool wanted = !absl::ConsumePrefix(&action, "not ");
      conditions.push_back(IsTrue(Find(action, known)) == wanted);
    } else if (action == "end" && !conditions.empty()) {
      conditions.pop_back();
    } else if (shown) {
      out += Block(action, known);
    }
  }
  EXPECT_TRUE(conditions.empty()) << "an `if` without `end`";
  return out;
}

}  // namespace curtail::tool
