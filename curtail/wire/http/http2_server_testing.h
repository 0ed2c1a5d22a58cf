// SPDX-License-Identifier: Apache-2.0
//
// http2_server_testing.h - a client that breaks rules, in bytes, and what the server's end of HTTP/2 answers it.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "curtail/wire/http/http2_frames_testing.h"
#include "curtail/wire/http/http_codec.h"
#include "curtail/wire/internal/hpack.h"
#include "gtest/gtest.h"

namespace curtail::wire {

using internal::ErrorCode;
using internal::FrameHeader;
using internal::FrameType;
using internal::kEndHeaders;
using internal::kEndStream;
using internal::kFrameHeaderBytes;
using Code = std::optional<ErrorCode>;

inline constexpr uint8_t kData = 0, kHeaders = 1, kPriority = 2, kReset = 3, kSettings = 4, kPing = 6,
                         kGoaway = 7, kWindow = 8, kContinuation = 9;
inline const std::string kHello = std::string(internal::kPreface) + Frame(kSettings, 0, 0, "");

struct Answer {
  std::vector<int> statuses;  // 100 is the first of two
  HeaderList headers;
  std::string body;
  bool ended = false;
  Code reset;
};

// The frames that a server has sent.
class Heard {
 public:
  void Read(std::string_view bytes) {
    while (!bytes.empty()) {
      ASSERT_GE(bytes.size(), kFrameHeaderBytes);
      const FrameHeader header = FrameHeader::Parse(bytes.data());
      ASSERT_GE(bytes.size(), kFrameHeaderBytes + header.length);
      Take(header, bytes.substr(kFrameHeaderBytes, header.length));
      bytes.remove_prefix(kFrameHeaderBytes + header.length);
    }
  }
  std::map<uint32_t, Answer> answers;
  Code goaway;
  std::string why;
  uint32_t credit = 0;  // of the connection

 private:
  void Take(const FrameHeader& header, std::string_view payload) {
    const auto code = [&](size_t at) { return static_cast<ErrorCode>(internal::Get32(payload.data() + at)); };
    Answer& answer = answers[static_cast<uint32_t>(header.stream)];
    if (header.type == FrameType::kRstStream) answer.reset = code(0);
    if (header.type == FrameType::kGoaway) goaway = code(4), why = payload.substr(8);
    if (header.type == FrameType::kWindowUpdate && header.stream == 0)
      credit += internal::Get32(payload.data());
    if (header.type == FrameType::kData) answer.body += payload;
    if (header.type == FrameType::kHeaders) {
      EXPECT_TRUE(header.Has(kEndHeaders));
      EXPECT_TRUE(decoder_.Decode(payload, [&](const internal::HeaderField& field) {
        if (field.name == ":status") answer.statuses.push_back(std::stoi(std::string(field.value)));
        answer.headers.emplace_back(field.name, field.value);
      }));
    }
    const bool may_end = header.type == FrameType::kData || header.type == FrameType::kHeaders;
    answer.ended |= may_end && header.Has(kEndStream);
  }

  internal::HpackDecoder decoder_;
};

inline HeaderList Request(const HeaderList& more = {}) {
  HeaderList fields = {{":method", "POST"}, {":scheme", "http"}, {":path", "/p"}, {":authority", "h"}};
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}
// A request in which `instead` takes the place of one field.
inline HeaderList Without(std::string_view name, const HeaderList& instead = {}) {
  HeaderList fields = Request();
  std::erase_if(fields, [name](const auto& field) { return field.first == name; });
  fields.insert(fields.end(), instead.begin(), instead.end());
  return fields;
}

// A server, and what its client has heard of it. It answers no request by itself.
struct Server {
  Server() { EXPECT_TRUE(Send(kHello)); }
  bool Send(const std::string& bytes) {
    status = codec->Receive(bytes, &requests);
    std::string out;
    codec->Pull(&out, 1u << 20);
    heard.Read(out);
    return status.ok();
  }
  Answer& Of(uint32_t stream) { return heard.answers[stream]; }
  static TimePoint Time() { return time; }
  static inline TimePoint time{std::chrono::hours(1)};

  const HttpLimits limits = {.max_body_bytes = 100'000, .now = &Time};
  const std::unique_ptr<HttpServerCodec> codec = MakeHttp2Codec(limits);
  std::vector<HttpRequest> requests;
  Heard heard;
  absl::Status status;
};

struct Sent {
  HeaderList fields;
  std::optional<std::string> body = std::nullopt;  // none: HEADERS end the stream
  std::optional<HeaderList> trailers = std::nullopt;

  std::string Frames(uint32_t stream) const {
    const bool alone = !body && !trailers;
    std::string out = Frame(kHeaders, kEndHeaders | (alone ? kEndStream : 0), stream, Block(fields));
    if (body) out += Frame(kData, trailers ? 0 : kEndStream, stream, *body);
    if (trailers) out += Frame(kHeaders, kEndHeaders | kEndStream, stream, Block(*trailers));
    return out;
  }
};

}  // namespace curtail::wire
