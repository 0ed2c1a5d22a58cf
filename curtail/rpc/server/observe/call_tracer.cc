// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: the price of a call that does not become a span is the price of most.
//
//  - Such a call costs a draw, a clock reading at its reply, and one for all answers to it that come in one turn of
//    events. Times of arrival and of dequeueing are there anyway. It has no record. Of the calls that it makes, those are
//    kept that failed or ended late, so late that the request may prove slow; the others are counted only. Views of names
//    are copied only into a span.
//  - A call that was not chosen, and whose caller sent no context, has no ids until it becomes a span, and its child calls
//    carry none: servers behind it draw for themselves. So a span that failed or was slow stands alone then.
//  - A call that was chosen has more clock readings: when its handler begins, when its child calls are sent, at each
//    answer, and when its reply was handed to the kernel. All its calls are kept.
//
// The spans of child calls have ids by the request's id and the child's ordinal, so that nothing need be kept of a call
// between the moment when it leaves and its answer.
#include "curtail/rpc/server/observe/call_tracer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/exec/internal/recycler.h"
#include "curtail/rpc/context.h"

namespace curtail::internal {

using observe::ChildSpan;
using observe::Span;
using observe::SpanReason;
using observe::TraceChoice;
using observe::TraceContext;

static_assert(CallRecord::kMostKept <= Span::kMostChildren);

// The record of a call that was chosen, or came with a context.
struct CallTracer::Live {
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
  TraceContext context;  // the caller's
  uint64_t id = 0;
  bool chosen = false;
  wire::TraceParent parent;  // of child calls that carry no more, but for their ids
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
         kKeepsLateChildren | kExactChildTimes | kChoosesByCall;
}

uint32_t CallTracer::WantsOf(uint64_t note) const {
  if (note == 0) return kCallReplied | kKeepsLateChildren;
  if (!Live::Of(note).chosen) return kChildLeaves | kCallReplied | kKeepsLateChildren;
  return kCallBegan | kChildLeaves | kCallReplied | kCallOver | kKeepsChildren | kExactChildTimes;
}

Nanos CallTracer::LateAfter(const CallRecord& call) const { return tracer_->LateAfter(call.method); }

uint64_t CallTracer::Arrived(const CallRecord& call) {
  const Metadata& received = call.context->metadata();
  const bool drawn = tracer_->Draw();
  if (received.empty() && !drawn) [[likely]]
    return 0;
  return Begin(received, drawn);
}

[[gnu::noinline]] uint64_t CallTracer::Begin(const Metadata& received, bool drawn) {
  TraceContext context;
  if (!received.empty()) {
    observe::TraceErrors errors;
    context = observe::ReadTraceContext(received, &errors);
    if (errors.context || errors.state) tracer_->CountErrors(errors);
  }
  const bool chosen = context.choice == TraceChoice::kYes || (context.choice == TraceChoice::kOpen && drawn);
  if (!chosen && !context.valid()) return 0;
  Live& live = *Recycler<Live>::Take();
  live.context = context;
  live.chosen = chosen;
  live.Identify();
  observe::WriteTraceParent(live.context, live.id, chosen, &live.parent);
  return reinterpret_cast<uint64_t>(&live);
}

void CallTracer::ChildLeaves(const CallRecord& call, const ChildCall& child, Carried& carried,
                             uint64_t note) {
  const Live& live = Live::Of(note);
  if (!carried.metadata.empty()) carried.metadata.EraseIf(&observe::IsTraceKey);
  if (carried.trace_parent != nullptr && observe::IsParentOnly(live.context)) [[likely]] {
    *carried.trace_parent = live.parent;
    return observe::SetSpan(live.ChildId(child.ordinal), carried.trace_parent);
  }
  observe::AddTraceContext(live.context, live.ChildId(child.ordinal), live.chosen, call.context->metadata(),
                           &carried.metadata, carried.trace_parent);
}

void CallTracer::Replied(const CallRecord& call, uint64_t note) {
  const bool slow = tracer_->IsSlow(call.method, call.replied - call.arrived);
  const bool failed = call.code != absl::StatusCode::kOk;
  if (note != 0 && Live::Of(note).chosen) return;  // until Over()
  if (slow || failed) [[unlikely]] {
    Live own;
    if (note == 0) own.Identify();
    HandOver(call, note == 0 ? own : Live::Of(note), failed ? SpanReason::kError : SpanReason::kSlow);
  }
  if (note != 0) Recycler<Live>::Give(&Live::Of(note));
}

void CallTracer::Over(const CallRecord& call, uint64_t note) {
  Live& live = Live::Of(note);
  HandOver(call, live, SpanReason::kSampled);
  Recycler<Live>::Give(&live);
}

void CallTracer::HandOver(const CallRecord& call, const Live& live, SpanReason reason) {
  Span* const span = tracer_->TakeSpan();
  if (span == nullptr) return;
  span->kind = Span::Kind::kServer;
  span->trace = live.context.trace;
  span->id = live.id;
  span->parent = live.context.span;
  span->reason = reason;
  span->method = call.method;
  span->path.Assign(call.path);
  span->peer.Assign(call.context->peer());
  // A call that waited in the queue to its end was never taken from it.
  span->arrived = call.arrived;
  span->dequeued = call.dequeued == TimePoint() ? call.replied : std::max(call.dequeued, call.arrived);
  span->began = std::max(call.began, span->dequeued);
  span->replied = std::max(call.replied, span->began);
  span->over = std::max(call.over, span->replied);
  span->code = static_cast<int>(call.code);
  span->child_count = static_cast<uint32_t>(call.kept.size());
  span->children_left_out = call.children - span->child_count;
  for (size_t i = 0; i < call.kept.size(); ++i) {
    const ChildCall& from = call.kept[i];
    ChildSpan& child = span->children[i];
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
