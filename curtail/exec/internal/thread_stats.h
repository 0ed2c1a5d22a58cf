// SPDX-License-Identifier: Apache-2.0
//
// thread_stats.h - the kernel's counts for the threads of a process: context switches, and the time
// they waited for a CPU.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"

namespace curtail {

// Sums over the threads that live now, without ended ones.
struct ThreadStats {
  int threads = 0;
  uint64_t voluntary_switches = 0;    // a thread went to sleep
  uint64_t involuntary_switches = 0;  // ... was sent off its CPU
  Nanos cpu{0};                       // spent running
  Nanos run_delay{0};                 // spent ready to run, without a CPU

  uint64_t switches() const { return voluntary_switches + involuntary_switches; }
  // The difference to `before`, which was read earlier. Whole only if no thread has ended
  // meanwhile.
  ThreadStats Since(const ThreadStats& before) const;
};

// Reads /proc/<pid>/task, some microseconds a thread; "self" is the present process. Errors:
// NOT_FOUND. Kernels without schedstat leave cpu and run_delay at zero.
absl::StatusOr<ThreadStats> ReadThreadStats(const std::string& pid = "self");

namespace internal {
// Adds the numbers of a thread's `status` and `schedstat` files. For tests.
void AddThreadStats(std::string_view status, std::string_view schedstat, ThreadStats* stats);
}  // namespace internal

}  // namespace curtail
