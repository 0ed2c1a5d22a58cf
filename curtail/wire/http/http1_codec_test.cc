// SPDX-License-Identifier: Apache-2.0
//
// The server's end of HTTP/1.1 against clients that are not honest. Each input arrives at once, and byte by byte.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "curtail/base/strings.h"
#include "curtail/wire/http/http_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail::wire {
namespace {

using std::string_literals::operator""s;
using testing::HasSubstr;
using testing::StartsWith;

constexpr HttpLimits kLimits{.max_head_bytes = 2000, .max_body_bytes = 1000};
constexpr std::string_view kSmuggled = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";

// The outcome of some bytes.
struct Outcome {
  std::vector<HttpRequest> requests;
  std::string out;
  bool finished = false;
  size_t most_held = 0;
};

// Requests are answered at once.
Outcome Receive(std::string_view bytes, size_t step) {
  Outcome outcome;
  const auto codec = MakeHttp1Codec(kLimits);
  while (!codec->Finished() && (!bytes.empty() || codec->held_bytes() > 0)) {
    std::vector<HttpRequest> requests;
    EXPECT_TRUE(codec->Receive(bytes.substr(0, step), &requests).ok());
    outcome.most_held = std::max(outcome.most_held, codec->held_bytes());
    for (HttpRequest& request : requests) {
      codec->Reply(request.stream, {.status = 200, .headers = {}, .body = request.body});
      outcome.requests.push_back(std::move(request));
    }
    if (bytes.empty() && requests.empty()) break;
    bytes.remove_prefix(std::min(step, bytes.size()));
  }
  codec->Pull(&outcome.out, SIZE_MAX);
  outcome.finished = codec->Finished();
  return outcome;
}

// The number of the answer to a request that the codec refuses; it takes nothing behind it.
int RefusalOf(const std::string& bytes) {
  int first = 0;
  for (const size_t step : {size_t{1} << 20, size_t{1}, size_t{3}}) {
    const Outcome outcome = Receive(Join(bytes, kSmuggled), step);
    EXPECT_TRUE(outcome.requests.empty()) << bytes;
    EXPECT_TRUE(outcome.finished) << bytes;
    EXPECT_THAT(outcome.out, HasSubstr("connection: close\r\n")) << bytes;
    EXPECT_LT(outcome.most_held, kLimits.max_head_bytes + kLimits.max_body_bytes + bytes.size() + 500);
    const int status = outcome.out.size() < 12 ? 0 : std::stoi(outcome.out.substr(9));
    if (first == 0) first = status;
    EXPECT_EQ(status, first) << bytes << " in pieces of " << step;
  }
  return first;
}

std::string Get(std::string_view fields) { return Join("GET / HTTP/1.1\r\nHost: x\r\n", fields, "\r\n"); }
std::string Chunked(std::string_view body) {
  return Join("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", body);
}

// RFC 9112, 6.3 and 11.2: two readers would find the end of these, or their host, in different places.
TEST(Http1Codec, RefusesWhatReadersUnderstandDifferently) {
  const std::string long_zeros(17, '0');
  for (const std::string& bytes : {
           // How long it is.
           Get("Transfer-Encoding: xchunked\r\n"),
           Get("Transfer-Encoding: chunked, identity\r\n"),
           Get("Transfer-Encoding: identity\r\n"),
           Get("Transfer-Encoding: gzip, chunked\r\n"),
           Get("Transfer-Encoding: chunked, chunked\r\n"),
           Get("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
           Get("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"),
           Get("Transfer-Encoding: \"chunked\"\r\n"),
           Get("Transfer-Encoding: chunked;q=1\r\n"),
           Get("Transfer-Encoding: \x0b"
               "chunked\r\n"),
           Get("Transfer-Encoding:\r\n"),
           Get("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"),
           Get("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
           "POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"s,
           Get("Content-Length: 2, 2\r\n"),
           Get("Content-Length: 2\r\nContent-Length: 2\r\n"),
           Get("Content-Length: 2\r\nContent-Length: 3\r\n"),
           Get("Content-Length: +2\r\n"),
           Get("Content-Length: -2\r\n"),
           Get("Content-Length: 0x2\r\n"),
           Get("Content-Length: 2 2\r\n"),
           Get("Content-Length: 2a\r\n"),
           Get("Content-Length:\r\n"),
           Get("Content-Length: 99999999999999999999\r\n"),
           Get("Content-Length: 18446744073709551616\r\n"),
           // Its lines.
           "GET / HTTP/1.1\nHost: x\n\n"s,
           "GET / HTTP/1.1\r\nHost: x\n\r\n"s,
           "GET / HTTP/1.1\r\nHost: x\r\n\n"s,
           "GET / HTTP/1.1\rHost: x\r\r\n\r\n"s,
           Get("a: b\rc: d\r\n"),
           Get("a: b\r\r\n"),
           Get("a: b\r\n folded\r\n"),
           Get("a: b\r\n\tfolded\r\n"),
           "GET / HTTP/1.1\r\n Host: x\r\n\r\n"s,
           "GET / HTTP/1.1\r\n\r\n\r\n"s,
           Get("Content-Length : 5\r\n"),
           Get("Content-Length\t: 5\r\n"),
           Get("no colon\r\n"),
           Get(": no name\r\n"),
           Get("a b: c\r\n"),
           Get("a\0b: c\r\n"s),
           Get("a: b\0c\r\n"s),
           Get("a: b\x7f\r\n"),
           Get("\xc3\xa4: b\r\n"),
           Get("(a): b\r\n"),
           // Its host.
           "GET / HTTP/1.1\r\n\r\n"s,
           "GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n"s,
           "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"s,
           "GET / HTTP/1.0\r\nHost: x\r\nHost: y\r\n\r\n"s,
           "GET / HTTP/1.1\r\nHost: x, y\r\n\r\n"s,
           "GET / HTTP/1.1\r\nHost: user@x\r\n\r\n"s,
           "GET / HTTP/1.1\r\nHost: x/y\r\n\r\n"s,
           "GET / HTTP/1.1\r\nHost: x y\r\n\r\n"s,
           "GET http:///path HTTP/1.1\r\nHost: x\r\n\r\n"s,
           "GET http://user@y/ HTTP/1.1\r\nHost: x\r\n\r\n"s,
           "GET http://y\\z/ HTTP/1.1\r\nHost: x\r\n\r\n"s,
           // Its chunks.
           Chunked("-1\r\n"),
           Chunked("+1\r\na\r\n0\r\n\r\n"),
           Chunked("0x1\r\na\r\n0\r\n\r\n"),
           Chunked(" 1\r\na\r\n0\r\n\r\n"),
           Chunked("1 \r\na\r\n0\r\n\r\n"),
           Chunked("1 a\r\na\r\n0\r\n\r\n"),
           Chunked("\r\n"),
           Chunked(";a\r\n"),
           Chunked("g\r\n"),
           Chunked("1\na\n0\n\n"),
           Chunked("1;a\nb\r\na\r\n0\r\n\r\n"),
           Chunked("1;a\rb\r\na\r\n0\r\n\r\n"),
           Chunked("1\r\nab0\r\n\r\n"),
           Chunked("1\r\na0\r\n\r\n"),
           Chunked("1\r\na\n0\r\n\r\n"),
           Chunked("10000000000000000\r\n"),
           Chunked("0\r\na b: c\r\n\r\n"),
           Chunked("0\r\na: b\r\n folded\r\n\r\n"),
           Chunked("0\r\na: b\n\r\n"),
           // Its first line.
           "\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"s,
           " GET / HTTP/1.1\r\nHost: x\r\n\r\n"s,
           "GET  / HTTP/1.1\r\nHost: x\r\n\r\n"s,
           "GET /  HTTP/1.1\r\nHost: x\r\n\r\n"s,
           "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n"s,
           "GET\t/ HTTP/1.1\r\nHost: x\r\n\r\n"s,
           "GET / HTTP/1.1 \r\nHost: x\r\n\r\n"s,
           "GET / HTTP/1.12\r\nHost: x\r\n\r\n"s,
           "GET / HTTP/1.x\r\nHost: x\r\n\r\n"s,
           "GET / HTTP/2.0\r\nHost: x\r\n\r\n"s,
           "GET / http/1.1\r\nHost: x\r\n\r\n"s,
           "GET /\r\nHost: x\r\n\r\n"s,
           "GET\r\n\r\n"s,
           "/ HTTP/1.1\r\nHost: x\r\n\r\n"s,
           "G(T / HTTP/1.1\r\nHost: x\r\n\r\n"s,
           "GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n"s,
           "GET /\xc3\xa4 HTTP/1.1\r\nHost: x\r\n\r\n"s,
           "GET path HTTP/1.1\r\nHost: x\r\n\r\n"s,
           "GET * HTTP/1.1\r\nHost: x\r\n\r\n"s,
           "CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n"s,
           "GET ftp://x/ HTTP/1.1\r\nHost: x\r\n\r\n"s,
           "\x16\x03\x01\r\n\r\n"s,
       }) {
    EXPECT_EQ(RefusalOf(bytes), 400) << bytes;
  }
}

TEST(Http1Codec, WhatIsNotHttpIsNotWaitedFor) {
  const auto codec = MakeHttp1Codec(kLimits);
  std::vector<HttpRequest> requests;
  ASSERT_TRUE(codec->Receive("\x16\x03\x01", &requests).ok());
  EXPECT_TRUE(codec->Finished());
}

// A field in the trailers of more than 64 KiB ended every process that had a port of HTTP/1.1.
TEST(Http1Codec, BoundsWhatHasNoEnd) {
  const std::string line = Join("a: ", std::string(100'000, 'x'), "\r\n");
  std::string fields, extensions, empty;
  for (int i = 0; i < 1000; ++i) {
    fields += "a: b\r\n";
    extensions += "1;ab\r\nx\r\n";
  }
  for (const std::string& bytes : {Get(line), Get(fields), Join("GET /", line), Chunked("0\r\n" + line),
                                   Chunked("0\r\n" + fields), Chunked("1;" + line), Chunked(extensions)}) {
    EXPECT_EQ(RefusalOf(bytes), 431) << bytes.substr(0, 80);
  }
  for (const std::string& bytes :
       {Get("Content-Length: 1001\r\n"), Get("Content-Length: 18446744073709551615\r\n"), Chunked("3e9\r\n"),
        Chunked("3e8\r\n" + std::string(1000, 'x') + "\r\n1\r\n"), Chunked("ffffffffffffffff\r\n")}) {
    EXPECT_EQ(RefusalOf(bytes), 413) << bytes.substr(0, 80);
  }
}

// The one request that all of `bytes` are.
HttpRequest Whole(const std::string& bytes) {
  HttpRequest request;
  for (const size_t step : {size_t{1} << 20, size_t{1}, size_t{7}}) {
    const Outcome outcome = Receive(bytes, step);
    EXPECT_EQ(outcome.requests.size(), 1u) << bytes << outcome.out;
    EXPECT_THAT(outcome.out, StartsWith("HTTP/1.1 200 OK\r\n")) << bytes;
    if (outcome.requests.size() == 1) request = outcome.requests[0];
  }
  return request;
}

TEST(Http1Codec, TakesRequests) {
  const HttpRequest get =
      Whole("\r\nGET /path?q HTTP/1.1\r\nHOST: x.example:80\r\nA:\tb c \t\r\nEmpty:\r\nx: \xc3\xa4\r\n\r\n");
  EXPECT_EQ(get.verb, "GET");
  EXPECT_EQ(get.target, "/path?q");
  EXPECT_EQ(get.headers.Find("host"), "x.example:80");
  EXPECT_EQ(get.headers.Find("a"), "b c");
  EXPECT_EQ(get.headers.Find("empty"), "");
  EXPECT_EQ(get.headers.Find("x"), "\xc3\xa4");
  EXPECT_EQ(Whole(Get("Content-Length: 005\r\n") + "hello").body, "hello");
  EXPECT_EQ(Whole("GET / HTTP/1.0\r\n\r\n").headers.Find("host"), std::nullopt);
  EXPECT_EQ(Whole("OPTIONS * HTTP/1.1\r\nHost: [::1]:80\r\n\r\n").target, "*");
  EXPECT_EQ(Whole("GET / HTTP/1.1\r\nHost:\r\n\r\n").headers.Find("host"), "");
  const HttpRequest post =
      Whole(Chunked("5;a=\"b\";c\r\nhello\r\nA ; d\r\n, world!!!\r\n00\r\nHost: y\r\nTrailer: 1\r\n\r\n"));
  EXPECT_EQ(post.body, "hello, world!!!");
  EXPECT_EQ(post.headers.Find("trailer"), std::nullopt);
  EXPECT_EQ(post.headers.Find("host"), "x");
}

TEST(Http1Codec, TheHostOfAWholeUrlCounts) {
  const HttpRequest request = Whole("GET HTTP://y:8/path HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(request.target, "HTTP://y:8/path");
  EXPECT_EQ(request.headers.Find("host"), "y:8");
}

TEST(Http1Codec, SaysOnceThatABodyMayCome) {
  for (const size_t step : {size_t{1} << 20, size_t{1}}) {
    const auto codec = MakeHttp1Codec(kLimits);
    std::vector<HttpRequest> requests;
    for (const std::string_view bytes :
         {"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\nContent-Length: 4\r\n\r\n", "bo", "dy"}) {
      for (size_t i = 0; i < bytes.size(); i += step) {
        ASSERT_TRUE(codec->Receive(bytes.substr(i, step), &requests).ok());
      }
    }
    std::string out;
    codec->Pull(&out, SIZE_MAX);
    EXPECT_EQ(out, "HTTP/1.1 100 Continue\r\n\r\n");
    EXPECT_EQ(requests.size(), 1u);
  }
  for (const char* needs_none : {"HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\r\n",
                                 "HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n"}) {
    EXPECT_THAT(Receive(Join("POST / ", needs_none), 1000).out, StartsWith("HTTP/1.1 200"));
  }
  const auto codec = MakeHttp1Codec(kLimits);
  std::vector<HttpRequest> requests;
  ASSERT_TRUE(
      codec->Receive("POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n", &requests).ok());
  std::string out;
  codec->Pull(&out, SIZE_MAX);
  EXPECT_EQ(out, "") << "HTTP/1.0 has no such answer";
}

// Property: a client that does not take its answers is not read, and each of its bytes is moved a few times at most.
TEST(Http1Codec, AClientThatLagsIsNotRead) {
  const auto codec = MakeHttp1Codec(kLimits);
  std::string many;
  for (int i = 0; i < 10'000; ++i) many += Get("");
  std::vector<HttpRequest> requests;
  ASSERT_TRUE(codec->Receive(many, &requests).ok());
  size_t answered = 0, at_once = 0;
  std::string out;
  while (codec->WantsInput() || !requests.empty() || codec->owed_bytes() > 0) {
    for (const HttpRequest& request : requests) {
      codec->Reply(request.stream, {.status = 200, .headers = {}, .body = std::string(10'000, 'x')});
      ++answered, ++at_once;
    }
    requests.clear();
    ASSERT_TRUE(codec->Receive({}, &requests).ok());
    EXPECT_LT(codec->owed_bytes(), 100'000u);
    if (!requests.empty()) continue;
    EXPECT_FALSE(codec->in_request());
    EXPECT_LE(at_once, 8u);
    at_once = 0;
    if (answered == 10'000) break;
    while (codec->owed_bytes() > 0) {
      out.clear();
      codec->Pull(&out, 1000);
      EXPECT_LE(out.size(), 1000u);
    }
    ASSERT_TRUE(codec->Receive({}, &requests).ok());
  }
  EXPECT_EQ(answered, 10'000u);
}

}  // namespace
}  // namespace curtail::wire
