// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. /proc/self/cgroup names the process's group in each hierarchy, and /proc/self/mountinfo says where a hierarchy is
// mounted, and which group is seen there as its top. A container often sees its own group as the top and cannot
// name those above; the limit of its pod lies higher and is not seen then, but the container's own is.
#include "curtail/base/internal/control_groups.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <vector>

namespace curtail::internal {
namespace {

std::vector<std::string> Split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) parts.push_back(part);
  return parts;
}

bool Has(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The group of this process in the hierarchy of v1 that has the controller, or in that of v2; empty where there is none.
std::string OwnGroup(const std::string& root, std::string_view controller, bool v2) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (v2 ? controllers.empty() : Has(Split(controllers, ','), controller)) return line.substr(second + 1);
  }
  return {};
}

// The least limit of the process's group and those above, in one mounted hierarchy.
double LimitUnder(const std::string& mount, const std::string& top, const std::string& own, bool v2,
                  const GroupLimit& limit_in) {
  std::string below = own;
  // A group that the mount does not show: its top is all that can be seen.
  if (top != "/") below = own.starts_with(top) ? own.substr(top.size()) : "";
  if (below.find("..") != below.npos) below.clear();
  double least = limit_in(mount, v2);
  std::filesystem::path group = mount;
  for (const std::string& name : Split(below, '/')) {
    if (name.empty()) continue;
    group /= name;
    least = std::min(least, limit_in(group, v2));
  }
  return least;
}

}  // namespace

double LeastLimit(const std::string& root, std::string_view controller, const GroupLimit& limit_in) {
  double least = std::numeric_limits<double>::infinity();
  std::ifstream mounts(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    // ID PARENT DEVICE TOP MOUNT OPTIONS [TAG...] - TYPE SOURCE OPTIONS
    const std::vector<std::string> words = Split(line, ' ');
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 6 || words.end() - dash < 4) continue;
    const bool v2 = dash[1] == "cgroup2";
    if (!v2 && (dash[1] != "cgroup" || !Has(Split(dash[3], ','), controller))) continue;
    least =
        std::min(least, LimitUnder(root + words[4], words[3], OwnGroup(root, controller, v2), v2, limit_in));
  }
  return least;
}

}  // namespace curtail::internal
