// SPDX-License-Identifier: Apache-2.0
//
// Streams through the gateway, from a real server to sockets.
#include <chrono>
#include <string>

#include "curtail/base/strings.h"
#include "curtail/base/testing.h"
#include "curtail/gateway/testing/gateway_fixture.h"
#include "curtail/load/drive/runner.h"
#include "curtail/load/message/http_workload.h"
#include "curtail/wire/metadata.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail::gateway {
namespace {

using std::chrono::milliseconds;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using std::string_literals::operator""s;

class GatewayStreamTest : public GatewayTest {
 protected:
  // The answer to a request that streams.
  std::string Stream(std::string_view verb_and_path, std::string_view body = {},
                     std::string_view headers = {}) {
    Peer peer = Connect();
    Send(peer, verb_and_path, body, headers);
    return peer.ReadChunks();
  }
  static void Send(Peer& peer, std::string_view verb_and_path, std::string_view body = {},
                   std::string_view headers = {}) {
    peer.Write(Join(verb_and_path, " HTTP/1.1\r\nhost: x\r\n", headers, "content-length: ", body.size(),
                    "\r\n\r\n", body));
  }
  // The messages that the server wrote once it writes no more.
  int SentAtStandstill() const {
    const Deadline deadline = Deadline::In(kMaxTestWait);
    int sent = 0;
    for (Deadline still = Deadline::In(milliseconds(200)); !still.Expired() && !deadline.Expired();) {
      if (sent != library_->sent()) still = Deadline::In(milliseconds(200));
      sent = library_->sent();
      BetweenLooks();
    }
    return sent;
  }
  static std::string WatchFrame(const library::WatchRequest& request) {
    const std::string message = request.SerializeAsString();
    return "\0\0\0\0"s + static_cast<char>(message.size()) + message;
  }
};

constexpr char kLinesType[] = "content-type: application/x-ndjson\r\n";
constexpr char kWebType[] = "content-type: application/grpc-web+proto\r\n";

TEST_F(GatewayStreamTest, MessagesAreLinesOfJson) {
  const std::string reply = Stream("GET /v1/watch/a?count=3");
  EXPECT_THAT(reply, AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr(kLinesType),
                           HasSubstr("grpc-metadata-x-shelf: a\r\n")));
  EXPECT_THAT(reply, EndsWith("\r\n\r\n{\"result\":{\"name\":\"a/0\"}}\n{\"result\":{\"name\":\"a/1\"}}\n"
                              "{\"result\":{\"name\":\"a/2\"}}\n"));
  const std::string by_name = Stream("POST /library.Library/Watch", R"({"shelf":"b","count":1})",
                                     "content-type: application/json\r\n");
  EXPECT_THAT(by_name, EndsWith("\r\n\r\n{\"result\":{\"name\":\"b/0\"}}\n"));
  EXPECT_THAT(Stream("GET /v1/watch/none"), AllOf(StartsWith("HTTP/1.1 200"), EndsWith("\r\n\r\n")));
}

TEST_F(GatewayStreamTest, AConnectionGoesOnBehindAStream) {
  Peer peer = Connect();
  Send(peer, "GET /v1/watch/a?count=2");
  Send(peer, "GET /v1/shelves/1/books/2");
  EXPECT_THAT(peer.ReadUntil("as of 0"), HasSubstr("a/1\"}}\n\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n"));
}

TEST_F(GatewayStreamTest, AnOldClientReadsToTheEndOfTheConnection) {
  Peer peer = Connect();
  peer.Write("GET /v1/watch/a?count=2 HTTP/1.0\r\n\r\n");
  const std::string reply = peer.ReadUntil("a/1\"}}\n");
  EXPECT_THAT(reply, AllOf(HasSubstr("connection: close\r\n"), Not(HasSubstr("chunked"))));
  EXPECT_THAT(reply, EndsWith("\r\n\r\n{\"result\":{\"name\":\"a/0\"}}\n{\"result\":{\"name\":\"a/1\"}}\n"));
  EXPECT_TRUE(peer.Closed());
  EXPECT_FALSE(peer.Reset());
}

