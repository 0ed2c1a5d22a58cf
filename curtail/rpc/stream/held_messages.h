// SPDX-License-Identifier: Apache-2.0
//
// held_messages.h - messages of streams that wait for a moment, so that a burst of them shares a write.
//
// The rule by which they wait is P7 at the top of stream_pipe.cc.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "curtail/base/clock.h"
#include "curtail/base/mutex.h"
#include "curtail/exec/internal/ticker.h"
#include "curtail/exec/poller.h"

namespace curtail::internal {

// HeldMessages sends what threads have held back for kLongest, whatever those threads do by then. A thread of its own,
// which starts with the first message that is held, sleeps while none is. Thread-safe.
class HeldMessages {
 public:
  // A message waits for others only if another one of its connection left so short a time ago.
  static constexpr Nanos kGap = std::chrono::microseconds(20);
  // No message waits for longer.
  static constexpr Nanos kLongest = std::chrono::microseconds(200);

  // `send` has a connection act on what was posted to it.
  explicit HeldMessages(std::function<void(PollHandler&)> send) : send_(std::move(send)) {}
  ~HeldMessages() { Stop(); }
  HeldMessages(const HeldMessages&) = delete;
  HeldMessages& operator=(const HeldMessages&) = delete;

  // A message posted to `connection` at `now` leaves after kLongest, or before. False if there is no thread to see to
  // that: then the caller sends.
  bool Hold(std::shared_ptr<PollHandler> connection, TimePoint now);
  // Messages posted to `connection` leave at once.
  void Send(PollHandler& connection) const { send_(connection); }
  // Sends all that is held, and holds no more.
  void Stop();

 private:
  struct Entry {
    std::shared_ptr<PollHandler> connection;
    TimePoint due;
  };

  Nanos SendLate(TimePoint now);
  void Send(const Entry& entry) const;

  // Immutable after construction.
  const std::function<void(PollHandler&)> send_;

  Mutex mu_;
  // Each connection once, for as long as PollHandler::listed is set; by time.
  std::deque<Entry> entries_ CURTAIL_GUARDED_BY(mu_);
  bool started_ CURTAIL_GUARDED_BY(mu_) = false;
  bool stopped_ CURTAIL_GUARDED_BY(mu_) = false;
  bool asleep_ CURTAIL_GUARDED_BY(mu_) = false;  // the thread, until it is woken
  int quiet_ CURTAIL_GUARDED_BY(mu_) = 0;        // looks in a row that found nothing

  // Started under mu_ before stopped_ is set, stopped after.
  Ticker ticker_;
};

}  // namespace curtail::internal
