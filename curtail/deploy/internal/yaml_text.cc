// SPDX-License-Identifier: Apache-2.0
#include "curtail/deploy/internal/yaml_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace curtail::deploy {
namespace {

constexpr size_t kMaxBytes = 1u << 20;

}  // namespace

void Fail(const YAML::Node& at, std::string what) { throw Wrong{at.Mark(), std::move(what)}; }

std::string Text(const YAML::Node& node, std::string_view what) {
  if (!node.IsScalar()) Fail(node, absl::StrCat(std::string(what), " must be one value"));
  return node.Scalar();
}

std::vector<std::pair<YAML::Node, YAML::Node>> Entries(const YAML::Node& map) {
  std::vector<std::pair<YAML::Node, YAML::Node>> entries;
  for (auto it = map.begin(); it != map.end(); ++it) entries.emplace_back(it->first, it->second);
  return entries;
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
    return error(wrong.mark, wrong.msg);
  }
}

}  // namespace curtail::deploy
