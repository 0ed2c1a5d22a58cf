// SPDX-License-Identifier: Apache-2.0
//
// wakeup_matcher.h - from a thread's wake-up to its first instruction: pairs of two events of the scheduler.
// Thread-compatible.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "curtail/base/clock.h"
#include "curtail/base/histogram.h"

namespace curtail::tool {

// An event of the scheduler that concerns a thread that is observed.
struct WakeupEvent {
  enum class Kind : uint8_t {
    kWaking,  // another thread, or an interrupt, makes it ready
    kIn,      // a CPU begins to run it
    kOut,     // a CPU ends to run it
  };
  int64_t at_ns = 0;
  pid_t thread = 0;
  Kind kind = Kind::kWaking;
};

// A WakeupMatcher takes the events of all CPUs and measures wake-ups. muTune, section VI and figure 10: the latency from
// the wake-up of a thread to when it runs.
class WakeupMatcher {
 public:
  // Events come in any order within a batch; those of a CPU may be ahead of another's.
  void Add(const WakeupEvent& event) { events_.push_back(event); }
  // Judges the events before `until_ns`, by time; keeps the rest. No event before it may be added later.
  void JudgeUntil(int64_t until_ns);

  // Of wake-ups after which the thread ran.
  const Histogram& latencies() const { return latencies_; }

 private:
  std::vector<WakeupEvent> events_;
  // When the thread was made ready. A thread that ran all the while, or runs by then, has no entry: it slept no more.
  std::unordered_map<pid_t, int64_t> ready_;
  Histogram latencies_;
};

}  // namespace curtail::tool
