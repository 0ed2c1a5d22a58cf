// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/request_log.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "curtail/base/internal/log_line.h"
#include "curtail/base/strings.h"

namespace curtail {
namespace {

constexpr size_t kMaxText = 200;  // of a status message, in bytes

// Writes a line if that takes no wait. A pipe that takes anything takes PIPE_BUF bytes.
bool WriteToStderr(std::string_view line) {
  pollfd fd{STDERR_FILENO, POLLOUT, 0};
  if (poll(&fd, 1, 0) != 1 || (fd.revents & POLLOUT) == 0) return false;
  return write(STDERR_FILENO, line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

// The trace of a W3C traceparent, "00-TRACE-SPAN-FLAGS"; empty if it is none.
std::string_view TraceOf(std::string_view parent) {
  constexpr size_t kBegin = 3, kSize = 32;
  if (parent.size() < kBegin + kSize + 1 || parent[kBegin - 1] != '-' || parent[kBegin + kSize] != '-')
    return {};
  return parent.substr(kBegin, kSize);
}

}  // namespace

RequestLog::RequestLog(RequestLogOptions options)
    : options_(std::move(options)),
      interval_ns_(static_cast<int64_t>(1e9 / std::clamp(options_.lines_per_s, 1e-3, 1e9))) {}

absl::Status RequestLog::Before(const IncomingCall&) { return absl::OkStatus(); }

bool RequestLog::Sampled() {
  // The n-th is in the sample when n times the share reaches another whole number.
  const auto n = static_cast<double>(ok_.fetch_add(1, std::memory_order_relaxed));
  return std::floor((n + 1) * options_.share) > std::floor(n * options_.share);
}

bool RequestLog::Allowed() {
  constexpr int64_t kBurst = 1'000'000'000;
  const int64_t now = Now().time_since_epoch().count();
  int64_t next = next_.load(std::memory_order_relaxed);
  while (true) {
    const int64_t due = std::max(next, now);
    if (due - now > std::max<int64_t>(kBurst - interval_ns_, 0)) return false;
    if (next_.compare_exchange_weak(next, due + interval_ns_, std::memory_order_relaxed)) return true;
  }
}

void RequestLog::After(const IncomingCall& call, const absl::Status& status, Nanos took) {
  if (status.ok() && !Sampled()) return;
  if (!options_.write && !Logs(status.ok() ? Severity::kInfo : Severity::kWarning)) return;
  if (!Allowed()) {
    left_out_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const std::string line = Line(call, status, took);
  if (options_.write) return options_.write(line);
  if (!WriteToStderr(line)) left_out_.fetch_add(1, std::memory_order_relaxed);
}

std::string RequestLog::Line(const IncomingCall& call, const absl::Status& status, Nanos took) {
  internal::LogLine line(internal::ProcessLogForm(), status.ok() ? Severity::kInfo : Severity::kWarning,
                         internal::LogTime());
  line.Add("path", call.path).Add("peer", call.context.peer());
  line.Add("code", absl::StatusCodeToString(status.code())).Add("took_us", took.count() / 1000);
  if (!status.ok()) line.Add("message", Message(status).substr(0, kMaxText));
  const std::string_view subject = call.context.properties().Find("jwt.subject").value_or("");
  if (!subject.empty()) line.Add("subject", subject.substr(0, kMaxText));
  const std::string_view trace = TraceOf(call.context.metadata().Find("traceparent").value_or(""));
  if (!trace.empty()) line.Add("trace", trace);
  const uint64_t left_out = left_out_.exchange(0, std::memory_order_relaxed);
  if (left_out > 0) line.Add("left_out", static_cast<int64_t>(left_out));
  return std::move(line).Take();
}

}  // namespace curtail