TEST_F(GatewayStreamTest, AnErrorIsTheLastLineOrTheStatus) {
  EXPECT_THAT(Stream("GET /v1/watch/a?count=1&failWith=8"),
              AllOf(StartsWith("HTTP/1.1 200"),
                    EndsWith("{\"result\":{\"name\":\"a/0\"}}\n"
                             "{\"error\":{\"code\":8,\"message\":\"the shelf fell\",\"details\":[]}}\n")));
  EXPECT_THAT(Ask("GET /v1/watch/a?failWith=8"),
              AllOf(StartsWith("HTTP/1.1 429"), HasSubstr("content-type: application/json\r\n"),
                    HasSubstr("grpc-metadata-x-shelf: a\r\n"),
                    EndsWith("{\"code\":8,\"message\":\"the shelf fell\",\"details\":[]}")));
  EXPECT_EQ(gateway().stats().failed, 0u);
  EXPECT_THAT(Stream("GET /v1/watch/a?count=1&failWith=13"), HasSubstr("\"error\""));
  EXPECT_EQ(gateway().stats().failed, 1u);
  server_.reset();
  EXPECT_THAT(Ask("GET /v1/watch/a?count=1"), StartsWith("HTTP/1.1 503"));
}

TEST_F(GatewayStreamTest, GrpcWebHasAFrameAMessage) {
  library::WatchRequest request;
  request.set_shelf("a");
  request.set_count(2);
  const std::string frames = "\0\0\0\0\5\n\3a/0\0\0\0\0\5\n\3a/1"s;
  EXPECT_THAT(Stream("POST /library.Library/Watch", WatchFrame(request), kWebType),
              AllOf(HasSubstr(kWebType), HasSubstr("x-shelf: a\r\n"),
                    EndsWith(frames + "\x80\0\0\0\x19grpc-status:0\r\nx-sent:2\r\n"s)));
  request.set_fail_with(5);
  EXPECT_THAT(
      Stream("POST /library.Library/Watch", WatchFrame(request), kWebType),
      EndsWith(frames + "\x80\0\0\0\x36grpc-status:5\r\ngrpc-message:the shelf fell\r\nx-sent:2\r\n"s));
  request.set_count(0);
  EXPECT_THAT(Ask("POST /library.Library/Watch", WatchFrame(request), kWebType),
              AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("grpc-status:5\r\n")));
}

TEST_F(GatewayStreamTest, GrpcWebTextPadsEachPart) {
  library::WatchRequest request;
  request.set_shelf("a");
  request.set_count(1);
  const std::string reply =
      Stream("POST /library.Library/Watch",
             wire::Base64Encode(WatchFrame(request)) + "==", "content-type: application/grpc-web-text\r\n");
  EXPECT_THAT(reply, HasSubstr("content-type: application/grpc-web-text+proto\r\n"));
  const std::string body = reply.substr(reply.find("\r\n\r\n") + 4);
  ASSERT_THAT(body, StartsWith("AAAAAAUKA2EvMA==")) << "ten bytes, and padding";
  EXPECT_THAT(wire::Base64Decode(body.substr(16)), testing::Optional(HasSubstr("grpc-status:0\r\n")));
}

TEST_F(GatewayStreamTest, LinesOfJsonAreTheRequestsOfAClientThatStreams) {
  EXPECT_THAT(Ask("POST /v1/donations", "{\"title\":\"ab\"}\n\r\n{\"title\":\"cde\"}\r\n", kLinesType),
              AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("content-type: application/json\r\n"),
                    EndsWith("{\"books\":2,\"bytes\":\"5\"}")));
  EXPECT_THAT(Ask("POST /v1/donations", {}, kLinesType), EndsWith("\r\n\r\n{}"));
  EXPECT_THAT(Ask("POST /v1/donations", "{\"title\":\"ab\"}\n{\"title\":\n", kLinesType),
              StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Ask("POST /v1/donations", "{}", "content-type: text/plain\r\n"), StartsWith("HTTP/1.1 400"));
  // More than fits into a turn, and into the target's window.
  std::string lines;
  for (int i = 0; i < 3000; ++i) lines += Join("{\"title\":\"", std::string(1000, 't'), "\"}\n");
  EXPECT_THAT(Ask("POST /v1/donations", lines, kLinesType),
              EndsWith("{\"books\":3000,\"bytes\":\"3000000\"}"));
  EXPECT_THAT(
      Ask("POST /v1/donations", Join("{\"title\":\"", std::string(256u << 10, 't'), "\"}\n"), kLinesType),
      AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("and may have 262144; send longer messages by gRPC")));
}

