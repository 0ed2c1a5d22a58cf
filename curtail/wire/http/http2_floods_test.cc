// SPDX-License-Identifier: Apache-2.0
//
// The server's end of HTTP/2 against clients that repeat what RFC 9113 allows.
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "curtail/wire/http/http2_server_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail::wire {
namespace {

using std::string_literals::operator""s;
using testing::HasSubstr;

struct Flood {
  const char* name;
  std::string begin;
  std::function<std::string(uint32_t stream)> again;  // a stream's id each time
  int taken;
  const char* why;
};

std::vector<Flood> Floods() {
  const std::string request = Block(Request());
  const auto same = [](std::string bytes) { return [bytes](uint32_t) { return bytes; }; };
  const auto thousand = [same](const std::string& frame) {
    std::string bytes;
    for (int i = 0; i < 1000; ++i) bytes += frame;
    return same(bytes);
  };
  const auto request_then = [request](uint8_t type, std::string payload) {
    return [=](uint32_t stream) {
      return Frame(kHeaders, kEndHeaders, stream, request) + Frame(type, 0, stream, payload);
    };
  };
  const std::string open = Frame(kHeaders, kEndHeaders, 1, request), cancel = "\0\0\0\x8"s;
  return {
      {"requests and their resets", "", request_then(kReset, cancel), 1100, "too many resets"},
      {"resets of a stream that is gone", open, same(Frame(kReset, 0, 1, cancel)), 1100, "too many resets"},
      {"requests that the client spoils", "", request_then(kWindow, "\0\0\0\0"s), 220, "too many malformed"},
      {"malformed requests", "", [](uint32_t id) { return Sent{Without(":path")}.Frames(id); }, 220,
       "too many malformed"},
      {"headers that are too long", "",
       [](uint32_t id) { return Sent{Request({{"x", std::string(16'384, 'x')}})}.Frames(id); }, 1100,
       "too many resets"},
      {"SETTINGS", "", same(Frame(kSettings, 0, 0, "")), 109, "too many settings"},
      {"PING", "", thousand(Frame(kPing, 0, 0, "12345678")), 200, "too many empty frames"},
      {"GOAWAY", "", thousand(Frame(kGoaway, 0, 0, std::string(8, '\0'))), 200, "too many empty frames"},
      {"PRIORITY", "", thousand(Frame(kPriority, 0, 1, "\0\0\0\0\1"s)), 200, "too many empty frames"},
      {"empty DATA", open, thousand(Frame(kData, 0, 1, "")), 200, "too many empty frames"},
      {"WINDOW_UPDATE", "", thousand(Frame(kWindow, 0, 0, "\0\0\0\1"s)), 200, "too many empty frames"},
      {"frames of an unknown type", "", thousand(Frame(77, 0, 0, "")), 200, "too many empty frames"},
      {"empty CONTINUATION", Frame(kHeaders, 0, 1, ""), same(Frame(kContinuation, 0, 1, "")), 64,
       "a header block has more than 262144 bytes or 64 frames"},
  };
}

// One second, at whose beginning no allowance was used.
TEST(Http2Floods, EachRepetitionHasItsEnd) {
  for (const Flood& flood : Floods()) {
    Server server;
    ASSERT_TRUE(server.Send(flood.begin)) << flood.name;
    int taken = 0;
    for (uint32_t id = 1; taken < 2000 && server.Send(flood.again(id)); id += 2) ++taken;
    EXPECT_EQ(taken, flood.taken) << flood.name;
    EXPECT_EQ(server.heard.goaway, ErrorCode::kEnhanceYourCalm) << flood.name;
    EXPECT_THAT(server.heard.why, HasSubstr(flood.why)) << flood.name;
    EXPECT_LE(server.codec->held_bytes(), 1000u) << flood.name;
    EXPECT_TRUE(server.requests.empty()) << flood.name;
  }
}

TEST(Http2Floods, ClientsMayGoOnResettingAtALowRate) {
  Server server;
  uint32_t id = 1;
  const auto reset = [&](int times) {
    for (int i = 0; i < times; ++i, id += 2) {
      ASSERT_TRUE(server.Send(Sent{Request()}.Frames(id) + Frame(kReset, 0, id, "\0\0\0\x8"s))) << i;
    }
  };
  reset(1000);
  for (int second = 0; second < 20; ++second) {
    Server::time += std::chrono::seconds(1);
    reset(100);
  }
  EXPECT_EQ(server.codec->in_flight(), 0u);
}

// Without reading: what it makes the server write has an end, and counts.
TEST(Http2Floods, AnswersToPingAreHeldToALimit) {
  std::string pings = kHello;
  for (int i = 0; i < 9'000; ++i) pings += Frame(kPing, 0, 0, "12345678");
  const auto codec = MakeHttp2Codec({});
  std::vector<HttpRequest> requests;
  ASSERT_TRUE(codec->Receive(pings, &requests).ok());
  EXPECT_GE(codec->held_bytes(), 9'000u * 17);
  EXPECT_EQ(codec->owed_bytes(), codec->held_bytes());
  for (int i = 0; i < 1'001; ++i) pings += Frame(kPing, 0, 0, "12345678");
  const auto other = MakeHttp2Codec({});
  EXPECT_THAT(other->Receive(pings, &requests).message(), HasSubstr("too much to answer"));
}

TEST(Http2Floods, AStreamBeyondTheLimitIsRefusedUnlooked) {
  Server server;
  for (uint32_t id = 1; id <= 199; id += 2) ASSERT_TRUE(server.Send(Sent{Request()}.Frames(id)));
  EXPECT_EQ(server.requests.size(), 100u);
  ASSERT_TRUE(server.Send(Sent{Request()}.Frames(201)));
  EXPECT_EQ(server.Of(201).reset, ErrorCode::kRefusedStream);
  server.codec->Reply(1, {});
  ASSERT_TRUE(server.Send(""));
  ASSERT_TRUE(server.Send(Sent{Request()}.Frames(203)));
  EXPECT_EQ(server.requests.size(), 101u);
}

}  // namespace
}  // namespace curtail::wire
