// SPDX-License-Identifier: Apache-2.0
//
// call_observer.h - an observer of the life of each call, for spans, metrics and policies.
//
// The server tells of these events, in order; a bracket holds events that some calls do not have:
//
//   Arrived  [Dequeued  [Began  [[ChildLeaves...  ChildCalled]  ChildAnswered]...]]  Replied  Over
//
// A call that a full queue refuses, or that its server drops, has no Dequeued event. A call that
// was cancelled or late when its turn came has no Began event. Each message of a stream is a call
// of its own. Work beside the handler (curtail::async) may tell of its children while the handler
// does.
//
// Code: call/observed_call.cc tells observers; a server's calls begin in server/server_call.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/wire/metadata.h"
#include "curtail/wire/trace_parent.h"

namespace curtail {

class Context;

// A set of events is their sum.
enum CallEvent : uint32_t {
  kCallArrived = 1,
  kCallDequeued = 2,
  kCallBegan = 4,
  kChildCalled = 8,
  kChildAnswered = 16,
  kCallReplied = 32,
  kChildLeaves = 64,
  kCallOver = 128,
  kAllCallEvents = 255,
  // Not an event: the observer chooses again for each call which events it wants. Of calls of note
  // 0 it wants the same ones, which are asked for once.
  kChoosesByCall = 256,
  // Not an event: the calls that a request makes are kept as they end, for CallRecord::kept.
  // kChildAnswered costs more.
  kKeepsChildren = 512,
  // Not an event: the times of calls that a request makes are exact, as with kChildCalled. Without
  // either `sent` is zero, and all answers of one turn of events share a clock reading.
  kExactChildTimes = 1024,
  // Not an event: of the calls that a request makes, those are kept that fail or end late, by
  // LateAfter(). The others cost next to nothing. For one observer of a server.
  kKeepsLateChildren = 2048,
};

// A ChildCall is one call that a handler made. An attempt after the first has no event.
struct ChildCall {
  uint32_t index = 0;  // among the calls of its fan-out
  // Among all calls that the request makes, from 1; 0 for a stream.
  uint32_t ordinal = 0;
  // The ordinal of the call within this process whose handler makes it; 0: the request's own does.
  uint32_t within = 0;
  absl::StatusCode code = absl::StatusCode::kOk;  // once answered
  std::string_view path;                          // of its method
  std::string_view target;                        // of its channel
  TimePoint called;
  TimePoint sent;      // serialized and handed to its connection; zero within the process
  TimePoint answered;  // or found failed; zero before
  // Once answered: times that it was made again, and attempts that hedging made beside the first.
  uint32_t retries = 0;
  uint32_t hedges = 0;
};

// A CallRecord says what the server knows of a call so far. A time is zero before its event, and
// stays zero if no observer wants the event; `arrived` and `dequeued` are always set.
struct CallRecord {
  static constexpr size_t kMostKept = 24;

  // Of the call's method, "/package.Service/Method"; lives as long as the server.
  std::string_view path;
  // Of the call's method, in the order in which the server's methods were added.
  uint32_t method = 0;
  // The call's metadata, deadline and caller.
  const Context* context = nullptr;
  TimePoint arrived;                              // the request was there whole
  TimePoint dequeued;                             // a thread took the request from the queue
  TimePoint began;                                // the handler was about to run
  TimePoint replied;                              // the reply was on its way to the connection
  TimePoint over;                                 // the reply was handed to the kernel, if it was
  absl::StatusCode code = absl::StatusCode::kOk;  // of the reply
  // Calls that the handler has made, once it has replied; counted for observers of such calls.
  uint32_t children = 0;
  // Of these the kept ones, in their order: the first kMostKept that ended.
  std::span<const ChildCall> kept;
};

// The things that a child call carries, for observers to add to.
struct Carried {
  wire::Metadata& metadata;
  // Null: the call stays in the process, and has the metadata alone.
  wire::TraceParent* trace_parent = nullptr;
};

// A CallObserver is told of the events that it wants. Thread-safe: any thread of the server's pools
// tells of events. An observer must not throw, nor block: a connection or a reply waits meanwhile.
class CallObserver {
 public:
  virtual ~CallObserver() = default;
  // A sum of CallEvents, the same each time. An event that no observer wants costs a branch.
  virtual uint32_t Wants() const = 0;
  // With kChoosesByCall: the events that it wants of the call of this note, asked after Arrived().
  virtual uint32_t WantsOf(uint64_t /*note*/) const { return Wants(); }
  // With kKeepsLateChildren: a child ends late if so much time has passed since its request came.
  // Asked as children end, by any thread of the call.
  virtual Nanos LateAfter(const CallRecord&) const { return Nanos::max(); }

  // Returns a note of the observer's own, which the later events of the call bring back.
  virtual uint64_t Arrived(const CallRecord&) { return 0; }
  virtual void Dequeued(const CallRecord&, uint64_t /*note*/) {}
  virtual void Began(const CallRecord&, uint64_t /*note*/) {}
  // Comes before each attempt is sent, which carries what the observer adds to `carried`. Streams
  // have no other event.
  virtual void ChildLeaves(const CallRecord&, const ChildCall&, Carried& /*carried*/, uint64_t /*note*/) {}
  virtual void ChildCalled(const CallRecord&, const ChildCall&, uint64_t /*note*/) {}
  // Comes when all calls of the fan-out have ended; `answered` says when this one did.
  virtual void ChildAnswered(const CallRecord&, const ChildCall&, uint64_t /*note*/) {}
  // Comes once for each call that arrived.
  virtual void Replied(const CallRecord&, uint64_t /*note*/) {}
  // The last event, once for each call that arrived. The call's context is still there.
  virtual void Over(const CallRecord&, uint64_t /*note*/) {}
};

}  // namespace curtail