TEST_F(GatewayStreamTest, BothMayStream) {
  EXPECT_THAT(Stream("POST /library.Library/Copy", "{\"title\":\"a\"}\n{\"title\":\"b\"}", kLinesType),
              EndsWith("\r\n\r\n{\"result\":{\"title\":\"a\"}}\n{\"result\":{\"title\":\"b\"}}\n"));
  EXPECT_THAT(Stream("POST /library.Library/Copy", "{\"title\":\"a\"}\n{\"title\":\"unique\"}", kLinesType),
              EndsWith("{\"result\":{\"title\":\"a\"}}\n"
                       "{\"error\":{\"code\":9,\"message\":\"it cannot be copied\",\"details\":[]}}\n"));
}

TEST_F(GatewayStreamTest, RawBytesAreTheWholeBody) {
  EXPECT_THAT(Stream("GET /v1/scan/a?count=3&titleBytes=2"),
              AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("content-type: text/plain\r\n"),
                    EndsWith("\r\n\r\naabbcc")));
  EXPECT_THAT(Stream("GET /v1/scan/a"),
              AllOf(HasSubstr("content-type: application/octet-stream\r\n"), EndsWith("\r\n\r\n")))
      << "no message says what it is";
  EXPECT_THAT(Ask("GET /v1/scan/a?failWith=5"),
              AllOf(StartsWith("HTTP/1.1 404"), HasSubstr("content-type: application/json\r\n")));
  EXPECT_THAT(Stream("POST /library.Library/Scan", "{\"count\":1,\"titleBytes\":3}",
                     "content-type: application/json\r\n"),
              EndsWith("{\"result\":{\"contentType\":\"text/plain\",\"data\":\"YWFh\"}}\n"))
      << "by its name";
}

