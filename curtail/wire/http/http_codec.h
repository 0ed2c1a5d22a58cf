// SPDX-License-Identifier: Apache-2.0
//
// http_codec.h - the server's end of a connection as a pure state machine: bytes in, requests out.
//
// A version of HTTP is one HttpServerCodec. It does no I/O; a fuzzer can drive it. The gateway and the HTTP admin port speak
// HTTP by it; gRPC has session.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/wire/metadata.h"

namespace curtail::wire {

// Bounds for one connection.
struct HttpLimits {
  size_t max_head_bytes = 16u << 10;
  size_t max_body_bytes = 4u << 20;
  // Of HTTP/2: requests at a time, and the bytes of those that are not whole, together.
  uint32_t max_streams = 100;
  size_t max_partial_bytes = 8u << 20;
  // The present time, of which HTTP/2 asks when a client has used up an allowance, such as 1,000 resets.
  TimePoint (*now)() = &Now;
};

struct HttpRequest {
  int32_t stream = 0;  // names the request on its connection
  std::string verb;
  std::string target;  // path and query
  Metadata headers;    // keys in lower case
  std::string body;
};

struct HttpReply {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;
  bool more = false;  // AddBody() goes on with the body
};

// Thread-compatible.
class HttpServerCodec {
 public:
  virtual ~HttpServerCodec() = default;
  // Takes bytes from the client and appends whole requests. It answers malformed ones itself.
  // After an error the connection is of no more use, though the client may be sent the output.
  [[nodiscard]] virtual absl::Status Receive(std::string_view bytes, std::vector<HttpRequest>* requests) = 0;
  // Answers; no effect if the client has given the request up.
  virtual void Reply(int32_t stream, HttpReply reply) = 0;
  // The next part of the body of an answer that was begun with `more`; may be empty.
  virtual void AddBody(int32_t stream, std::string_view bytes, bool last) = 0;
  // Drops what has not left of an answer and cuts it short, so that the client can tell. False: the
  // connection has to be reset, as an orderly end of it may be that of an answer.
  [[nodiscard]] virtual bool Abort(int32_t stream) = 0;
  // Bytes of an answer's body that Pull() has not handed out.
  virtual size_t unsent(int32_t stream) const = 0;
  // The requests that the client has given up before the end of their answers, each once.
  virtual std::vector<int32_t> TakeGivenUp() = 0;
  // Appends output until there is none, or `out` holds about `limit` bytes.
  virtual void Pull(std::string* out, size_t limit) = 0;
  // Requests are taken as before; the client is told to make its next ones on another connection.
  virtual void LastCall() = 0;
  // No more requests are taken; the connection ends when those in flight are answered.
  virtual void Drain() = 0;
  // False: read no more for now.
  virtual bool WantsInput() const = 0;
  // Answers 503 to requests with a body from now on, or takes them again. False: it cannot, and must
  // not Receive() meanwhile.
  [[nodiscard]] virtual bool RefuseBodies(bool on) = 0;
  // True once the connection may be closed when its output has left.
  virtual bool Finished() const = 0;
  // Requests that await an answer, or the rest of it.
  virtual size_t in_flight() const = 0;
  // True if the client has sent part of a request.
  virtual bool in_request() const = 0;
  // Bytes of requests and replies that are held.
  virtual size_t held_bytes() const = 0;
  // Of these, those of replies.
  virtual size_t owed_bytes() const = 0;
  // Requests that it has answered itself because of a limit, so far.
  virtual uint64_t refused() const = 0;
};

std::unique_ptr<HttpServerCodec> MakeHttp1Codec(const HttpLimits& limits);
std::unique_ptr<HttpServerCodec> MakeHttp2Codec(const HttpLimits& limits);
// A codec of the version that the client's first bytes are of.
std::unique_ptr<HttpServerCodec> MakeAnyHttpCodec(const HttpLimits& limits);

}  // namespace curtail::wire
