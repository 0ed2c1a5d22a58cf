// SPDX-License-Identifier: Apache-2.0
//
// priority_limit.h - which priorities a server admits while it is overloaded.
//
// The control of DAGOR (H. Zhou et al., SoCC 2018). The rules:
//
//  P1  A request is admitted if its priority is not less important than the limit. So at no moment
//      a request is refused while a less important one would be admitted.
//  P2  A window ends with the first request that comes after its time, or after kRequests others.
//  P3  A window was overloaded if the requests that threads took in it had waited for more than
//      the target on average, or if one of them was overdue (codel.h).
//  P4  The capacity is the most requests a second that threads took in a window. It loses a tenth
//      with each window that took fewer. The backlog is what waits at a window's end beyond what
//      threads take within the target. So a window in which all threads stood still moves nothing.
//  P5  After an overloaded window the limit is the least important priority up to which the window
//      had at most 95 % of the capacity less the backlog, and no less than a quarter of the
//      capacity; at most 95 % of what it admitted, if threads ran no more than that. The most
//      important one of the window stays admitted.
//  P6  After another window the limit is the first priority up to which it had the admitted
//      requests and 1 % of all, or 95 % of the capacity if that is more; without such, every
//      request is admitted. A window in which no thread took a request changes nothing.
//
// DAGOR itself admits 5 % less after each overloaded window. The queue that the first windows left
// keeps the next ones overloaded, so that its limit goes on to fall while the threads catch up. P4
// and P5 are ours: they let in at once what the threads can do.
//
// Thread safety: limit() from any thread. The executor's mutex guards the rest.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "curtail/base/clock.h"
#include "curtail/exec/priority.h"

namespace curtail {

// A PriorityLimit is the limit of one server. At the end of a window it takes some hundred steps.
class PriorityLimit {
 public:
  static constexpr uint32_t kRequests = 2000;

  explicit PriorityLimit(const PriorityOptions& options = {}) : options_(options) {}
  PriorityLimit(const PriorityLimit&) = delete;
  PriorityLimit& operator=(const PriorityLimit&) = delete;

  // A request came at `now`, when `waiting` others that were admitted wait. Returns true if it is
  // admitted.
  bool Admit(Priority priority, TimePoint now, size_t waiting);
  // A thread took a request that had `waited`; it runs it unless that is `overdue`.
  void Taken(Nanos waited, bool overdue) {
    ++taken_;
    run_ += !overdue;
    wait_ += waited;
    overdue_ |= overdue;
  }
  Priority limit() const { return FromLevel(limit_.load(std::memory_order_relaxed)); }

 private:
  static constexpr uint32_t kLevels = Priority::kLeast + 1;  // of each part
  static constexpr uint32_t kLast = kLevels * kLevels - 1;
  static constexpr uint32_t LevelOf(Priority p) { return p.business * kLevels + p.user; }
  static constexpr Priority FromLevel(uint32_t level) {
    return {static_cast<uint8_t>(level / kLevels), static_cast<uint8_t>(level % kLevels)};
  }

  void EndWindow(Nanos length, size_t waiting);
  // The least important level up to which the window had at most `count` requests; with `over`: the
  // first up to which it had `count` at least.
  uint32_t LevelFor(uint32_t count, bool over) const;

  // Immutable after construction.
  const PriorityOptions options_;

  // Atomic, relaxed: written under the executor's mutex, read for statistics.
  std::atomic<uint32_t> limit_{kLast};

  double capacity_per_ns_ = 0;

  // Of the window.
  TimePoint began_;
  uint32_t came_ = 0;
  uint32_t admitted_ = 0;
  uint32_t first_ = kLast;  // the most important level that came
  uint32_t taken_ = 0;
  uint32_t run_ = 0;  // of these
  Nanos wait_{0};
  bool overdue_ = false;
  std::array<uint16_t, kLevels> of_business_{};
  std::array<uint16_t, kLast + 1> of_level_{};
};

}  // namespace curtail
