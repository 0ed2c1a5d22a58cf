// SPDX-License-Identifier: Apache-2.0
//
// wakeup_trace.h - how long the threads of a process wait from their wake-up to a CPU, each wake-up by itself.
// Thread-compatible.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "curtail/base/histogram.h"
#include "curtail/base/internal/unique_fd.h"
#include "tools/curtail/observe/perf_events.h"
#include "tools/curtail/observe/wakeup_matcher.h"

namespace curtail::tool {

// A WakeupTrace records events of the scheduler for the threads that there are when it begins. The kernel writes them to
// a ring for each CPU, which Read() empties. What finds no room in it is lost, and counted.
class WakeupTrace {
 public:
  // Null, with the reason in `why`, if the machine denies it.
  static std::unique_ptr<WakeupTrace> Start(pid_t process, std::string* why);
  ~WakeupTrace();
  WakeupTrace(const WakeupTrace&) = delete;
  WakeupTrace& operator=(const WakeupTrace&) = delete;

  // Adds a descriptor for each ring, which is readable when the ring is half full.
  void AppendTo(std::vector<pollfd>* polled) const;
  // Takes what the rings hold.
  void Read();

  const Histogram& latencies() const { return matcher_.latencies(); }
  uint64_t lost() const { return lost_; }

 private:
  struct Ring;
  // The numbers and fields of the two tracepoints.
  struct Format {
    uint64_t waking = 0, switched = 0;
    size_t waking_pid = 0, prev_pid = 0, next_pid = 0;
  };
  WakeupTrace(const Format& format, std::vector<pid_t> threads);

  // Empty, or why not.
  std::string Open(int cpu);
  void ReadRing(Ring& ring);
  void Take(const std::string& record);
  void Add(int64_t at_ns, pid_t thread, WakeupEvent::Kind kind);

  const Format format_;
  const std::vector<pid_t> threads_;  // ascending
  std::vector<std::unique_ptr<Ring>> rings_;
  WakeupMatcher matcher_;
  uint64_t lost_ = 0;
};

}  // namespace curtail::tool
