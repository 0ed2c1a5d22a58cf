// SPDX-License-Identifier: Apache-2.0
#include "curtail/observe/trace/trace_exporter.h"

#include <array>
#include <utility>

#include "curtail/base/strings.h"

namespace curtail::observe {
namespace {

struct Format {
  std::string_view name, example;
  std::unique_ptr<TraceExporter> (*make)();
};

constexpr Format kFormats[] = {{"zipkin", "zipkin=http://localhost:9411", &MakeZipkinExporter},
                               {"otlp", "otlp=http://localhost:4318", &MakeOtlpExporter}};

absl::Status BadTarget(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(Join("\"", text, "\" ", why));
}

}  // namespace

// A thread that is held up between its readings would take them for one moment: of some, the closest count.
WallClock::WallClock() {
  constexpr int kReadings = 8;
  constexpr Nanos kClose = std::chrono::microseconds(1);
  Nanos closest = Nanos::max();
  for (int i = 0; i < kReadings && closest > kClose; ++i) {
    const TimePoint before = Now();
    const auto wall = std::chrono::duration_cast<Nanos>(std::chrono::system_clock::now().time_since_epoch());
    const Nanos apart = Now() - before;
    if (apart >= closest) continue;
    closest = apart;
    ahead_ = wall - (before + apart / 2).time_since_epoch();
  }
}

absl::StatusOr<TraceTarget> ParseTraceTarget(std::string_view text) {
  TraceTarget target;
  if (text == "memory") return target;
  const size_t equals = text.find('=');
  for (const Format& format : kFormats) {
    if (text.substr(0, equals) != format.name) continue;
    if (equals == std::string_view::npos) {
      return BadTarget(text, Join("names no collector; write ", format.example));
    }
    if (!HttpUrl::Is(text.substr(equals + 1))) {
      return BadTarget(text, Join("has no http:// before its host; write ", format.example));
    }
    absl::StatusOr<HttpUrl> url = HttpUrl::Parse(text.substr(equals + 1));
    if (!url.ok()) return BadTarget(text, Join("is not a collector: ", Message(url.status())));
    if (url->secure) {
      return BadTarget(text,
                       "asks for TLS, which is not supported; send to an agent on this machine over http://");
    }
    target.url = *std::move(url);
    target.exporter = format.make();
    if (target.url.path == "/") target.url.path = target.exporter->default_path();
    return target;
  }
  return BadTarget(text, Join("is not a place for traces; write ", kFormats[0].example, ", ",
                              kFormats[1].example, " or memory"));
}

void AppendJsonText(std::string_view text, std::string* out) {
  out->push_back('"');
  for (const char c : text) {
    if (c == '"' || c == '\\') out->push_back('\\');
    out->push_back(c < ' ' || c > '~' ? '?' : c);
  }
  out->push_back('"');
}

void AppendJsonId(uint64_t id, std::string* out) {
  std::array<char, 18> text;
  text.front() = text.back() = '"';
  WriteHex(id, &text[1]);
  out->append(text.data(), text.size());
}

void AppendJsonId(const TraceId& id, std::string* out) {
  std::array<char, 34> text;
  text.front() = text.back() = '"';
  WriteHex(id.high, &text[1]);
  WriteHex(id.low, &text[17]);
  out->append(text.data(), text.size());
}

std::string_view TraceCodeName(int code) {
  constexpr std::string_view kNames[] = {
      "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS", "UNAUTHENTICATED"};
  const auto at = static_cast<size_t>(code);
  return at < std::size(kNames) ? kNames[at] : kNames[2];
}

std::string_view SpanReasonName(SpanReason reason) {
  switch (reason) {
    case SpanReason::kSampled:
      return "sampled";
    case SpanReason::kError:
      return "error";
    case SpanReason::kSlow:
      return "slow";
  }
  return "";
}

}  // namespace curtail::observe
