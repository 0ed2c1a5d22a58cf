// SPDX-License-Identifier: Apache-2.0
//
// realtime.h - a sending thread that the machine's other work does not hold up.
#pragma once

namespace curtail::internal {

// While it lives, a RealtimeScope runs the calling thread under SCHED_FIFO at the lowest real-time priority,
// if this process may do that (root, or CAP_SYS_NICE). Either way its timers fire when they are due, without
// the 50 us of slack that threads have by default. Made and destroyed on the same thread. Threads and
// processes started meanwhile do not inherit the priority.
class RealtimeScope {
 public:
  explicit RealtimeScope(bool wanted);
  ~RealtimeScope();
  RealtimeScope(const RealtimeScope&) = delete;
  RealtimeScope& operator=(const RealtimeScope&) = delete;

  bool active() const { return active_; }

 private:
  bool active_ = false;
  int old_policy_ = 0;
  int old_priority_ = 0;
  int old_slack_ns_ = 0;
};

}  // namespace curtail::internal
