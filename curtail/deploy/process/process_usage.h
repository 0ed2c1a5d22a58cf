// SPDX-License-Identifier: Apache-2.0
//
// process_usage.h - what a process has consumed, as the kernel reports it.
#pragma once

#include <sys/types.h>

#include <optional>

#include "curtail/base/clock.h"

namespace curtail::deploy {

// Since the process started, all threads together.
struct ProcessUsage {
  double cpu_us = 0;
  double user_ticks = 0;  // coarse: the kernel samples which half the time goes to
  double system_ticks = 0;
  double resident_mib = 0;      // what it holds in memory now
  double context_switches = 0;  // without counters: of the threads that still run
  // Retired instructions; nothing without counters, or where the kernel does not let us count.
  std::optional<double> user_instructions;
  std::optional<double> kernel_instructions;
};

// User and system time of a process so far; zero when it cannot be read.
Nanos CpuOf(pid_t pid);
// Of its memory, what is in the machine's; zero when it cannot be read.
double ResidentMib(pid_t pid);
// The most that ResidentMib() has been since the process started; zero when it cannot be read.
double PeakResidentMib(pid_t pid);

// The kernel's counters of one process. Thread-compatible.
class ProcessCounters {
 public:
  ProcessCounters() = default;  // counts nothing
  ~ProcessCounters();
  ProcessCounters(const ProcessCounters&) = delete;
  ProcessCounters& operator=(const ProcessCounters&) = delete;

  // Counts for `pid` and the threads that it starts from now on, as far as the kernel lets us. Call
  // at most once.
  void Attach(pid_t pid);
  // Of `pid`, to which the counters are attached if they are.
  ProcessUsage Read(pid_t pid) const;

 private:
  // Descriptors of perf_event_open(2), -1 where there is none.
  int user_instructions_ = -1;
  int kernel_instructions_ = -1;
  int context_switches_ = -1;
};

}  // namespace curtail::deploy
