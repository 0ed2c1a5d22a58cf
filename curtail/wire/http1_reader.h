// SPDX-License-Identifier: Apache-2.0
//
// http1_reader.h - takes the reply to one request out of the bytes of an HTTP/1.1 server (RFC 9112).
//
// Thread-compatible. The memory it holds is bounded by HttpReplyLimits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace curtail::internal {

// The most that a server may send for one reply.
struct HttpReplyLimits {
  // Status line, header and trailer fields, and all interim replies.
  static constexpr size_t kMaxHeadBytes = 64u << 10;
  size_t max_body_bytes = 32u << 20;
};

class Http1Reader {
 public:
  explicit Http1Reader(const HttpReplyLimits& limits) : limits_(limits) {}

  // The next bytes are the reply to a new request. `head_only`: it was a HEAD.
  void Begin(bool head_only);
  // Takes bytes of the reply from the front of `bytes`. After an error the connection is of no more use.
  // Errors: UNAVAILABLE (this is no HTTP/1.1), RESOURCE_EXHAUSTED (too long), UNIMPLEMENTED (a coding).
  [[nodiscard]] absl::Status Read(std::string_view* bytes);
  // The server has closed the connection; this is the end of a body without a length.
  void End();

  bool done() const { return state_ == State::kDone; }
  // Once done. False: the connection must be closed.
  bool keep_alive() const { return keep_alive_; }
  int status() const { return status_; }
  std::string& reason() { return reason_; }
  std::string& body() { return body_; }

 private:
  enum class State : uint8_t {
    kStatusLine,
    kFields,
    kBody,         // `left_` bytes of it
    kBodyToClose,  // up to the end of the connection
    kChunkSize,
    kChunk,     // `left_` bytes of it
    kChunkEnd,  // the line end after them
    kTrailers,
    kDone,
  };

  // Takes bytes until `line_` is a whole line, without its end. False: it is not yet.
  absl::StatusOr<bool> TakeLine(std::string_view* bytes);
  absl::Status OnLine();
  absl::Status OnStatusLine();
  absl::Status OnField();
  absl::Status OnHeadEnd();
  absl::Status OnChunkSize();
  absl::Status TakeBody(std::string_view* bytes);

  const HttpReplyLimits limits_;
  State state_ = State::kDone;
  std::string line_;
  size_t head_bytes_ = 0;
  uint64_t left_ = 0;

  bool head_only_ = false;
  bool keep_alive_ = false;
  bool chunked_ = false;
  bool has_length_ = false;
  uint64_t length_ = 0;
  int status_ = 0;
  std::string reason_;
  std::string body_;
};

}  // namespace curtail::internal