TEST_F(GatewayStreamTest, RawBytesMayBeAPart) {
  options_.forward_headers = {"range"};
  EXPECT_THAT(Stream("GET /v1/scan/a?count=1&titleBytes=3", {}, "range: 2-4\r\n"),
              AllOf(StartsWith("HTTP/1.1 206 Partial Content\r\n"), HasSubstr("content-range: 2-4/9\r\n"),
                    HasSubstr("accept-ranges: bytes\r\n"), EndsWith("\r\n\r\naaa")));
  EXPECT_THAT(
      Ask("GET /v1/scan/a?failWith=11", {}, "range: 2-4\r\n"),
      AllOf(StartsWith("HTTP/1.1 416 Range Not Satisfiable\r\n"), HasSubstr("content-range: 2-4/9\r\n")));
  EXPECT_THAT(Ask("GET /v1/scan/a?failWith=5", {}, "range: 2-4\r\n"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Ask("GET /v1/watch/a?failWith=11"), StartsWith("HTTP/1.1 400")) << "JSON has no ranges";
}

TEST_F(GatewayStreamTest, AThingThatIsNotFoundMayBeGone) {
  options_.forward_headers = {"x-gone"};
  EXPECT_THAT(Ask("GET /v1/scan/a?failWith=5", {}, "x-gone: true\r\n"), StartsWith("HTTP/1.1 410 Gone\r\n"));
  EXPECT_THAT(Ask("GET /v1/scan/a?failWith=7", {}, "x-gone: true\r\n"), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(Ask("GET /v1/scan/a?failWith=5"), StartsWith("HTTP/1.1 404"));
}

TEST_F(GatewayStreamTest, AnErrorBreaksRawBytesOff) {
  Peer peer = Connect();
  Send(peer, "GET /v1/scan/a?count=1&titleBytes=3&failWith=13");
  EXPECT_TRUE(peer.Closed());
  EXPECT_THAT(peer.ReadSome(), Not(EndsWith("0\r\n\r\n"))) << "there is more";
  EXPECT_EQ(gateway().stats().failed, 1u);
  EXPECT_THAT(Ask("GET /v1/shelves/1/books/2"), StartsWith("HTTP/1.1 200"));
  // To a client of HTTP/1.0 an orderly end of the connection is the end of the body.
  Peer old = Connect();
  old.Write("GET /v1/scan/a?count=1&titleBytes=3&failWith=13 HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(old.Reset());
}

TEST_F(GatewayStreamTest, AConnectionThatEndsDuringAStreamIsReset) {
  Peer peer = Connect();
  peer.Write("GET /v1/watch/a?count=1&wait=true HTTP/1.0\r\n\r\n");
  EXPECT_THAT(peer.ReadUntil("a/0"), HasSubstr("200 OK"));
  EXPECT_FALSE(gateway().Stop(Deadline::In(Nanos::zero())));
  EXPECT_TRUE(peer.Reset());
}

TEST_F(GatewayStreamTest, ASlowReaderStopsTheServerAndALostOneEndsTheCall) {
  {
    Peer peer = Connect();
    Send(peer, "GET /v1/watch/a?count=1000000&titleBytes=10000");
    ASSERT_TRUE(Await([&] { return library_->sent() > 0; }));
    // The target's window, and the buffers of both sockets.
    EXPECT_LT(SentAtStandstill(), 3000) << "30 MB";
    EXPECT_EQ(library_->ended(), 0);
    EXPECT_THAT(peer.ReadUntil("a/9"), HasSubstr("a/8"));
  }
  EXPECT_TRUE(Await([&] { return library_->ended() == 1; }));
}

TEST_F(GatewayStreamTest, AReaderThatLeavesAnIdleStreamEndsTheCall) {
  {
    Peer peer = Connect();
    Send(peer, "GET /v1/watch/a?count=1&wait=true");
    EXPECT_THAT(peer.ReadUntil("a/0"), HasSubstr("200 OK"));
  }
  EXPECT_TRUE(Await([&] { return library_->ended() == 1; }));
}

TEST_F(GatewayStreamTest, AReaderThatStallsIsCutShort) {
  options_.idle_timeout = milliseconds(300);
  Peer peer = Connect();
  Send(peer, "GET /v1/watch/a?count=1000000&titleBytes=10000");
  EXPECT_TRUE(Await([&] { return library_->ended() == 1; }));
  EXPECT_GE(gateway().stats().timed_out, 1u);
}

TEST_F(GatewayStreamTest, StalledReadersMakeRoomForOthers) {
  options_.http.max_body_bytes = 1000;
  options_.max_held_bytes = 100'000;
  Peer peer = Connect();
  Send(peer, "GET /v1/watch/a?count=1000000&titleBytes=10000");
  EXPECT_TRUE(Await([&] { return library_->ended() == 1; }));
  EXPECT_THAT(Ask("GET /v1/shelves/1/books/2"), StartsWith("HTTP/1.1 200"));
}

TEST_F(GatewayStreamTest, StreamsEndAtTheirDeadline) {
  EXPECT_THAT(Stream("GET /v1/watch/a?count=1&wait=true", {}, "grpc-timeout: 1S\r\n"),
              AllOf(HasSubstr("a/0"), HasSubstr("{\"error\":{\"code\":4,")));
  gateway_.reset();
  options_.timeout = milliseconds(1);
  options_.stream_timeout = milliseconds(1000);
  EXPECT_THAT(Stream("GET /v1/watch/a?count=1&wait=true"), HasSubstr("{\"error\":{\"code\":4,"));
}

TEST_F(GatewayStreamTest, AStopEndsStreamsHalfway) {
  Peer peer = Connect();
  Send(peer, "GET /v1/watch/a?count=1&wait=true");
  std::string reply = peer.ReadUntil("a/0");
  EXPECT_TRUE(gateway().Stop(Deadline::In(milliseconds(1000))));
  reply += peer.ReadUntil("0\r\n\r\n");
  EXPECT_THAT(reply, HasSubstr("{\"error\":{\"code\":14,\"message\":\"the gateway is going away\""));
  EXPECT_TRUE(peer.Closed());
}

TEST_F(GatewayStreamTest, ManyStreamsShareAnHttp2Connection) {
  RunOptions run;
  run.targets = {Join("http://", gateway().address(), "/v1/watch/a?count=20")};
  run.http = HttpOptions{.http2 = true};
  run.warmup = Nanos::zero();
  run.requests = 200;
  run.timeout = kMaxTestWait;
  const auto workload = MakeHttpWorkload({}, 1);
  ASSERT_TRUE(workload.ok()) << workload.status();
  const absl::StatusOr<LoadResult> result = RunClosedLoop(run, **workload, 16, kMaxTestWait);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GE(library_->sent(), 200 * 20);
  EXPECT_EQ(gateway().stats().failed, 0u);
}

TEST_F(GatewayStreamTest, AnHttp2ReaderWithoutWindowsStopsTheServer) {
  Peer peer = Connect();
  peer.Write(ParkingPreface() + GetFrame(1, "/v1/watch/a?count=1000000&titleBytes=10000"));
  ASSERT_TRUE(Await([&] { return library_->sent() > 0; }));
  EXPECT_LT(SentAtStandstill(), 3000) << "30 MB";
  EXPECT_EQ(library_->ended(), 0);
  peer.Write(Frame(3, 0, 1, "\0\0\0\x08"s));  // RST_STREAM
  EXPECT_TRUE(Await([&] { return library_->ended() == 1; }));
  EXPECT_EQ(gateway().stats().timed_out, 0u);
}

TEST_F(GatewayStreamTest, AnHttp2ReaderThatParksAnAnswerLosesThatAlone) {
  options_.idle_timeout = milliseconds(500);
  options_.files = {{"parked.txt", std::string(30'000, 'p')}};
  Peer peer = Connect();
  peer.Write(ParkingPreface() + GetFrame(1, "/v1/watch/a?count=1&wait=true") + Frame(8, 0, 1, "\0\0\xff\0"s));
  EXPECT_THAT(peer.ReadUntil("a/0"), HasSubstr("a/0"));
  peer.Write(GetFrame(3, "/v1/watch/a?count=1000000&titleBytes=10000") + GetFrame(5, "/parked.txt"));
  EXPECT_TRUE(Await([&] { return library_->ended() == 1; }));
  EXPECT_TRUE(Await([&] { return gateway().stats().held == 0; }));
  EXPECT_EQ(gateway().stats().timed_out, 2u);
  EXPECT_EQ(gateway().stats().connections, 1u);
}

// Property: while half of the room is taken streams grow no more, but those whose readers do not lag go on.
TEST_F(GatewayStreamTest, StreamsThatLagLeaveRoomForAnswers) {
  options_.max_held_bytes = 4'800'000;
  options_.files = {{"parked.txt", std::string(1'250'000, 'p')}, {"large.txt", std::string(820'000, 'l')}};
  Peer parked = Connect(), lagging = Connect();
  parked.Write(ParkingPreface() + GetFrame(1, "/parked.txt"));
  ASSERT_TRUE(Await([&] { return gateway().stats().held >= 1'250'000; }));
  EXPECT_THAT(Stream("GET /v1/watch/a?count=300&titleBytes=10000"), HasSubstr("a/299"));
  const int sent = library_->sent();
  lagging.Write(ParkingPreface() + GetFrame(1, "/v1/watch/a?count=1000000&titleBytes=10000"));
  ASSERT_TRUE(Await([&] { return library_->sent() > sent; }));
  SentAtStandstill();
  EXPECT_THAT(Ask("GET /large.txt"), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(gateway().stats().timed_out, 0u);
}

// Property: a request that has left for the target does not count as on its way, though its stream goes on.
TEST_F(GatewayStreamTest, RequestsOfStreamsCountUntilTheyHaveLeft) {
  options_.max_held_bytes = 100'000;
  const std::string name(30'000, 'n');
  Peer peer = Connect();
  peer.Write(Post("/library.Library/Watch", Join(R"({"wait":true,"early":true,"shelf":")", name, "\"}")));
  EXPECT_THAT(peer.ReadUntil("\r\n\r\n"), StartsWith("HTTP/1.1 200"));
  EXPECT_TRUE(Await([&] {
    return Ask("POST /library.Library/Checkout", Join(R"({"name":")", name, "\"}"))
        .starts_with("HTTP/1.1 200");
  }));
  EXPECT_EQ(library_->ended(), 0);
}

TEST_F(GatewayStreamTest, AHeadDoesNotWaitForAMessage) {
  Peer peer = Connect();
  Send(peer, "GET /v1/watch/a?wait=true&early=true");
  EXPECT_THAT(peer.ReadUntil("\r\n\r\n"), HasSubstr("grpc-metadata-x-shelf: a\r\n"));
  EXPECT_EQ(library_->ended(), 0);
}

}  // namespace
}  // namespace curtail::gateway
