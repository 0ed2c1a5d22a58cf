// SPDX-License-Identifier: Apache-2.0
//
// observed_call.h - tells the observers of a server what becomes of a call.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/exec/poller.h"
#include "curtail/rpc/call_observer.h"

namespace curtail::internal {

// CallObservers is the list of a server's observers. Filled before the server runs, read by any thread from then on.
class CallObservers {
 public:
  static constexpr size_t kMost = 4;

  // The observer outlives the server. Errors: INVALID_ARGUMENT for one too many.
  absl::Status Add(CallObserver* observer);
  bool empty() const { return wanted_ == 0; }

 private:
  friend class ObservedCall;
  struct Entry {
    CallObserver* observer = nullptr;
    uint32_t wants = 0;
  };
  std::array<Entry, kMost> entries_;
  size_t count_ = 0;
  uint32_t wanted_ = 0;  // by any of them
};

// An ObservedCall lies in a call and tells its events. All methods but Arrived() do nothing unless Arrived() was called
// on a server with observers: that costs a load and a branch. Owned by the thread that has the call, except for
// Number() and those about its children, which any thread of the call may use between Began() and Replied().
class ObservedCall {
 public:
  // A request for `path` was there at `now`. REQUIRES: `observers` are not empty.
  void Arrived(const CallObservers& observers, std::string_view path, uint32_t method, const Context& context,
               TimePoint now);
  void Dequeued(TimePoint now) {
    if (wanted_ == 0) return;
    record_.dequeued = std::max(now, record_.arrived);  // a message may come after its stream was dequeued
    if (wanted_ & kCallDequeued) TellDequeued();
  }
  // True: an observer wants to hear of the calls that this one makes.
  bool Began() {
    if (wanted_ & kCallBegan) TellBegan();
    return (wanted_ & (kChildLeaves | kChildCalled | kChildAnswered | kKeepsChildren)) != 0;
  }
  void Replied(absl::StatusCode code) {
    if (wanted_ & kCallReplied) TellReplied(code);
    wanted_ &= kCallOver;
  }
  // The last event; from then on there is nothing to tell. A call that was not answered counts as cancelled.
  void Over() {
    if (wanted_ != 0) [[unlikely]]
      TellOver();
  }
  // Numbers `n` calls that this one makes; returns the first number. Any thread of the call.
  uint32_t Number(uint32_t n) const {
    const uint32_t before = std::atomic_ref(children_).fetch_add(n, std::memory_order_relaxed);
    for (uint32_t i = before; i < room_.size() && i < before + n; ++i) room_[i].answered = TimePoint();
    return before + 1;
  }
  // True: the times of the calls that this one makes are read from the clock each.
  bool exact() const { return (wanted_ & (kChildCalled | kChildAnswered | kExactChildTimes)) != 0; }
  // When an answer to one of them was there.
  TimePoint AnsweredAt() const { return exact() ? Now() : EventTime(); }
  // Where such a call is kept; null: nowhere.
  ChildCall* Place(uint32_t ordinal) const {
    return ordinal - 1 < room_.size() ? &room_[ordinal - 1] : nullptr;
  }
  bool wants(CallEvent event) const { return (wanted_ & event) != 0; }
  void ChildLeaves(const ChildCall& child, Carried carried) const;
  void ChildCalled(const ChildCall& child) const;
  void ChildAnswered(const ChildCall& child) const;

 private:
  void TellDequeued() const;
  void TellBegan();
  void TellReplied(absl::StatusCode code);
  void TellOver();
  template <class F>
  void Tell(CallEvent event, F&& tell) const;

  uint32_t wanted_ = 0;  // by any observer; none: not observed, or over
  const CallObservers* observers_ = nullptr;
  std::span<ChildCall> room_;
  CallRecord record_;
  std::array<uint64_t, CallObservers::kMost> notes_;
  std::array<uint16_t, CallObservers::kMost> wants_;  // by each observer, of this call
  // Atomic (atomic_ref, relaxed), so that the call can be copied before it begins: calls that it has made.
  alignas(std::atomic_ref<uint32_t>::required_alignment) mutable uint32_t children_ = 0;
};

}  // namespace curtail::internal
