// SPDX-License-Identifier: Apache-2.0
//
// codel.h - tells a queue that stands from one that a burst has filled for a moment.
//
// CoDel (RFC 8289) as folly has it: the least wait of each interval decides about the next one. So
// no burst counts that the queue has worked off within an interval.
//
//  C1  The wait of a look is how long the queue's oldest task has waited. A queue that was emptied
//      has waited zero.
//  C2  The queue stands for an interval if the least wait of the interval before exceeded the
//      target. An interval begins with the first look after the last one's end.
//  C3  While the queue stands, a task is overdue once it has waited twice the target.
//
// Thread safety: none of its own. The executor's mutex guards every call.
#pragma once

#include <algorithm>

#include "curtail/base/clock.h"

namespace curtail {

// A Codel judges one queue.
class Codel {
 public:
  Codel(Nanos target, Nanos interval) : target_(target), interval_(interval) {}

  // Looks at the queue at `now`, when its oldest task has waited for `oldest`. Returns true if the
  // queue stands.
  bool Look(Nanos oldest, TimePoint now) {
    if (now >= ends_) {  // C2
      stands_ = least_ > target_;
      ends_ = now + interval_;
      least_ = oldest;
    }
    least_ = std::min(least_, oldest);
    return stands_;
  }
  // Its last task has left for a thread (C1).
  void Emptied() { least_ = Nanos::zero(); }

  bool stands() const { return stands_; }
  // C3.
  bool Overdue(Nanos waited) const { return stands_ && waited > 2 * target_; }

 private:
  Nanos target_;
  Nanos interval_;
  TimePoint ends_;  // of the interval
  Nanos least_{0};  // in the interval
  bool stands_ = false;
};

}  // namespace curtail
