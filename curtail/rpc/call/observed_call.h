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

// The KeptCalls are those that a request has made and that its observers want to see at its end.
struct KeptCalls {
  // For its Recycler.
  bool Recycle() {
    count.store(0, std::memory_order_relaxed);
    return true;
  }

  // Atomic, relaxed: places taken, or asked for in vain.
  std::atomic<uint32_t> count{0};
  // Each owned by the thread that took it.
  std::array<ChildCall, CallRecord::kMostKept> calls;
};

// CallObservers is the list of a server's observers. Filled before the server runs, read by any thread from then on.
class CallObservers {
 public:
  static constexpr size_t kMost = 4;

  // The observer outlives the server. Errors: INVALID_ARGUMENT for one too many, or a second one that keeps late children.
  absl::Status Add(CallObserver* observer);
  bool empty() const { return wanted_ == 0; }

 private:
  friend class ObservedCall;
  struct Entry {
    CallObserver* observer = nullptr;
    uint32_t wants = 0;
    uint32_t wants_of_none = 0;  // of calls of note 0
  };
  std::array<Entry, kMost> entries_;
  size_t count_ = 0;
  uint32_t wanted_ = 0;                 // by any of them
  CallObserver* late_judge_ = nullptr;  // the one that keeps late children
};

// An ObservedCall lies in a call and tells its events. All methods but Arrived() do nothing unless Arrived() was called
// on a server with observers: that costs a load and a branch. Owned by the thread that has the call, except for
// Number(), Keep() and those about its children, which any thread of the call may use between Began() and Replied().
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
    return (wanted_ & (kChildLeaves | kChildCalled | kChildAnswered | kKeepsChildren | kKeepsLateChildren)) !=
           0;
  }
  void Replied(absl::StatusCode code) {
    if (wanted_ & (kCallReplied | kKeepsChildren | kKeepsLateChildren)) TellReplied(code);
    wanted_ &= kCallOver;
  }
  // The last event; from then on there is nothing to tell. A call that was not answered counts as cancelled.
  void Over() {
    if (wanted_ != 0) [[unlikely]]
      TellOver();
  }
  // Numbers `n` calls that this one makes; returns the first number. Any thread of the call.
  uint32_t Number(uint32_t n) const {
    return std::atomic_ref(children_).fetch_add(n, std::memory_order_relaxed) + 1;
  }
  // True: the times of the calls that this one makes are read from the clock each.
  bool exact() const { return (wanted_ & (kChildCalled | kExactChildTimes)) != 0; }
  // When an answer to one of them was there.
  TimePoint AnsweredAt() const { return exact() ? Now() : EventTime(); }
  // Room for `n` of them that have ended, or fewer: the caller fills it.
  std::span<ChildCall> Keep(size_t n) const;
  // Those that end later are kept; max() if none is late. REQUIRES: wants(kKeepsLateChildren).
  TimePoint Late() const;
  bool wants(CallEvent event) const { return (wanted_ & event) != 0; }
  void ChildLeaves(const ChildCall& child, Carried carried) const;
  void ChildCalled(const ChildCall& child) const;
  void ChildAnswered(const ChildCall& child) const;

 private:
  void TellDequeued() const;
  void TellBegan();
  void TellReplied(absl::StatusCode code);
  void TellOver();
  void ShowKept();
  void GiveKept();
  template <class F>
  void Tell(CallEvent event, F&& tell) const;

  uint32_t wanted_ = 0;  // by any observer; none: not observed, or over
  const CallObservers* observers_ = nullptr;
  CallRecord record_;
  std::array<uint64_t, CallObservers::kMost> notes_;
  std::array<uint16_t, CallObservers::kMost> wants_;  // by each observer, of this call
  // Atomic, by atomic_ref, so that the call can be copied before it begins. Relaxed: calls that it has made.
  alignas(std::atomic_ref<uint32_t>::required_alignment) mutable uint32_t children_ = 0;
  // Set once (acq_rel), by the first to keep a call; from a Recycler.
  alignas(std::atomic_ref<KeptCalls*>::required_alignment) mutable KeptCalls* kept_ = nullptr;
};

}  // namespace curtail::internal
