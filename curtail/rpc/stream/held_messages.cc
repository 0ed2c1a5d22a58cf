// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A list of connections with the time at which they are due, and a thread that kicks them then. A connection is
// listed once: as long as it is, what is posted to it leaves no later than the entry says. The thread takes an entry
// off, clears the mark and kicks. A writer posts first and looks at the mark then. Both change the mark by an atomic
// exchange: a writer that finds it set posted before the thread's exchange, so the kick takes the message along.
//
// A busy stream holds messages all the time, so its writers find the thread awake and need not wake it. It goes on
// looking for kQuietLooks after the last one.
#include "curtail/rpc/stream/held_messages.h"

#include <chrono>
#include <vector>

namespace curtail::internal {
namespace {

constexpr int kQuietLooks = 10;
// Until a writer wakes the thread.
constexpr Nanos kUntilWoken = std::chrono::hours(1);

}  // namespace

bool HeldMessages::Hold(std::shared_ptr<PollHandler> connection, TimePoint now) {
  if (connection->listed.exchange(true, std::memory_order_acq_rel)) return true;
  bool wake = false;
  {
    MutexLock lock(mu_);
    if (!started_ && !stopped_) {
      started_ = ticker_.Start("held-messages", [this](TimePoint t) { return SendLate(t); }).ok();
    }
    if (!started_ || stopped_) {
      connection->listed.exchange(false, std::memory_order_acq_rel);
      return false;
    }
    entries_.push_back({std::move(connection), now + kLongest});
    wake = std::exchange(asleep_, false);
  }
  if (wake) ticker_.Wake();
  return true;
}

Nanos HeldMessages::SendLate(TimePoint now) {
  std::vector<Entry> due;
  Nanos next = kLongest;
  {
    MutexLock lock(mu_);
    for (; !entries_.empty() && entries_.front().due <= now; entries_.pop_front()) {
      due.push_back(std::move(entries_.front()));
    }
    quiet_ = due.empty() && entries_.empty() ? quiet_ + 1 : 0;
    asleep_ = quiet_ >= kQuietLooks;
    if (asleep_) {
      next = kUntilWoken;
    } else if (!entries_.empty()) {
      next = entries_.front().due - now;
    }
  }
  for (const Entry& entry : due) Send(entry);
  return next;
}

void HeldMessages::Send(const Entry& entry) const {
  entry.connection->listed.exchange(false, std::memory_order_acq_rel);
  send_(*entry.connection);
}

void HeldMessages::Stop() {
  {
    MutexLock lock(mu_);
    stopped_ = true;
  }
  ticker_.Stop();
  std::deque<Entry> rest;
  {
    MutexLock lock(mu_);
    rest.swap(entries_);
  }
  for (const Entry& entry : rest) Send(entry);
}

}  // namespace curtail::internal
