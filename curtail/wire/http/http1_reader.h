// SPDX-License-Identifier: Apache-2.0
//
// http1_reader.h - takes one message, a request or a reply, out of the bytes of HTTP/1.1 (RFC 9112).
//
// A request that two readers could understand differently is an error: RFC 9112, 11.2, is about such requests. Servers'
// mistakes are tolerated where the end of the reply is beyond doubt.
//
// Thread-compatible. The memory it holds is bounded by its limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/wire/metadata.h"

namespace curtail::internal {

// The most that a server may send for one reply.
struct HttpReplyLimits {
  // Status line, header and trailer fields, extensions of chunks, and all interim replies.
  static constexpr size_t kMaxHeadBytes = 64u << 10;
  size_t max_body_bytes = 32u << 20;
};

// The most that a client may send for one request. The head includes trailer fields and extensions of chunks.
struct HttpRequestLimits {
  size_t max_head_bytes;
  size_t max_body_bytes;
};

class Http1Reader {
 public:
  explicit Http1Reader(const HttpReplyLimits& limits)
      : requests_(false), max_head_(HttpReplyLimits::kMaxHeadBytes), max_body_(limits.max_body_bytes) {}
  explicit Http1Reader(const HttpRequestLimits& limits)
      : requests_(true), max_head_(limits.max_head_bytes), max_body_(limits.max_body_bytes) {
    Begin(/*head_only=*/false);
  }

  // The next bytes are a new message. `head_only`: the reply to a HEAD.
  void Begin(bool head_only);
  // Takes bytes of the message from the front of `bytes`. After an error the connection is of no more use.
  // Errors of a reply: UNAVAILABLE (this is not HTTP/1.1), RESOURCE_EXHAUSTED (too long), UNIMPLEMENTED (a coding).
  // Errors of a request: INVALID_ARGUMENT, RESOURCE_EXHAUSTED; refusal() is the status for an answer.
  [[nodiscard]] absl::Status Read(std::string_view* bytes);
  // The server has closed the connection; this is the end of a body without a length.
  void End();

  bool done() const { return state_ == State::kDone; }
  // Once done. False: the connection must be closed.
  bool keep_alive() const { return keep_alive_; }
  std::string& body() { return body_; }

  // Of a reply.
  int status() const { return status_; }
  std::string& reason() { return reason_; }

  // Of a request.
  bool begun() const { return head_bytes_ > 0 || !line_.empty(); }
  std::string& verb() { return verb_; }
  std::string& target() { return target_; }
  // Without trailer fields. A request of HTTP/1.1 has one "host".
  wire::Metadata& headers() { return headers_; }
  bool http10() const { return minor_ == 0; }
  // The client waits for leave to send the body.
  bool expects() const { return expects_ && body_.empty() && (left_ > 0 || state_ == State::kChunkSize); }
  // 400, 413 or 431, after an error.
  int refusal() const { return refusal_; }
  // Bytes that it holds.
  size_t held() const { return line_.size() + target_.size() + headers_.bytes() + body_.size(); }

 private:
  enum class State : uint8_t {
    kFirstLine,
    kFields,
    kBody,         // `left_` bytes of it
    kBodyToClose,  // up to the end of the connection
    kChunkSize,
    kChunk,     // `left_` bytes of it
    kChunkEnd,  // the line end after them
    kTrailers,
    kDone,
  };

  // Takes bytes until `*line` is a whole line, without its end. It lives until the next call. False: it is not yet.
  absl::StatusOr<bool> TakeLine(std::string_view* bytes, std::string_view* line);
  // A line cannot become a message of HTTP/1.1, however it goes on.
  bool Hopeless() const;
  absl::Status OnLine(std::string_view line);
  absl::Status OnRequestLine(std::string_view line);
  absl::Status OnStatusLine(std::string_view line);
  absl::Status OnField(std::string_view line);
  absl::Status OnLength(std::string_view value);
  absl::Status OnCoding(std::string_view value);
  absl::Status OnHeadEnd();
  absl::Status OnRequestHeadEnd();
  absl::Status BeginBody();
  absl::Status OnChunkSize(std::string_view line);
  absl::Status TakeBody(std::string_view* bytes);

  absl::Status Broken(std::string_view what) const;
  absl::Status TooLong(std::string_view what, int refusal);

  const bool requests_;
  const size_t max_head_;
  const size_t max_body_;
  State state_ = State::kDone;
  std::string line_;       // the part that has come
  size_t head_bytes_ = 0;  // that count for max_head_
  uint64_t left_ = 0;

  bool head_only_ = false;
  bool keep_alive_ = false;
  bool chunked_ = false;
  bool has_length_ = false;
  uint64_t length_ = 0;
  int minor_ = 1;  // of the version
  std::string body_;

  int status_ = 0;
  std::string reason_;

  std::string verb_;
  std::string target_;
  wire::Metadata headers_;
  int hosts_ = 0;
  bool expects_ = false;
  int refusal_ = 400;
};

}  // namespace curtail::internal
