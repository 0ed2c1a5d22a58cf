// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/drive/internal/realtime.h"

#include <sched.h>
#include <sys/prctl.h>

namespace curtail::internal {

// Process id 0 means the calling thread to the kernel.
RealtimeScope::RealtimeScope(bool wanted) {
  old_slack_ns_ = prctl(PR_GET_TIMERSLACK);
  prctl(PR_SET_TIMERSLACK, 1);
  sched_param old{};
  old_policy_ = sched_getscheduler(0);
  if (!wanted || old_policy_ < 0 || sched_getparam(0, &old) != 0) return;
  old_priority_ = old.sched_priority;
  const sched_param lowest{sched_get_priority_min(SCHED_FIFO)};
  active_ = sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &lowest) == 0;
}

RealtimeScope::~RealtimeScope() {
  if (old_slack_ns_ > 0) prctl(PR_SET_TIMERSLACK, old_slack_ns_);
  if (!active_) return;
  const sched_param old{old_priority_};
  // Clearing SCHED_RESET_ON_FORK needs the same right as setting SCHED_FIFO did.
  (void)sched_setscheduler(0, old_policy_, &old);
}

}  // namespace curtail::internal
