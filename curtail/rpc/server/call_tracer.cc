// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: the price of a call that does not become a span is the price of most.
//
//  - Such a call costs a record from a pool, a draw, a clock reading at its reply, and one for all answers to it that
//    come in one turn of events. Times of arrival and of dequeueing are there anyway. The calls that it makes are written
//    to the record as they end, without asking the tracer. Views of names are copied only into a span.
//  - A call that was not chosen, and whose caller sent no context, has no ids until it becomes a span, and its child calls
//    carry none: servers behind it draw for themselves. So a span that failed or was slow stands alone then.
//  - A call that was chosen has more clock readings: when its handler begins, when its child calls are sent, at each
//    answer, and when its reply was handed to the kernel.
//
// The spans of child calls have ids by the request's id and the child's ordinal, so that nothing need be kept of a call
// between the moment when it leaves and its answer. Children may be told of on several threads at a time, each in a place
// of its own. The handler has waited for them when it ends, so Replied() sees all.
#include "curtail/rpc/server/call_tracer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/exec/recycler.h"
#include "curtail/rpc/context.h"

namespace curtail::internal {

using observe::ChildSpan;
using observe::Span;
using observe::SpanReason;
using observe::TraceChoice;
using observe::TraceContext;

// The record of a call so far.
struct CallTracer::Live {
  static constexpr size_t kMost = Span::kMostChildren;

  // For its Recycler.
  bool Recycle() { return true; }
  static Live& Of(uint64_t note) { return *reinterpret_cast<Live*>(note); }

  void Identify() {
    if (!context.valid()) context.trace = {observe::Tracer::NewId(), observe::Tracer::NewId()};
    id = observe::Tracer::NewId();
  }
  // The id of a child call's span; that of the call itself for ordinal 0. No two of a call are the same.
  uint64_t ChildId(uint32_t ordinal) const {
    constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
    const uint64_t child = id + ordinal * kOdd;
    return child != 0 ? child : kOdd;
  }
  // Owned by the thread that has the call.
  TraceContext context;  // the caller's
  uint64_t id = 0;       // 0: not drawn yet
  bool chosen = false;
  // Each owned by the thread that tells of the child.
  std::array<ChildCall, kMost> children;
};

absl::StatusOr<std::unique_ptr<CallTracer>> CallTracer::Start(const TraceOptions& options,
                                                              const std::vector<std::string>& services,
                                                              size_t methods) {
  if (!(options.sample >= 0 && options.sample <= 1)) {
    return absl::InvalidArgumentError("the share of requests that are traced is between 0 and 1");
  }
  if (options.slow < Nanos::zero()) return absl::InvalidArgumentError("a slow request takes longer than 0");
  absl::StatusOr<observe::TraceTarget> target = observe::ParseTraceTarget(options.to);
  if (!target.ok()) return target.status();
  std::string service = options.service;
  if (service.empty()) service = services.empty() ? "curtail" : services.front();
  auto tracer = observe::Tracer::Start({.sample = options.sample,
                                        .slow = options.slow,
                                        .methods = methods,
                                        .service = std::move(service),
                                        .target = *std::move(target)});
  if (!tracer.ok()) return tracer.status();
  return std::unique_ptr<CallTracer>(new CallTracer(*std::move(tracer)));
}

uint32_t CallTracer::Wants() const {
  return kCallArrived | kCallBegan | kChildLeaves | kCallReplied | kCallOver | kKeepsChildren |
         kExactChildTimes | kChoosesByCall;
}

uint32_t CallTracer::WantsOf(uint64_t note) const {
  const Live& live = Live::Of(note);
  if (live.chosen) {
    return kCallBegan | kChildLeaves | kCallReplied | kCallOver | kKeepsChildren | kExactChildTimes;
  }
  return live.id != 0 ? kChildLeaves | kCallReplied | kKeepsChildren : kCallReplied | kKeepsChildren;
}

std::span<ChildCall> CallTracer::Room(uint64_t note) { return Live::Of(note).children; }

uint64_t CallTracer::Arrived(const CallRecord& call) {
  Live& live = *Recycler<Live>::Take();
  const Metadata& received = call.context->metadata();
  live.context = TraceContext();
  live.id = 0;
  if (!received.empty()) {
    observe::TraceErrors errors;
    live.context = observe::ReadTraceContext(received, &errors);
    if (errors.context || errors.state) tracer_->CountErrors(errors);
  }
  const TraceChoice choice = live.context.choice;
  live.chosen = choice == TraceChoice::kYes || (choice == TraceChoice::kOpen && tracer_->Draw());
  if (live.chosen || live.context.valid()) live.Identify();
  return reinterpret_cast<uint64_t>(&live);
}

void CallTracer::ChildLeaves(const CallRecord& call, const ChildCall& child, Carried& carried,
                             uint64_t note) {
  const Live& live = Live::Of(note);
  if (live.id == 0) return;
  if (!carried.metadata.empty()) carried.metadata.EraseIf(&observe::IsTraceKey);
  observe::AddTraceContext(live.context, live.ChildId(child.ordinal), live.chosen, call.context->metadata(),
                           &carried.metadata, carried.trace_parent);
}

void CallTracer::Replied(const CallRecord& call, uint64_t note) {
  Live& live = Live::Of(note);
  const bool slow = tracer_->IsSlow(call.method, call.replied - call.arrived);
  if (live.chosen) return;  // until Over()
  if (call.code != absl::StatusCode::kOk) [[unlikely]] {
    HandOver(call, live, SpanReason::kError);
  } else if (slow) [[unlikely]] {
    HandOver(call, live, SpanReason::kSlow);
  }
  Recycler<Live>::Give(&live);
}

void CallTracer::Over(const CallRecord& call, uint64_t note) {
  Live& live = Live::Of(note);
  HandOver(call, live, SpanReason::kSampled);
  Recycler<Live>::Give(&live);
}

void CallTracer::HandOver(const CallRecord& call, Live& live, SpanReason reason) {
  Span* const span = tracer_->TakeSpan();
  if (span == nullptr) return;
  if (live.id == 0) live.Identify();
  span->trace = live.context.trace;
  span->id = live.id;
  span->parent = live.context.span;
  span->reason = reason;
  span->path.Assign(call.path);
  span->peer.Assign(call.context->peer());
  // A call that waited in the queue to its end was never taken from it.
  span->arrived = call.arrived;
  span->dequeued = call.dequeued == TimePoint() ? call.replied : std::max(call.dequeued, call.arrived);
  span->began = std::max(call.began, span->dequeued);
  span->replied = std::max(call.replied, span->began);
  span->over = std::max(call.over, span->replied);
  span->code = static_cast<int>(call.code);
  const uint32_t kept = std::min<uint32_t>(call.children, Live::kMost);
  span->child_count = 0;
  span->children_left_out = call.children - kept;
  for (uint32_t i = 0; i < kept; ++i) {
    const ChildCall& from = live.children[i];
    if (from.answered == TimePoint()) continue;
    ChildSpan& child = span->children[span->child_count++];
    child.path.Assign(from.path);
    child.target.Assign(from.target);
    child.id = live.ChildId(from.ordinal);
    child.parent = live.ChildId(from.within);
    child.called = from.called;
    child.sent = from.sent;
    child.answered = from.answered;
    child.code = static_cast<int>(from.code);
  }
  tracer_->HandOver(span);
}

}  // namespace curtail::internal
