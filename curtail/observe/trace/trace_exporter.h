// SPDX-License-Identifier: Apache-2.0
//
// trace_exporter.h - how a collector wants its spans. A format is one file with one class; the table in
// trace_exporter.cc lists them.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "curtail/observe/trace/span.h"
#include "curtail/wire/http_url.h"

namespace curtail::observe {

// The time since 1970 of a point in time.
class WallClock {
 public:
  // As both clocks are now.
  WallClock();
  Nanos SinceEpoch(TimePoint when) const { return when.time_since_epoch() + ahead_; }

 private:
  Nanos ahead_;
};

// A TraceExporter writes batches of spans: Begin(), Add() for each, End(). Thread-compatible.
class TraceExporter {
 public:
  virtual ~TraceExporter() = default;
  // Of the URL, where it names none.
  virtual std::string_view default_path() const = 0;
  // Each appends to `batch`. `service` is the caller's name of itself.
  virtual void Begin(std::string_view service, std::string* batch) = 0;
  virtual void Add(const Span& span, const WallClock& clock, bool first, std::string* batch) = 0;
  virtual void End(std::string* batch) = 0;
};

std::unique_ptr<TraceExporter> MakeZipkinExporter();
std::unique_ptr<TraceExporter> MakeOtlpExporter();

// Where spans go.
struct TraceTarget {
  HttpUrl url;
  std::unique_ptr<TraceExporter> exporter;  // null: nowhere but to the HTTP admin port
};

// "zipkin=http://HOST:PORT", "otlp=http://HOST:PORT", or "memory". Errors: INVALID_ARGUMENT.
[[nodiscard]] absl::StatusOr<TraceTarget> ParseTraceTarget(std::string_view text);

// `text` in quotes, as JSON has it: bytes that are no printable ASCII become '?'.
void AppendJsonText(std::string_view text, std::string* out);
// 16 or 32 digits in quotes.
void AppendJsonId(uint64_t id, std::string* out);
void AppendJsonId(const TraceId& id, std::string* out);
// The name of one of gRPC's status codes.
std::string_view TraceCodeName(int code);
std::string_view SpanReasonName(SpanReason reason);

}  // namespace curtail::observe
