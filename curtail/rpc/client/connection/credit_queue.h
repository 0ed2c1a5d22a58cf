// SPDX-License-Identifier: Apache-2.0
//
// credit_queue.h - the calls of a connection that wait for credits of its server (curtail/fence/credit_pool.h).
//
//  Q1  A call leaves while fewer are open than the connection has credits. Others wait. The oldest is next, but the newest
//      once the oldest has waited for kStands: of a queue that stands the newest have most of their time left.
//  Q2  Each request says how many wait behind it (kDemandKey). Each answer of a server that gives credits says how many
//      the connection has (kCreditsKey).
//  Q3  Until the first answer there are CreditAccount::kFirst. A server whose first good answer says nothing gives none:
//      from then on every call leaves.
//  Q4  A call waits for half of the time that it has, and for kLongestWait at most. Then it ends with RESOURCE_EXHAUSTED,
//      as does one that finds kMostWaiting others.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <string_view>

#include "curtail/base/clock.h"
#include "curtail/fence/credit_pool.h"
#include "curtail/rpc/call/call_metadata.h"
#include "curtail/wire/metadata.h"

namespace curtail::internal {

class ClientCall;

// A CreditQueue is that of one connection, whose strand's holder owns it.
class CreditQueue {
 public:
  static constexpr size_t kMostWaiting = 1024;
  static constexpr Nanos kLongestWait = std::chrono::seconds(1);
  static constexpr Nanos kStands = std::chrono::milliseconds(10);

  // When a call that is begun at `now`, and ends by `due`, has waited for long enough.
  static TimePoint LeavesBy(TimePoint now, TimePoint due) {
    return now + std::min<Nanos>(kLongestWait, (due - now) / 2);
  }

  // A call is to leave: true if it has a credit. AnswerCame() or Unsent() gives it back.
  bool Take();
  // It waits; false: too many do.
  bool Wait(ClientCall* call);
  // Takes the next that has a credit at `now`; null: there is none.
  ClientCall* Next(TimePoint now);
  // Takes one whose wait is over at `now`; null: there is none.
  ClientCall* NextOverdue(TimePoint now);
  // Takes any; null: none waits.
  ClientCall* Any();
  // A call that waits is cancelled. False: it does not wait.
  bool Remove(ClientCall* call);
  // A call that took a credit has ended: `ok`, with this trailing metadata.
  void AnswerCame(bool ok, const wire::Metadata& trailing);
  // ... was not sent.
  void Unsent() { --open_; }
  size_t waiting() const { return waiting_.size(); }
  // When the first of those that wait is overdue.
  TimePoint first_overdue() const;

  // True if a call that is begun now may have to wait. Any thread; a hint.
  bool scarce() const { return scarce_.load(std::memory_order_relaxed); }

 private:
  void Note() { scarce_.store(open_ + 1 >= credits_, std::memory_order_relaxed); }

  uint32_t open_ = 0;
  uint32_t credits_ = CreditAccount::kFirst;
  bool told_ = false;  // the server gives credits
  std::deque<ClientCall*> waiting_;

  // Atomic, relaxed: written by the strand's holder.
  std::atomic<bool> scarce_{false};
};

}  // namespace curtail::internal
