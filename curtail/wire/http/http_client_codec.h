// SPDX-License-Identifier: Apache-2.0
//
// http_client_codec.h - the client's end of a connection as a pure state machine: requests in, replies out.
//
// A version of HTTP is one HttpCodec. It does no I/O; a fuzzer can drive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "curtail/wire/http/http1_reader.h"
#include "curtail/wire/metadata.h"

namespace curtail::internal {

using HttpLimits = HttpReplyLimits;

// A request without what differs from one to the next.
struct HttpEndpoint {
  std::string verb;
  std::string scheme;
  std::string authority;
  std::string path;
};

// An HttpExchange is a request and what becomes of it. Its owner keeps it until it has ended.
struct HttpExchange {
  // The request.
  const HttpEndpoint* endpoint = nullptr;
  wire::Metadata headers;  // keys in lower case; "host" stands for the endpoint's authority
  std::string body;

  // The end. `error` is OK where the server has answered with `status`.
  absl::Status error;
  int status = 0;
  std::string reason;  // of HTTP/1.1; printable
  std::string reply;
  // True if the server has certainly not looked at the request.
  bool unprocessed = false;

  // For the codec: which stream it is.
  int32_t stream = 0;
};

// An HttpCodec is the client's end of a connection. Thread-compatible.
class HttpCodec {
 public:
  using Ended = std::vector<HttpExchange*>;

  virtual ~HttpCodec() = default;
  // True if a request may begin now.
  virtual bool CanStart() const = 0;
  // Begins `exchange`; its bytes are output. REQUIRES: CanStart().
  virtual void Start(HttpExchange* exchange) = 0;
  // Forgets `exchange`. False: the connection is of no more use.
  virtual bool Cancel(HttpExchange* exchange) = 0;
  // Takes bytes from the server and appends the exchanges that end to `ended`. After an error the connection is of no
  // more use, though the server may be sent the output.
  [[nodiscard]] virtual absl::Status Receive(std::string_view bytes, Ended* ended) = 0;
  // The server sends no more, which may end a reply.
  virtual void ReceiveEnd(Ended* /*ended*/) {}
  // Appends output until there is none, or `out` holds about `limit` bytes.
  virtual void Pull(std::string* out, size_t limit) = 0;
  // True if no request may begin any more and none is in flight.
  virtual bool Finished() const = 0;
  // Takes the exchanges in flight out: the connection is gone.
  virtual Ended TakeAll() = 0;
  // Bytes of replies that are not whole.
  virtual size_t held_bytes() const = 0;
};

std::unique_ptr<HttpCodec> MakeHttp1Codec(const HttpLimits& limits);
std::unique_ptr<HttpCodec> MakeHttp2Codec(const HttpLimits& limits);

}  // namespace curtail::internal
