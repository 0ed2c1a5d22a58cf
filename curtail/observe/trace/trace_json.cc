// SPDX-License-Identifier: Apache-2.0
#include "curtail/observe/trace/trace_json.h"

#include <utility>

#include "curtail/base/strings.h"

namespace curtail::observe {

TracesJson::TracesJson(std::string_view service) {
  text_ = "{\"schema_version\": 1, \"service\": ";
  AppendJsonText(service, &text_);
  text_ += ", \"spans\": [";
}

void TracesJson::Add(const Span& span, const WallClock& clock) {
  text_ += std::exchange(first_, false) ? "\n{\"trace\": " : ",\n{\"trace\": ";
  AppendJsonId(span.trace, &text_);
  text_ += ", \"id\": ";
  AppendJsonId(span.id, &text_);
  text_ += ", \"parent\": ";
  if (span.parent == 0) text_ += "null";
  else AppendJsonId(span.parent, &text_);
  text_ += ", \"method\": ";
  AppendJsonText(span.path.view(), &text_);
  text_ += ", \"peer\": ";
  AppendJsonText(span.peer.view(), &text_);
  text_ +=
      Join(", \"status\": \"", TraceCodeName(span.code), "\", \"captured\": \"", SpanReasonName(span.reason),
           "\", \"start_unix_us\": ", clock.SinceEpoch(span.arrived) / std::chrono::microseconds(1),
           ", \"total_ns\": ", (span.over - span.arrived).count(),
           ", \"queue_ns\": ", (span.dequeued - span.arrived).count(),
           ", \"entry_ns\": ", (span.began - span.dequeued).count(),
           ", \"handler_ns\": ", (span.replied - span.began).count(),
           ", \"reply_ns\": ", (span.over - span.replied).count(),
           ", \"calls_left_out\": ", span.children_left_out, ", \"calls\": [");
  for (size_t i = 0; i < span.child_count; ++i) {
    if (i > 0) text_ += ", ";
    AddChild(span, span.children[i]);
  }
  text_ += "]}";
}

void TracesJson::AddChild(const Span& span, const ChildSpan& child) {
  text_ += "{\"id\": ";
  AppendJsonId(child.id, &text_);
  text_ += ", \"parent\": ";
  AppendJsonId(child.parent, &text_);
  text_ += ", \"method\": ";
  AppendJsonText(child.path.view(), &text_);
  text_ += ", \"target\": ";
  AppendJsonText(child.target.view(), &text_);
  const Nanos sending = child.sent == TimePoint() ? Nanos(-1) : child.sent - child.called;
  text_ += Join(", \"status\": \"", TraceCodeName(child.code),
                "\", \"start_ns\": ", (child.called - span.arrived).count(),
                ", \"total_ns\": ", (child.answered - child.called).count(), ", \"send_ns\": ");
  text_ += sending < Nanos::zero() ? "null" : Join(sending.count());
  text_ += "}";
}

std::string TracesJson::Finish() {
  text_ += "\n]}\n";
  return std::exchange(text_, {});
}

}  // namespace curtail::observe
