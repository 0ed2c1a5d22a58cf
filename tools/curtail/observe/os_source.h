// SPDX-License-Identifier: Apache-2.0
//
// os_source.h - what the operating system counts for one process, from one source each.
//
// A source is one file behind OsSource. What a machine does not let us count is named with its reason, never zero.
// Thread-compatible.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>

namespace curtail::tool {

// Counts since some moment before the first Read(); a name is in one of both maps.
struct OsCounts {
  std::map<std::string, double> counts;
  std::map<std::string, std::string> denied;  // why there is no count
};

class OsSource {
 public:
  virtual ~OsSource() = default;
  // Adds what it has counted so far.
  virtual void Read(OsCounts* into) const = 0;
};

// Switches, CPU time and run-queue delay of the threads, by /proc/PID/task. Counts of a thread go when it ends.
std::unique_ptr<OsSource> NewProcSource(pid_t pid);

// Wake-ups, system calls by kind, futex waits (tracepoints), instructions, cache misses and HITM (counters of the
// processor), by perf_event_open(2): of the threads that there are now. muTune, figures 10 and 13.
std::unique_ptr<OsSource> NewPerfSource(pid_t pid);

}  // namespace curtail::tool
