// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/cpus.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "curtail/base/internal/control_groups.h"

namespace curtail {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// The quota of the group whose folder this is, in CPUs.
double QuotaIn(const std::filesystem::path& group, bool v2) {
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

int AffinityCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

}  // namespace

double CpuQuota(const std::string& root) { return internal::LeastLimit(root, "cpu", QuotaIn); }

double UsableCpuTime() { return std::min<double>(AffinityCpus(), CpuQuota()); }

Nanos ProcessCpuTime() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + Nanos(time.tv_nsec);
}

int UsableCpus() { return std::max(1, static_cast<int>(UsableCpuTime())); }

}  // namespace curtail
