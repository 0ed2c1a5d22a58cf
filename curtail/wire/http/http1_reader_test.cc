// SPDX-License-Identifier: Apache-2.0
#include "curtail/wire/http/http1_reader.h"

#include <string>
#include <string_view>

#include "curtail/base/strings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail::internal {
namespace {

using testing::HasSubstr;

constexpr HttpReplyLimits kLimits{.max_body_bytes = 1000};

// The outcome of some bytes: given at once, or one by one.
struct Outcome {
  absl::Status status;
  bool done = false;
  std::string_view left;
};

Outcome Feed(Http1Reader& reader, std::string_view bytes, bool head_only = false, size_t step = 1u << 20) {
  reader.Begin(head_only);
  Outcome outcome;
  while (!bytes.empty() && outcome.status.ok() && !reader.done()) {
    std::string_view piece = bytes.substr(0, step);
    const size_t given = piece.size();
    outcome.status = reader.Read(&piece);
    bytes.remove_prefix(given - piece.size());
  }
  outcome.done = reader.done();
  outcome.left = bytes;
  return outcome;
}

struct Reply {
  int status = 0;
  std::string reason;
  std::string body;
  bool keep_alive = false;
  bool operator==(const Reply&) const = default;
};

// A reply that must be whole after all of `bytes`, however they arrive.
Reply Whole(std::string_view bytes, bool head_only = false) {
  Reply at_once;
  for (const size_t step : {size_t{1} << 20, size_t{1}, size_t{7}}) {
    Http1Reader reader(kLimits);
    const Outcome outcome = Feed(reader, bytes, head_only, step);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status << " for " << bytes;
    EXPECT_TRUE(outcome.done) << bytes;
    EXPECT_EQ(outcome.left, "") << bytes;
    const Reply reply{reader.status(), reader.reason(), reader.body(), reader.keep_alive()};
    if (step > 7) at_once = reply;
    EXPECT_EQ(reply, at_once) << bytes;
  }
  return at_once;
}

absl::Status Refusal(std::string_view bytes) {
  absl::Status first;
  for (const size_t step : {size_t{1} << 20, size_t{1}}) {
    Http1Reader reader(kLimits);
    const Outcome outcome = Feed(reader, bytes, false, step);
    EXPECT_FALSE(outcome.status.ok()) << bytes;
    if (step > 1) first = outcome.status;
    else EXPECT_EQ(outcome.status.code(), first.code()) << bytes;
  }
  return first;
}

TEST(Http1Reader, ReadsBodiesByLengthAndByChunks) {
  EXPECT_EQ(Whole("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), (Reply{200, "OK", "hello", true}));
  EXPECT_EQ(Whole("HTTP/1.1 200 OK\nCONTENT-LENGTH:0\n\n"), (Reply{200, "OK", "", true})) << "bare line ends";
  EXPECT_EQ(Whole("HTTP/1.1 201\r\nTransfer-Encoding: Chunked\r\nContent-Length: 99\r\n\r\n"
                  "5;a=b\r\nhello\r\nA \r\n, world!!!\r\n0\r\nX-Trailer: 1\r\n\r\n"),
            (Reply{201, "", "hello, world!!!", true}));
}

TEST(Http1Reader, KnowsRepliesWithoutABody) {
  EXPECT_EQ(Whole("HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n"),
            (Reply{204, "No Content", "", true}));
  EXPECT_EQ(Whole("HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n").status, 304);
  EXPECT_EQ(Whole("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", /*head_only=*/true).status, 200);
}

TEST(Http1Reader, PassesOverInterimReplies) {
  EXPECT_EQ(Whole("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
                  "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok"),
            (Reply{200, "", "ok", true}));
  EXPECT_THAT(Message(Refusal("HTTP/1.1 101 Switching Protocols\r\n\r\n")), HasSubstr("another protocol"));
}

TEST(Http1Reader, KeepsAConnectionAsTheServerSays) {
  const auto keeps = [](std::string_view version, std::string_view field) {
    return Whole(Join("HTTP/1.", version, " 200 OK\r\n", field, "Content-Length: 0\r\n\r\n")).keep_alive;
  };
  EXPECT_TRUE(keeps("1", ""));
  EXPECT_FALSE(keeps("1", "Connection: foo, Close\r\n"));
  EXPECT_FALSE(keeps("0", ""));
  EXPECT_TRUE(keeps("0", "Connection: Keep-Alive\r\n"));
}

TEST(Http1Reader, ABodyWithoutALengthEndsWithTheConnection) {
  Http1Reader reader(kLimits);
  const Outcome outcome = Feed(reader, "HTTP/1.1 200 OK\r\n\r\nhello");
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_FALSE(outcome.done);
  reader.End();
  EXPECT_TRUE(reader.done());
  EXPECT_FALSE(reader.keep_alive());
  EXPECT_EQ(reader.body(), "hello");
}

TEST(Http1Reader, AReplyThatWasCutShortIsNone) {
  for (const char* bytes : {"HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
                            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"}) {
    Http1Reader reader(kLimits);
    EXPECT_TRUE(Feed(reader, bytes).status.ok());
    reader.End();
    EXPECT_FALSE(reader.done()) << bytes;
  }
}

TEST(Http1Reader, LeavesWhatFollowsAReply) {
  Http1Reader reader(kLimits);
  EXPECT_EQ(Feed(reader, "HTTP/1.1 204 x\r\n\r\nHTTP/1.1 200").left, "HTTP/1.1 200");
}

TEST(Http1Reader, RefusesWhatIsNoHttp) {
  for (const char* bytes :
       {"SSH-2.0-OpenSSH\r\n", "HTTP/2.0 200 OK\r\n", "HTTP/1.1 20 OK\r\n", "HTTP/1.1 2000 OK\r\n",
        "HTTP/1.1 099 OK\r\n", "HTTP/1.1  200 OK\r\n", "\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n",
        "HTTP/1.1 200 OK\r\n: x\r\n", "HTTP/1.1 200 OK\r\na : x\r\n",
        "HTTP/1.1 200 OK\r\na: x\r\n folded\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: \r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n11111111111111111\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n"}) {
    EXPECT_TRUE(absl::IsUnavailable(Refusal(bytes))) << bytes;
  }
  EXPECT_TRUE(absl::IsUnavailable(Refusal(std::string_view("\0\0\x12\4\0\0\0\0\0", 9))))
      << "HTTP/2, without a line";
  EXPECT_TRUE(absl::IsUnimplemented(Refusal("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n")));
}

TEST(Http1Reader, HoldsServersToItsLimits) {
  const std::string line(2000, 'x');
  std::string head = "HTTP/1.1 200 OK\r\n";
  while (head.size() <= HttpReplyLimits::kMaxHeadBytes) head += Join("a: ", line, "\r\n");
  std::string hints, trailers = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n";
  while (hints.size() <= HttpReplyLimits::kMaxHeadBytes) hints += "HTTP/1.1 103 Early Hints\r\n\r\n";
  while (trailers.size() <= HttpReplyLimits::kMaxHeadBytes + 100) trailers += Join("a: ", line, "\r\n");
  const std::string endless = "HTTP/1.1 200 OK\r\na: " + std::string(HttpReplyLimits::kMaxHeadBytes, 'x');
  const std::string chunk = Join("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", line);
  const std::string body = "HTTP/1.1 200 OK\r\n\r\n" + std::string(1001, 'x');
  const std::string chunks =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1000\r\n" + std::string(1001, 'x');
  for (const std::string& bytes : {head, hints, trailers, endless, chunk, body, chunks,
                                   std::string("HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n")}) {
    EXPECT_TRUE(absl::IsResourceExhausted(Refusal(bytes))) << bytes.substr(0, 80);
  }
  EXPECT_EQ(Whole("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + std::string(1000, 'x')).body.size(),
            1000u);
}

TEST(Http1Reader, ShowsNoControlCharacters) {
  EXPECT_EQ(Whole("HTTP/1.1 204 \x1b[31mred\x7f\r\n\r\n").reason, "?[31mred?");
  EXPECT_THAT(Message(Refusal("\x1b[31m\r\n")), HasSubstr("\"?[31m\""));
}

}  // namespace
}  // namespace curtail::internal
