// SPDX-License-Identifier: Apache-2.0
//
// Any bytes at all against the client's end of HTTP/1.1 and of HTTP/2. The first byte says which of them, for which verb,
// and in which pieces the bytes arrive. Properties: a request ends once, no more is held than the limits allow, and over
// HTTP/1.1 the pieces make no difference.
#include <cstdlib>
#include <string>
#include <string_view>

#include "curtail/wire/http/http_client_codec.h"

namespace curtail::internal {
namespace {

constexpr HttpLimits kLimits{.max_body_bytes = 4096};
constexpr size_t kRequests = 3;

void Require(bool holds) {
  if (!holds) std::abort();
}

struct Result {
  int ended = 0;
  int status = 0;
  std::string reason;
  std::string reply;
  bool operator==(const Result&) const = default;
};

std::string Prefixed(std::string_view prefix, std::string_view bytes) {
  return std::string(prefix).append(bytes);
}

// The outcome of the server's bytes, for the first request; the others are there to be disturbed.
Result Run(bool http2, const char* verb, std::string_view bytes, size_t piece) {
  const std::unique_ptr<HttpCodec> codec = http2 ? MakeHttp2Codec(kLimits) : MakeHttp1Codec(kLimits);
  const HttpEndpoint endpoint{verb, "http", "a", "/"};
  HttpExchange exchanges[kRequests];
  int ends[kRequests] = {};
  const auto tell = [&](const HttpCodec::Ended& ended) {
    for (const HttpExchange* exchange : ended) ++ends[exchange - exchanges];
  };
  for (size_t i = 0; i < kRequests && codec->CanStart(); ++i) {
    exchanges[i].endpoint = &endpoint;
    exchanges[i].body = std::string(100 * i, 'x');
    codec->Start(&exchanges[i]);
  }
  HttpCodec::Ended ended;
  std::string out;
  absl::Status status;
  bool cancelled = false;
  while (!bytes.empty() && status.ok()) {
    out.clear();
    codec->Pull(&out, 1u << 16);
    status = codec->Receive(bytes.substr(0, piece), &ended);
    bytes.remove_prefix(std::min(piece, bytes.size()));
    tell(std::exchange(ended, {}));
    if (http2 && !cancelled && ends[1] == 0) {
      codec->Cancel(&exchanges[1]);
      cancelled = true;
      exchanges[1].body.clear();
    }
  }
  if (status.ok()) codec->ReceiveEnd(&ended);
  codec->Pull(&out, 1u << 16);
  tell(ended);
  tell(codec->TakeAll());
  for (size_t i = 0; i < kRequests; ++i) {
    Require(ends[i] <= 1 && exchanges[i].reply.size() <= kLimits.max_body_bytes);
    if (http2 && i != 1) Require(ends[i] == 1);
  }
  Require(ends[0] == 1);
  Require(!cancelled || ends[1] == 0);
  return {ends[0], exchanges[0].status, exchanges[0].reason, exchanges[0].reply};
}

}  // namespace
}  // namespace curtail::internal

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace curtail::internal;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const bool http2 = (data[0] & 1) != 0;
  const char* const verb = (data[0] & 2) != 0 ? "HEAD" : "POST";
  const size_t piece = 1 + data[0] / 8;
  if (http2) {
    // Valid SETTINGS first, so that there is more to try.
    constexpr std::string_view kSettings("\0\0\0\4\0\0\0\0\0", 9);
    Run(true, verb, Prefixed((data[0] & 4) != 0 ? kSettings : "", bytes), piece);
    return 0;
  }
  // A valid head first, so that there is more to try.
  constexpr std::string_view kChunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string reply = Prefixed((data[0] & 4) != 0 ? kChunked : "", bytes);
  const Result whole = Run(false, verb, reply, reply.size() + 1);
  const Result pieces = Run(false, verb, reply, piece);
  // Bytes after a reply are an error of their own, which comes with the next piece.
  Require(whole == pieces);
  return 0;
}
