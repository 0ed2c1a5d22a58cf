// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/drive/request_tracer.h"

#include <utility>

#include "curtail/observe/trace/span.h"
#include "curtail/observe/trace/trace_exporter.h"

namespace curtail {

absl::StatusOr<std::unique_ptr<RequestTracer>> RequestTracer::Start(const RequestTraceOptions& options) {
  if (!(options.sample >= 0 && options.sample <= 1)) {
    return absl::InvalidArgumentError("the share of requests that are traced is between 0 and 1");
  }
  absl::StatusOr<observe::TraceTarget> target = observe::ParseTraceTarget(options.to);
  if (!target.ok()) return target.status();
  auto tracer = observe::Tracer::Start({.sample = options.sample,
                                        .slow = Nanos::max(),  // no rule chooses more
                                        .service = options.service,
                                        .target = *std::move(target)});
  if (!tracer.ok()) return tracer.status();
  return std::unique_ptr<RequestTracer>(new RequestTracer(*std::move(tracer)));
}

RequestTracer::Root RequestTracer::Begin(wire::Metadata* metadata) {
  if (!tracer_->Draw()) return {};
  observe::TraceContext context;
  context.trace = {observe::Tracer::NewId(), observe::Tracer::NewId()};
  const Root root{context.trace, observe::Tracer::NewId()};
  metadata->EraseIf(&observe::IsTraceKey);
  observe::AddTraceContext(context, root.span, /*chosen=*/true, {}, metadata, nullptr);
  return root;
}

void RequestTracer::End(const Root& root, std::string_view method, std::string_view target, TimePoint sent,
                        TimePoint done, const absl::Status& status, bool measured) {
  if (root.span == 0) return;
  observe::Span* const span = tracer_->TakeSpan();
  if (span == nullptr) return;  // which counts
  span->kind = observe::Span::Kind::kCallsOnly;
  span->trace = root.trace;
  span->id = root.span;
  span->parent = 0;
  span->reason = observe::SpanReason::kSampled;
  span->path.Assign(method);
  span->peer.Assign({});
  span->arrived = span->dequeued = span->began = sent;
  span->replied = span->over = done;
  span->code = static_cast<int>(status.code());
  span->child_count = 1;
  span->children_left_out = 0;
  observe::ChildSpan& call = span->children[0];
  call.path.Assign(method);
  call.target.Assign(target);
  call.id = root.span;
  call.parent = 0;
  call.called = sent;
  call.sent = TimePoint();
  call.answered = done;
  call.code = span->code;
  tracer_->HandOver(span);
  if (measured) roots_.Record(done - sent);
}

}  // namespace curtail
