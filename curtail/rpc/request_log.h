// SPDX-License-Identifier: Apache-2.0
//
// request_log.h - a line of JSON for calls of a server, sampled and bounded.
//
//   {"time":"2026-01-31T12:00:00.123456Z","path":"/shop.Cart/Add","peer":"10.0.0.7:51234",
//    "code":"OK","took_us":842,"subject":"alice","trace":"4bf92f3577b34da6a3ce929d0e0e4736"}
//
// "subject" is a token's (authentication.h), "trace" a traceparent's. A call that
// failed has "message", and a line after lines that were left out has "left_out" with their number.
// No metadata, token or message content is logged. Where the log of the process is JSON (log.h), a
// line has its severity, service and instance, too; on stderr a level above INFO leaves calls out
// that end with OK.
//
// Stand it first among the interceptors: it logs what those behind it refuse. For every event of a
// call's life, and for metrics, use a CallObserver instead.
//
// Code: call/request_log.cc.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "curtail/rpc/interceptor.h"

namespace curtail {

struct RequestLogOptions {
  // The share of calls that end with OK of which a line is written. Others all have one.
  double share = 1;
  // At most so many lines a second, and a second's worth at once.
  double lines_per_s = 100;
  // Takes a line, with its end. By any thread; must not block. Empty: stderr, where a line is left
  // out while the reader of a pipe is behind.
  std::function<void(std::string_view line)> write;
};

class RequestLog final : public ServerInterceptor {
 public:
  explicit RequestLog(RequestLogOptions options = {});

  absl::Status Before(const IncomingCall& call) override;
  void After(const IncomingCall& call, const absl::Status& status, Nanos took) override;

 private:
  // True if this one of the calls that end with OK is in the sample.
  bool Sampled();
  // True if the rate allows for a line now.
  bool Allowed();
  std::string Line(const IncomingCall& call, const absl::Status& status, Nanos took);

  // Immutable after construction.
  const RequestLogOptions options_;
  const int64_t interval_ns_;  // between lines

  // Atomic, relaxed: each stands for itself.
  std::atomic<uint64_t> ok_{0};        // calls that ended with OK
  std::atomic<int64_t> next_{0};       // when a line is due, if lines come evenly
  std::atomic<uint64_t> left_out_{0};  // since the last line
};

}  // namespace curtail
