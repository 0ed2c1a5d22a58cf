// SPDX-License-Identifier: Apache-2.0
//
// metrics_process.h - the kernel's view of this process, and of each of its threads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "curtail/base/clock.h"

namespace curtail::observe {

// Counters are of all threads, those that have ended included.
struct ProcessUsage {
  Nanos user_cpu{0};
  Nanos system_cpu{0};
  uint64_t voluntary_switches = 0;    // a thread went to sleep
  uint64_t involuntary_switches = 0;  // ... was sent off its CPU
  uint64_t resident_bytes = 0;
  uint64_t virtual_bytes = 0;
  double start_time_s = 0;  // since 1970; zero if /proc does not tell
  int threads = 0;
};

// Takes some 50 us, however many threads there are.
ProcessUsage ReadProcessUsage();

struct ThreadUsage {
  int64_t id = 0;
  std::string name;
  char state = '?';  // as in /proc: 'R' runs, 'S' sleeps, 'D' waits for a device
  Nanos cpu{0};
  Nanos run_delay{0};  // ready to run, without a CPU
  uint64_t voluntary_switches = 0;
  uint64_t involuntary_switches = 0;
};

// The threads of this process, by id. Takes some microseconds a thread.
std::vector<ThreadUsage> ReadThreadUsages();

// Reads the fields of /proc/.../stat after the name of the thread, which may hold spaces and parentheses: the first is the
// state. Empty for text without a name. For tests.
std::vector<std::string_view> FieldsAfterName(std::string_view stat);

}  // namespace curtail::observe
