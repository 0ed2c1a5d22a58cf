// SPDX-License-Identifier: Apache-2.0
//
// trace_sender.h - sends bodies to a collector, one POST at a time, without waiting for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "curtail/base/clock.h"
#include "curtail/base/internal/unique_fd.h"
#include "curtail/wire/http/http1_reader.h"
#include "curtail/wire/http_url.h"

namespace curtail::observe {

// A TraceSender is the client of one collector. Its owner polls the socket. Thread-compatible.
class TraceSender {
 public:
  // From Send() to the end of the answer.
  static constexpr Nanos kMostTime = std::chrono::seconds(5);
  // The most that a collector may answer.
  static constexpr size_t kMostReplyBytes = 64u << 10;

  explicit TraceSender(HttpUrl url) : url_(std::move(url)) {}

  bool idle() const { return state_ == State::kIdle; }
  // Begins a POST of JSON over a connection of its own. A name is looked up first, which may block. REQUIRES: idle().
  void Send(std::string body, TimePoint now);
  // Begins the last POST once more. REQUIRES: it ended with kLater, and nothing began since.
  void SendAgain(TimePoint now);

  enum class Outcome : uint8_t {
    kDelivered,  // answered with 2xx
    kLater,  // with 429, 502, 503 or 504, which ask for another attempt (OTLP/HTTP, "Retryable Response Codes")
    kFailed,  // with anything else, or not in time
  };

  // For poll(), while it is not idle.
  int fd() const { return fd_.get(); }
  short events() const;
  TimePoint due() const { return due_; }

  // Goes on; call it when the socket is ready, or due() has passed. Says once how the POST ended.
  std::optional<Outcome> OnReady(TimePoint now);
  // Why the last POST was not delivered, for people: "no collector at 127.0.0.1:9411".
  std::string problem() const;
  std::string_view authority() const { return url_.authority; }

 private:
  enum class State { kIdle, kFailed, kConnecting, kWriting, kReading };

  absl::Status Connect();
  // Each says if the POST has ended, and how.
  std::optional<Outcome> Write();
  std::optional<Outcome> Read();
  Outcome Answered(int status);
  Outcome End(Outcome outcome, std::string why = {});

  const HttpUrl url_;
  State state_ = State::kIdle;
  curtail::internal::UniqueFd fd_;
  TimePoint due_;
  std::string out_;
  size_t sent_ = 0;  // of it
  std::string why_;
  curtail::internal::Http1Reader reader_{
      curtail::internal::HttpReplyLimits{.max_body_bytes = kMostReplyBytes}};
};

}  // namespace curtail::observe
