// SPDX-License-Identifier: Apache-2.0
//
// proc_sample.h - what a process has consumed so far, as /proc tells it.
//
// A sample is the sum over the threads that live at that moment, so differences of two samples are whole only
// for processes whose threads live as long as they do; curtail's servers start all of theirs at the start.
// Reading takes some 20 us a thread. Thread safety: pure functions, any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

namespace curtail::models {

struct ProcSample {
  int threads = 0;
  uint64_t voluntary_switches = 0;    // the thread waited for something
  uint64_t involuntary_switches = 0;  // another thread took its CPU
  uint64_t cpu_ns = 0;                // on a CPU, user and kernel
  uint64_t runqueue_ns = 0;           // ready to run, waiting for a CPU

  uint64_t switches() const { return voluntary_switches + involuntary_switches; }
};

// Adds one thread: the text of /proc/PID/task/TID/status and of .../schedstat. INVALID_ARGUMENT when a field
// is missing; `sample` is unchanged then.
absl::Status AddThread(std::string_view status, std::string_view schedstat, ProcSample* sample);

// NOT_FOUND when there is no such process. Threads that end while it reads are left out.
absl::StatusOr<ProcSample> SampleProcess(pid_t pid);

// `after` less `before`, never below zero.
ProcSample Difference(const ProcSample& before, const ProcSample& after);

}  // namespace curtail::models
