// SPDX-License-Identifier: Apache-2.0
//
// cpus.h - the CPUs that this process may use: its affinity mask, within the CPU time that
// its control groups grant, as a container's CPU limit does.
//
// Each call but ProcessCpuTime() reads files of /proc and of the control groups, so call it when
// something is set up. Any thread. A limit that is changed later is seen by later calls only.
#pragma once

#include <string>

#include "curtail/base/clock.h"

namespace curtail {

// The CPU time that the control groups grant, in CPUs: 0.5 is half of the time of one CPU. It is
// the least of the process's own group and of the groups above it, in cgroup v1 (cpu.cfs_quota_us)
// and v2 (cpu.max). Infinite without a limit. Tests give a `root`, which stands before each path.
double CpuQuota(const std::string& root = "");

// The CPUs by which threads and pollers are counted, at least 1: the affinity mask's, and no more
// than the whole CPUs of CpuQuota(). A quota of 2.5 counts as 2: a third busy thread would have the
// group stopped for the rest of each period.
int UsableCpus();

// The CPU time that the process can use, in CPUs, not rounded.
double UsableCpuTime();

// The CPU time of all threads of this process so far.
Nanos ProcessCpuTime();

}  // namespace curtail
