// SPDX-License-Identifier: Apache-2.0
//
// yaml_text.h - reads a YAML file whose errors name their line: "shop.yaml:7: what is wrong".
//
// For files that this repository defines the form of. A reader calls Fail() at the node that is wrong.
#pragma once

#include <yaml-cpp/yaml.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace curtail::deploy {

// Fail() throws it: where a node is and what is wrong with it. It does not leave ReadYaml().
struct Wrong {
  YAML::Mark mark;
  std::string what;
};

// Ends ReadYaml() with an error at the line of `at`. REQUIRES: called by its reader, or under a catch of Wrong.
[[noreturn]] void Fail(const YAML::Node& at, std::string what);

// The text of a scalar; Fail() at anything else, which it calls `what`.
std::string Text(const YAML::Node& node, std::string_view what);
// A list of texts, or one text.
std::vector<std::string> Texts(const YAML::Node& node, std::string_view what);
// A command: a list of its words, or one text, in which quotes keep words together as a shell does.
std::vector<std::string> Words(const YAML::Node& node, std::string_view what);
// true or false.
bool Truth(const YAML::Node& node, std::string_view what);
// A number that is 0, or from `least` to `most`; `rule` says so in the error.
double Amount(const YAML::Node& node, std::string_view what, double least, double most,
              std::string_view rule);
// A map of names to texts; Fail() at a name that it has twice.
std::map<std::string, std::string> Values(const YAML::Node& node, std::string_view what);
// The entries of a map, in the order of the text, then those that merge keys (<<) add.
std::vector<std::pair<YAML::Node, YAML::Node>> Entries(const YAML::Node& map);

// The result of `read` for a text of 1 MiB at most; `origin` is the file's name. Errors: its own; INVALID_ARGUMENT with
// the line of what Fail(), or yaml-cpp, found.
absl::Status ReadYaml(std::string_view yaml, std::string_view origin,
                      const std::function<absl::Status(const YAML::Node& root)>& read);

}  // namespace curtail::deploy
