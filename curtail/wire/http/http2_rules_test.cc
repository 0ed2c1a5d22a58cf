// SPDX-License-Identifier: Apache-2.0
//
// The server's end of HTTP/2 against clients that break the rules of RFC 9113. nghttp2's server gets the same requests, as a
// second opinion.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "curtail/wire/http/http2_server_testing.h"
#include "curtail/wire/raw_peer_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail::wire {
namespace {

using std::string_literals::operator""s;
using testing::HasSubstr;

// ----- malformed requests ---------------------------------------------------------------------------------

struct Case {
  Sent sent;
  bool taken;
  bool nghttp2_differs = false;
};

const Case kCases[] = {
    {{Request()}, true},
    {{Request(), "body"}, true},
    {{Request(), "body", HeaderList{{"x-sum", "1"}}}, true},
    // Pseudo-header fields (8.3).
    {{Without(":method")}, false},
    {{Without(":scheme")}, false},
    {{Without(":path")}, false},
    {{Request({{":path", "/q"}})}, false},
    {{Request({{":method", "GET"}})}, false},
    {{Request({{":authority", "h"}})}, false},
    {{Request({{":status", "200"}})}, false},
    {{Request({{":protocol", "websocket"}})}, false},
    {{Request({{":x", "1"}})}, false},
    {{Without(":path", {{"x", "1"}, {":path", "/p"}})}, false},
    {{Without(":method", {{":method", "G T"}})}, false},
    {{Without(":method", {{":method", ""}})}, false},
    {{Without(":method", {{":method", "M-SEARCH"}})}, true},
    {{{{":method", "CONNECT"}, {":authority", "h"}}}, false, /*nghttp2_differs=*/true},
    {{Without(":path", {{":path", ""}})}, false},
    {{Without(":path", {{":path", "p"}})}, false},
    {{Without(":path", {{":path", "http://h/p"}})}, false},
    {{Without(":path", {{":path", "/a b"}})}, false},
    {{Without(":path", {{":path", "/a\tb"}})}, false},
    {{Without(":path", {{":path", "/a\x7f"}})}, false},
    {{Without(":path", {{":path", "/\xc3\xa4"}})}, true},
    {{Without(":path", {{":path", "*"}})}, false},
    {{{{":method", "OPTIONS"}, {":scheme", "http"}, {":path", "*"}, {":authority", "h"}}}, true},
    // The host (8.3.1), and RFC 9112, 3.2. nghttp2 leaves their comparison to others.
    {{Without(":authority")}, false},
    {{Without(":authority", {{"host", "h"}})}, true},
    {{Without(":authority", {{":authority", ""}, {"host", "h"}})}, false},
    {{Without(":authority", {{":authority", ""}})}, false},
    {{Without(":authority", {{"host", ""}})}, false},
    {{Without(":authority", {{"host", "h"}, {"host", "h"}})}, false},
    {{Request({{"host", "H"}})}, true},
    {{Request({{"host", "g"}})}, false, true},
    {{Without(":authority", {{":authority", "user@h"}})}, false, true},
    {{Without(":authority", {{":authority", "[::1]:80"}})}, true},
    {{Without(":authority", {{":authority", "h/p"}})}, false},
    {{Without(":authority", {{"host", "h g"}})}, false},
    // Names and values (8.2.1).
    {{Request({{"Upper", "1"}})}, false},
    {{Request({{"", "1"}})}, false},
    {{Request({{"a b", "1"}})}, false},
    {{Request({{"a:", "1"}})}, false},
    {{Request({{"a\x80", "1"}})}, false},
    {{Request({{"a", "1\r2"}})}, false},
    {{Request({{"a", "1\n2"}})}, false},
    {{Request({{"a", "1\0"s + "2"}})}, false},
    {{Request({{"a", " 1"}})}, false},
    {{Request({{"a", "1\t"}})}, false},
    {{Request({{"a", ""}})}, true},
    // Fields of a connection (8.2.2).
    {{Request({{"connection", "close"}})}, false},
    {{Request({{"keep-alive", "5"}})}, false},
    {{Request({{"proxy-connection", "close"}})}, false},
    {{Request({{"transfer-encoding", "chunked"}})}, false},
    {{Request({{"upgrade", "h2c"}})}, false},
    {{Request({{"te", "trailers"}})}, true},
    {{Request({{"te", "gzip"}})}, false},
    {{Request({{"te", "trailers, gzip"}})}, false},
    // The length of the body (8.1.1).
    {{Request({{"content-length", "4"}}), "body"}, true},
    {{Request({{"content-length", "004"}}), "body"}, true},
    {{Request({{"content-length", "0"}})}, true},
    {{Request({{"content-length", "4"}, {"content-length", "4"}}), "body"}, true, true},
    {{Request({{"content-length", "4"}, {"content-length", "5"}}), "body"}, false},
    {{Request({{"content-length", "4, 4"}}), "body"}, false},
    {{Request({{"content-length", "3"}}), "body"}, false},
    {{Request({{"content-length", "5"}}), "body"}, false},
    {{Request({{"content-length", "5"}}), "body", HeaderList{{"x-sum", "1"}}}, false},
    {{Request({{"content-length", "4"}})}, false},
    {{Request({{"content-length", ""}})}, false},
    {{Request({{"content-length", "-0"}})}, false},
    {{Request({{"content-length", "+4"}}), "body"}, false},
    {{Request({{"content-length", "0x4"}}), "body"}, false},
    {{Request({{"content-length", "4 "}}), "body"}, false},
    {{Request({{"content-length", "18446744073709551620"}}), "body"}, false},
    // Trailers (8.1).
    {{Request(), "body", HeaderList{{":path", "/p"}}}, false},
    {{Request(), "body", HeaderList{{"x-sum", "1"}, {":status", "200"}}}, false},
    {{Request(), "body", HeaderList{{"Upper", "1"}}}, false},
    {{Request(), "body", HeaderList{{"connection", "close"}}}, false},
};

std::string Text(const Sent& sent) {
  std::string text;
  for (const auto& [name, value] : sent.fields) text += name + "=" + value + "; ";
  text += sent.body.value_or("no body");
  for (const auto& [name, value] : sent.trailers.value_or(HeaderList())) text += "; " + name + "=" + value;
  return text;
}

TEST(Http2Rules, MalformedRequestsAreResetAndTheConnectionGoesOn) {
  for (const Case& c : kCases) {
    Server server;
    ASSERT_TRUE(server.Send(c.sent.Frames(1))) << Text(c.sent) << server.status;
    EXPECT_EQ(server.requests.size(), c.taken ? 1u : 0u) << Text(c.sent);
    EXPECT_EQ(server.Of(1).reset, c.taken ? Code() : ErrorCode::kProtocolError) << Text(c.sent);
    for (const HttpRequest& request : server.requests)
      EXPECT_EQ(request.body, c.sent.body.value_or("")) << Text(c.sent);
    server.requests.clear();
    ASSERT_TRUE(server.Send(Sent{Request()}.Frames(3))) << Text(c.sent);
    EXPECT_EQ(server.requests.size(), 1u) << Text(c.sent);
    EXPECT_EQ(server.codec->in_flight(), c.taken ? 2u : 1u) << Text(c.sent);
  }
}

TEST(Http2Rules, Nghttp2FindsTheSameRequestsMalformed) {
  for (const Case& c : kCases) {
    RawPeer nghttp2(Role::kServer);
    const std::string bytes = kHello + c.sent.Frames(1);
    nghttp2_session_mem_recv(nghttp2.h2, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    Heard heard;
    heard.Read(nghttp2.Output());
    const bool taken = nghttp2.streams[1].ended && !heard.answers[1].reset && !heard.goaway;
    EXPECT_EQ(taken, c.taken != c.nghttp2_differs) << Text(c.sent);
  }
}

// ----- what is taken --------------------------------------------------------------------------------------

TEST(Http2Rules, CookiesAreJoinedAndTrailersDropped) {
  Server server;
  ASSERT_TRUE(server.Send(Sent{Request({{"cookie", "a=1"}, {"x", "y"}, {"cookie", "b=2"}, {"cookie", "c=3"}}),
                               "body", HeaderList{{"x-sum", "1"}, {"cookie", "d=4"}}}
                              .Frames(1)));
  ASSERT_EQ(server.requests.size(), 1u);
  const Metadata& headers = server.requests[0].headers;
  EXPECT_EQ(headers.Find("cookie"), "a=1; b=2; c=3");
  EXPECT_EQ(headers.Find("host"), "h");
  EXPECT_EQ(headers.Find("x"), "y");
  EXPECT_EQ(headers.size(), 3u);
}

TEST(Http2Rules, ABodyIsAskedForOnceAndOnlyIfItMayCome) {
  Server server;
  const HeaderList expects = Request({{"expect", "100-Continue"}});
  ASSERT_TRUE(server.Send(Frame(kHeaders, kEndHeaders, 1, Block(expects))));
  EXPECT_THAT(server.Of(1).statuses, testing::ElementsAre(100));
  EXPECT_FALSE(server.Of(1).ended);
  ASSERT_TRUE(server.Send(Frame(kData, kEndStream, 1, "body")));
  ASSERT_EQ(server.requests.size(), 1u);
  server.codec->Reply(1, {});
  ASSERT_TRUE(server.Send(Sent{expects}.Frames(3)));  // has none
  EXPECT_THAT(server.Of(1).statuses, testing::ElementsAre(100, 200));
  EXPECT_TRUE(server.Of(1).ended);
  EXPECT_TRUE(server.Of(3).statuses.empty());
  const HeaderList too_long = Request({{"expect", "100-continue"}, {"content-length", "100001"}});
  ASSERT_TRUE(server.Send(Frame(kHeaders, kEndHeaders, 5, Block(too_long))));
  EXPECT_THAT(server.Of(5).statuses, testing::ElementsAre(413));
}

TEST(Http2Rules, AnAnswerToHeadHasNoContent) {
  Server server;
  ASSERT_TRUE(server.Send(Sent{Without(":method", {{":method", "HEAD"}})}.Frames(1)));
  ASSERT_EQ(server.requests.size(), 1u);
  server.codec->Reply(1, {200, {}, "body"});
  ASSERT_TRUE(server.Send(""));
  EXPECT_TRUE(server.Of(1).ended);
  EXPECT_EQ(server.Of(1).body, "");
  EXPECT_THAT(server.Of(1).headers, testing::Contains(testing::Pair("content-length", "4")));
}

TEST(Http2Rules, PaddingIsTakenOffAndCountsForTheWindow) {
  Server server;
  const std::string padding(200, '\0');
  uint32_t sent = 0;
  const auto padded = [&](std::string_view body, uint8_t flags) {
    const std::string payload = "\xc8" + std::string(body) + padding;
    sent += static_cast<uint32_t>(payload.size());
    return Frame(kData, static_cast<uint8_t>(flags | internal::kPadded), 1, payload);
  };
  ASSERT_TRUE(
      server.Send(Frame(kHeaders, kEndHeaders | internal::kPadded, 1, "\xc8" + Block(Request()) + padding)));
  std::string body;
  for (int i = 0; i < 20'000; ++i, body += "b") ASSERT_TRUE(server.Send(padded("b", 0))) << server.heard.why;
  ASSERT_TRUE(server.Send(padded("", kEndStream)));
  ASSERT_EQ(server.requests.size(), 1u);
  EXPECT_EQ(server.requests[0].body, body);
  const uint32_t window = 4u << 20;
  EXPECT_GT(server.heard.credit + window, sent) << "it was given back on the way";
}

// ----- limits ---------------------------------------------------------------------------------------------

// The rest of a header that is too long still fills the table.
TEST(Http2Rules, ALongHeaderIsRefusedAndTheTableKeepsStep) {
  for (const bool ends : {false, true}) {
    Server server;
    std::string block = Block(Request());
    for (int i = 0; i < 20; ++i) block += Literal('\0', "x-long", std::string(1000, 'x'));
    block += Literal('\x40', "x-kept", "by the table");
    ASSERT_TRUE(server.Send(Frame(kHeaders, ends ? kEndStream : 0, 1, block.substr(0, 16'000)) +
                            Frame(kContinuation, kEndHeaders, 1, block.substr(16'000))));
    EXPECT_THAT(server.Of(1).statuses, testing::ElementsAre(431));
    EXPECT_TRUE(server.Of(1).ended);
    EXPECT_EQ(server.Of(1).reset, ends ? Code() : ErrorCode::kNoError) << "the rest of the body is of no use";
    EXPECT_EQ(server.codec->refused(), 1u);
    EXPECT_EQ(server.codec->in_flight(), 0u);
    EXPECT_EQ(server.codec->held_bytes(), 0u);
    ASSERT_TRUE(server.Send(Frame(kHeaders, kEndHeaders | kEndStream, 3, Block(Request()) + "\xbe")));
    ASSERT_EQ(server.requests.size(), 1u);
    EXPECT_EQ(server.requests[0].headers.Find("x-kept"), "by the table");
  }
}

// ----- frames that break the rules ------------------------------------------------------------------------

struct Broken {
  const char* name;
  std::string frames;  // after a request on stream 1 that is not whole
  Code goaway;
  Code reset = std::nullopt;  // of stream 1, instead
};

std::vector<Broken> BrokenFrames() {
  using enum ErrorCode;
  const std::string most = "\x7f\xff\xff\xff"s, request = Block(Request());
  const uint8_t padded = internal::kPadded;
  return {
      {"a window too large", Frame(kWindow, 0, 0, most), kFlowControlError},
      {"a stream's window too large", Frame(kWindow, 0, 1, most), {}, kFlowControlError},
      {"a window by nothing", Frame(kWindow, 0, 0, "\0\0\0\0"s), kProtocolError},
      {"a stream's window by nothing", Frame(kWindow, 0, 1, "\0\0\0\0"s), {}, kProtocolError},
      {"a window of an idle stream", Frame(kWindow, 0, 3, "\0\0\0\1"s), kProtocolError},
      {"a short WINDOW_UPDATE", Frame(kWindow, 0, 0, "\0\0\1"s), kFrameSizeError},
      {"an initial window too large", Frame(kSettings, 0, 0, "\0\4\x80\0\0\0"s), kFlowControlError},
      {"SETTINGS on a stream", Frame(kSettings, 0, 1, ""), kProtocolError},
      {"an acknowledgement with settings", Frame(kSettings, 1, 0, "\0\4\0\0\0\1"s), kFrameSizeError},
      {"a server's push", Frame(kSettings, 0, 0, "\0\2\0\0\0\2"s), kProtocolError},
      {"PUSH_PROMISE", Frame(5, 4, 1, "\0\0\0\2"s), kProtocolError},
      {"PING on a stream", Frame(kPing, 0, 1, "12345678"), kProtocolError},
      {"a short PING", Frame(kPing, 0, 0, "1234567"), kFrameSizeError},
      {"RST_STREAM of an idle stream", Frame(kReset, 0, 3, most), kProtocolError},
      {"DATA on an idle stream", Frame(kData, 0, 3, "x"), kProtocolError},
      {"DATA on no stream", Frame(kData, 0, 0, "x"), kProtocolError},
      {"padding longer than DATA", Frame(kData, padded, 1, "\2x"), kProtocolError},
      {"padded DATA without a length", Frame(kData, padded, 1, ""), kProtocolError},
      {"padding longer than HEADERS", Frame(kHeaders, padded | 4, 3, "\x7f\x83"), kProtocolError},
      {"HEADERS on an even stream", Frame(kHeaders, 4, 2, request), kProtocolError},
      {"HEADERS that do not end the body", Frame(kHeaders, 4, 1, Block({{"x", "y"}})), {}, kProtocolError},
      {"CONTINUATION of nothing", Frame(kContinuation, 4, 1, request), kProtocolError},
      {"CONTINUATION of another stream", Frame(kHeaders, 1, 3, "") + Frame(kContinuation, 4, 5, request),
       kProtocolError},
      {"DATA amid a header block", Frame(kHeaders, 1, 3, "") + Frame(kData, 0, 1, "x"), kProtocolError},
      {"a field that the table has not", Frame(kHeaders, 5, 3, "\xff\x7f"), kCompressionError},
      {"a frame longer than allowed", Frame(kPing, 0, 0, std::string(16'385, 'x')), kFrameSizeError},
  };
}

TEST(Http2Rules, FramesAtAWrongPlaceEndTheStreamOrTheConnection) {
  for (const Broken& c : BrokenFrames()) {
    Server server;
    ASSERT_TRUE(server.Send(Frame(kHeaders, kEndHeaders, 1, Block(Request()))));
    EXPECT_EQ(server.Send(c.frames), !c.goaway) << c.name << server.status;
    EXPECT_EQ(server.heard.goaway, c.goaway) << c.name << server.heard.why;
    EXPECT_EQ(server.Of(1).reset, c.reset) << c.name;
    EXPECT_TRUE(server.requests.empty()) << c.name;
  }
}

}  // namespace
}  // namespace curtail::wire
