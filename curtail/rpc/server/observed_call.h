// SPDX-License-Identifier: Apache-2.0
//
// observed_call.h - tells the observers of a server what becomes of a call.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
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
// ChildCalled() and ChildAnswered(), which any thread of the call may use between Began() and Replied().
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
    return (wanted_ & (kChildCalled | kChildAnswered)) != 0;
  }
  // The last event; from then on there is nothing to tell.
  void Replied(absl::StatusCode code) {
    if (wanted_ & kCallReplied) TellReplied(code);
    wanted_ = 0;
  }
  void ChildCalled(const ChildCall& child) const;
  void ChildAnswered(const ChildCall& child) const;

 private:
  void TellDequeued() const;
  void TellBegan();
  void TellReplied(absl::StatusCode code);
  template <class F>
  void Tell(CallEvent event, F&& tell) const;

  uint32_t wanted_ = 0;  // by any observer; none: not observed, or over
  const CallObservers* observers_ = nullptr;
  CallRecord record_;
  std::array<uint64_t, CallObservers::kMost> notes_;
};

}  // namespace curtail::internal
