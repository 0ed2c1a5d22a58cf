// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. /proc/self/cgroup names the process's group in each hierarchy, and /proc/self/mountinfo says where a hierarchy is
// mounted, and which group is seen there as its top. A container often sees its own group as the top and cannot
// name those above; the limit of its pod lies higher and is not seen then, but the container's own is.
#include "curtail/base/cpus.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string_view>
#include <vector>

namespace curtail {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

std::vector<std::string> Split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) parts.push_back(part);
  return parts;
}

bool Has(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The group of this process that schedules CPUs, in a hierarchy of v1 or in that of v2; empty where there is none.
std::string OwnGroup(const std::string& root, bool v2) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (v2 ? controllers.empty() : Has(Split(controllers, ','), "cpu")) return line.substr(second + 1);
  }
  return {};
}

// The limit of the group whose folder this is.
double LimitIn(const std::filesystem::path& group, bool v2) {
  double period = 0;
  std::string quota;
  if (v2) {
    std::ifstream(group / "cpu.max") >> quota >> period;  // "50000 100000" or "max 100000"
  } else {
    std::ifstream(group / "cpu.cfs_quota_us") >> quota;  // -1: no limit
    std::ifstream(group / "cpu.cfs_period_us") >> period;
  }
  const double us = std::strtod(quota.c_str(), nullptr);
  return us > 0 && std::isfinite(us) && period > 0 ? us / period : kNoLimit;
}

// The least limit of the process's group and those above, in one mounted hierarchy.
double LimitUnder(const std::string& mount, const std::string& top, const std::string& own, bool v2) {
  std::string below = own;
  // A group that the mount does not show: its top is all that can be seen.
  if (top != "/") below = own.starts_with(top) ? own.substr(top.size()) : "";
  if (below.find("..") != below.npos) below.clear();
  double least = LimitIn(mount, v2);
  std::filesystem::path group = mount;
  for (const std::string& name : Split(below, '/')) {
    if (name.empty()) continue;
    group /= name;
    least = std::min(least, LimitIn(group, v2));
  }
  return least;
}

int AffinityCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

}  // namespace

double CpuQuota(const std::string& root) {
  double least = kNoLimit;
  std::ifstream mounts(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    // ID PARENT DEVICE TOP MOUNT OPTIONS [TAG...] - TYPE SOURCE OPTIONS
    const std::vector<std::string> words = Split(line, ' ');
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 6 || words.end() - dash < 4) continue;
    const bool v2 = dash[1] == "cgroup2";
    if (!v2 && (dash[1] != "cgroup" || !Has(Split(dash[3], ','), "cpu"))) continue;
    least = std::min(least, LimitUnder(root + words[4], words[3], OwnGroup(root, v2), v2));
  }
  return least;
}

double UsableCpuTime() { return std::min<double>(AffinityCpus(), CpuQuota()); }

Nanos ProcessCpuTime() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + Nanos(time.tv_nsec);
}

int UsableCpus() { return std::max(1, static_cast<int>(UsableCpuTime())); }

}  // namespace curtail
