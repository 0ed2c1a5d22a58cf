// SPDX-License-Identifier: Apache-2.0
//
// request_tracer.h - begins a trace with each request of a run, so that traces have what the client
// saw.
//
// The root span is the client's: from the actual send, as LoadResult::since_sent counts, to
// the end. The request carries the trace's context (traceparent); the server's span is its child.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/base/histogram.h"
#include "curtail/observe/trace/trace_context.h"
#include "curtail/observe/trace/tracer.h"
#include "curtail/wire/metadata.h"

namespace curtail {

struct RequestTraceOptions {
  // "zipkin=http://HOST:PORT" or "otlp=http://HOST:PORT"; "memory" sends the spans nowhere.
  std::string to;
  // The share of requests that begin a trace. Servers behind draw for themselves about the others.
  double sample = 1;
  // Its name in spans.
  std::string service = "curtail-load";
};

// A RequestTracer belongs to the sending thread; another one exports.
class RequestTracer {
 public:
  // The trace of a request; it has none if the span is 0.
  struct Root {
    observe::TraceId trace;
    uint64_t span = 0;
  };

  // Errors: INVALID_ARGUMENT that names what is wrong.
  static absl::StatusOr<std::unique_ptr<RequestTracer>> Start(const RequestTraceOptions& options);

  // A request is about to be sent. If it begins a trace, `metadata` says so, instead of any that it
  // had.
  Root Begin(wire::Metadata* metadata);
  // The request has ended. `measured`: since_sent counts it.
  void End(const Root& root, std::string_view method, std::string_view target, TimePoint sent, TimePoint done,
           const absl::Status& status, bool measured);

  // Of measured requests: the durations of their root spans, as handed to the exporter.
  const Histogram& roots() const { return roots_; }
  observe::TracerStats stats() const { return tracer_->stats(); }

 private:
  explicit RequestTracer(std::unique_ptr<observe::Tracer> tracer) : tracer_(std::move(tracer)) {}

  const std::unique_ptr<observe::Tracer> tracer_;
  Histogram roots_;
};

}  // namespace curtail
