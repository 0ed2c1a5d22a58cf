// SPDX-License-Identifier: Apache-2.0
//
// A server Session against a client that breaks or stretches the rules.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "curtail/wire/http/http2_frames_testing.h"
#include "curtail/wire/raw_peer_testing.h"
#include "curtail/wire/session_testing.h"

namespace curtail::wire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// A server Session that echoes, and a raw client.
struct ServerUnderTest {
  explicit ServerUnderTest(const SessionOptions& options = {}) : session(Role::kServer, options, &events) {
    events.on_message = [this](StreamId id, const std::string& m) {
      session.SendMessage(id, std::string(m));
    };
    events.on_request_end = [this](StreamId id) { session.EndCall(id, absl::OkStatus()); };
  }
  RawPeer::Stream& Call(const RawPeer::Fields& fields, std::string body, bool end = true) {
    const int32_t id = peer.Request(fields, std::move(body), end);
    EXPECT_TRUE(peer.Pump(&session).ok());
    return peer.streams[id];
  }
  Recorder events;
  Session session;
  RawPeer peer{Role::kClient};
};

TEST(ServerSession, AnswersHttp1InItsOwnWords) {
  for (std::string_view request :
       {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "POST /a HTTP/1.1\r\n\r\n", "PUT /", "PRINT"}) {
    Recorder events;
    Session server(Role::kServer, {}, &events);
    std::string out;
    EXPECT_FALSE(server.Pull(&out));
    EXPECT_TRUE(out.empty()) << "nothing may precede the answer";
    EXPECT_FALSE(server.Receive(request).ok());
    EXPECT_FALSE(server.Receive("more").ok());
    EXPECT_FALSE(server.Finished());
    server.Pull(&out);
    EXPECT_THAT(out, StartsWith("HTTP/1.1 400 Bad Request\r\n"));
    const size_t body = out.find("\r\n\r\n") + 4;
    EXPECT_THAT(out, HasSubstr("Content-Length: " + std::to_string(out.size() - body) + "\r\n"));
    EXPECT_THAT(out.substr(body), HasSubstr("gRPC"));
    EXPECT_TRUE(server.Finished());
  }
}

TEST(ServerSession, SaysNothingToOtherProtocols) {
  for (std::string_view bytes :
       {"\x16\x03\x01", "get / http", "\r\n", "INVALID CONNECTION PREFACE", "PRI * HTTP/2.0\r\n\r\nXX"}) {
    Recorder events;
    Session server(Role::kServer, {}, &events);
    std::string out;
    EXPECT_FALSE(server.Receive(bytes).ok());
    EXPECT_FALSE(server.Pull(&out));
    EXPECT_TRUE(server.Finished());
  }
}

TEST(ServerSession, TakesThePrefaceByteByByte) {
  ServerUnderTest t;
  for (char c : t.peer.Output()) ASSERT_TRUE(t.session.Receive({&c, 1}).ok());
  EXPECT_EQ(t.Call(RawPeer::GrpcRequest(), Framed("m")).data, Framed("m"));
}

TEST(ServerSession, GarbageEndsTheConnection) {
  std::mt19937 rng(TestSeed());
  for (int i = 0; i < 200; ++i) {
    ServerUnderTest t;
    t.Call(RawPeer::GrpcRequest(), "", false);
    std::string garbage(2000, '\0');
    for (char& c : garbage) c = static_cast<char>(rng());
    garbage[0] = '\x7f';  // a frame longer than allowed
    absl::Status status = t.session.Receive(garbage);
    std::string out;
    while (t.session.Pull(&out)) continue;
    EXPECT_TRUE(t.session.Finished());
    EXPECT_FALSE(t.session.Receive("x").ok());
    t.session.Abort(absl::UnavailableError("closed"));
    EXPECT_EQ(t.events.calls[1].ends, 1);
    nghttp2_session_mem_recv(t.peer.h2, reinterpret_cast<const uint8_t*>(out.data()), out.size());
    EXPECT_EQ(t.peer.goaway, NGHTTP2_FRAME_SIZE_ERROR);
  }
}

TEST(ServerSession, RefusesWhatIsNotGrpc) {
  ServerUnderTest t;
  const RawPeer::Fields good = RawPeer::GrpcRequest();
  EXPECT_EQ(t.Call(With(good, ":method", "GET"), "").Field(":status"), "405");
  EXPECT_EQ(t.Call(With(good, "content-type", "text/html"), "").Field(":status"), "415");
  EXPECT_EQ(t.Call(With(good, "content-type", "application/grpc-web"), "").Field(":status"), "415");
  EXPECT_TRUE(t.events.calls.empty());
  for (const char* other :
       {"application/grpc+json", "application/grpc+protobuf", "application/grpcx", "text/grpc"}) {
    EXPECT_EQ(t.Call(With(good, "content-type", other), Framed("m")).Field(":status"), "415") << other;
  }
  EXPECT_TRUE(t.events.calls.empty());
  EXPECT_EQ(t.session.open_streams(), 0u);
  for (const char* type :
       {"application/grpc+proto", "application/grpc;charset=utf-8", "application/grpc+proto;v=1"}) {
    EXPECT_EQ(t.Call(With(good, "content-type", type), Framed("m")).Field("grpc-status"), "0") << type;
  }
}

TEST(ServerSession, AnswersWhatIsNotGrpcAtItsEnd) {
  ServerUnderTest t;
  const RawPeer::Fields get = With(RawPeer::GrpcRequest(), ":method", "GET");
  RawPeer::Stream& open = t.Call(With(get, "content-length", "3"), "ab", false);
  EXPECT_EQ(open.Field(":status"), "");
  nghttp2_session_resume_data(t.peer.h2, 1);
  const std::string rest("\0\0\1\0\1\0\0\0\1c", 10);
  ASSERT_TRUE(t.session.Receive(rest).ok());
  ASSERT_TRUE(t.peer.Pump(&t.session).ok());
  EXPECT_EQ(open.Field(":status"), "405");
}

TEST(ServerSession, ResetsRequestsWhoseContentLengthIsWrong) {
  const RawPeer::Fields good = RawPeer::GrpcRequest();
  const struct {
    const char* length;
    std::string body;
    bool right;
  } cases[] = {
      {"6", Framed("m"), true},    {"0", "", true},          {"5", Framed("m"), false},
      {"7", Framed("m"), false},   {"1", "", false},         {"-6", Framed("m"), false},
      {"six", Framed("m"), false}, {"", Framed("m"), false}, {"99999999999999999999", Framed("m"), false}};
  for (const auto& c : cases) {
    ServerUnderTest t;
    RawPeer::Stream& stream = t.Call(With(good, "content-length", c.length), c.body);
    if (c.right) {
      EXPECT_EQ(stream.Field("grpc-status"), "0") << c.length;
    } else {
      EXPECT_EQ(stream.reset, NGHTTP2_PROTOCOL_ERROR) << c.length;
    }
    EXPECT_EQ(t.session.open_streams(), 0u);
    EXPECT_EQ(t.Call(good, Framed("m")).Field("grpc-status"), "0") << "the connection goes on";
  }
}

// A HEADERS frame and its CONTINUATIONs.
std::string HeaderFrames(uint8_t stream, std::string_view block, uint8_t flags = NGHTTP2_FLAG_END_STREAM) {
  constexpr size_t kFrame = 16384;
  std::string bytes;
  for (size_t at = 0; at == 0 || at < block.size(); at += kFrame) {
    const std::string_view piece = block.substr(at, kFrame);
    const bool first = at == 0, last = at + kFrame >= block.size();
    bytes += Frame(first ? NGHTTP2_HEADERS : NGHTTP2_CONTINUATION,
                   (first ? flags : 0) | (last ? NGHTTP2_FLAG_END_HEADERS : 0), stream, piece);
  }
  return bytes;
}

std::string RequestBlock(const RawPeer::Fields& more = {}) {
  return Block(RawPeer::GrpcRequest()) + Block(more);
}

TEST(ServerSession, ACallWithFarTooMuchMetadataEndsAlone) {
  ServerUnderTest t;
  RawPeer::Stream& before = t.Call(RawPeer::GrpcRequest(), Framed("m").substr(0, 3), false);
  const std::string huge = RequestBlock({{"x-huge", std::string(100'000, 'h')}});
  ASSERT_TRUE(t.session.Receive(HeaderFrames(3, huge)).ok());
  ASSERT_TRUE(t.peer.Pump(&t.session).ok());
  EXPECT_FALSE(t.peer.goaway);
  EXPECT_EQ(before.reset, std::nullopt);
  EXPECT_EQ(t.session.open_streams(), 1u);
  // The peer whose frames these are did not open stream 3 itself: look at the bytes of a fresh one.
  ServerUnderTest other;
  const std::string hello = other.peer.Output();
  std::string out;
  ASSERT_TRUE(other.session.Receive(hello + HeaderFrames(1, huge)).ok());
  while (other.session.Pull(&out)) continue;
  EXPECT_THAT(out, HasSubstr(std::string("grpc-status\x01") + "8"));
  EXPECT_FALSE(other.session.Finished());
}

TEST(ServerSession, EndsTheConnectionForAHeaderBlockWithoutBoundAndSaysSo) {
  ServerUnderTest t;
  std::string out;
  const std::string huge = RequestBlock({{"x-huge", std::string(300'000, 'h')}});
  EXPECT_FALSE(t.session.Receive(t.peer.Output() + HeaderFrames(1, huge)).ok());
  while (t.session.Pull(&out)) continue;
  nghttp2_session_mem_recv(t.peer.h2, reinterpret_cast<const uint8_t*>(out.data()), out.size());
  EXPECT_EQ(t.peer.goaway, NGHTTP2_ENHANCE_YOUR_CALM);
  EXPECT_THAT(out, HasSubstr("a header block has more than 262144 bytes"));
}

TEST(ServerSession, HeadersOnAClosedStreamEndTheConnection) {
  for (const bool skipped : {false, true}) {
    ServerUnderTest t;
    std::string out;
    const uint8_t last = skipped ? 5 : 1;
    const std::string request = HeaderFrames(last, RequestBlock());
    ASSERT_TRUE(t.session.Receive(t.peer.Output() + request).ok());
    while (t.session.Pull(&out)) continue;
    EXPECT_EQ(t.events.calls[last].ends, 1);
    EXPECT_FALSE(t.session.Receive(HeaderFrames(skipped ? 3 : 1, RequestBlock())).ok());
    while (t.session.Pull(&out)) continue;
    const int code = skipped ? NGHTTP2_PROTOCOL_ERROR : NGHTTP2_STREAM_CLOSED;
    EXPECT_THAT(out, testing::EndsWith(std::string("\0\0\0", 3) + static_cast<char>(code) +
                                       "HEADERS on a stream that is closed"));
  }
}

TEST(ServerSession, AnswersPingAfterTheClientsGoodbye) {
  ServerUnderTest t;
  t.Call(RawPeer::GrpcRequest(), Framed("m"));
  const std::string goaway("\0\0\x08\7\0\0\0\0\0\0\0\0\0\0\0\0\0", 17);
  const std::string ping("\0\0\x08\6\0\0\0\0\0payload.", 17);
  ASSERT_TRUE(t.session.Receive(goaway).ok());
  std::string out;
  while (t.session.Pull(&out)) continue;
  EXPECT_FALSE(t.session.Finished());
  ASSERT_TRUE(t.session.Receive(ping).ok());
  while (t.session.Pull(&out)) continue;
  EXPECT_THAT(out, HasSubstr("payload."));
  t.session.SendGoaway();
  while (t.session.Pull(&out)) continue;
  EXPECT_TRUE(t.session.Finished());
}

TEST(ServerSession, RefusesBrokenFields) {
  ServerUnderTest t;
  EXPECT_EQ(t.Call(With(RawPeer::GrpcRequest(), "grpc-timeout", "soon"), "").Field("grpc-status"), "13");
  EXPECT_EQ(t.Call(With(RawPeer::GrpcRequest(), "x-bin", "!"), "").Field("grpc-status"), "13");
  EXPECT_TRUE(t.events.calls.empty());
}

TEST(ServerSession, SplitsJoinedBinaryMetadata) {
  ServerUnderTest t;
  t.Call(With(RawPeer::GrpcRequest(), "x-bin", "YQ==, Yg,Yw"), Framed("m"));
  const Metadata& got = t.events.calls[1].request.metadata;
  EXPECT_THAT(std::vector(got.begin(), got.end()),
              ElementsAre(std::pair("x-bin", "a"), std::pair("x-bin", "b"), std::pair("x-bin", "c")));
}

// The client's encoder puts each field into its table and refers to it from then on; more of them than the table holds.
TEST(ServerSession, BinaryMetadataIsTheSameEachTimeItIsReferredTo) {
  ServerUnderTest t;
  for (int round = 0; round < 4; ++round) {
    for (size_t i = 0; i < 40; ++i) {
      const std::string key = "k" + std::to_string(i / 2) + "-bin";
      const std::string one = Pattern(i), other = Pattern(2 * i);
      const RawPeer::Stream& answer =
          t.Call(With(RawPeer::GrpcRequest(), key, Base64Encode(one) + "," + Base64Encode(other)), "");
      EXPECT_EQ(answer.Field("grpc-status"), "0");
      const Metadata& metadata = std::prev(t.events.calls.end())->second.request.metadata;
      const std::vector<Metadata::Entry> entries(metadata.begin(), metadata.end());
      EXPECT_THAT(entries, ElementsAre(testing::Pair(key, one), testing::Pair(key, other)));
    }
    EXPECT_EQ(t.Call(With(RawPeer::GrpcRequest(), "k-bin", "no base64!"), "").Field("grpc-status"), "13");
  }
}

TEST(ServerSession, RefusesTooManyHeaderBytes) {
  SessionOptions options;
  options.max_header_bytes = 4096;
  ServerUnderTest t(options);
  RawPeer::Stream& refused = t.Call(With(RawPeer::GrpcRequest(), "big", std::string(5000, 'x')), Framed("m"));
  EXPECT_EQ(refused.Field("grpc-status"), "8");
  EXPECT_TRUE(t.events.calls.empty());
  EXPECT_EQ(t.Call(RawPeer::GrpcRequest(), Framed("m")).Field("grpc-status"), "0");
}

TEST(ServerSession, RefusesLongMessagesWithoutBuffering) {
  SessionOptions options;
  options.max_message_bytes = 100;
  ServerUnderTest t(options);
  EXPECT_EQ(t.Call(RawPeer::GrpcRequest(), Framed(std::string(100, 'x'))).Field("grpc-status"), "0");
  RawPeer::Stream& refused = t.Call(RawPeer::GrpcRequest(), Framed(std::string(101, 'x')), false);
  EXPECT_EQ(refused.Field("grpc-status"), "8");
  EXPECT_EQ(refused.reset, NGHTTP2_NO_ERROR);
  EXPECT_EQ(t.events.calls[3].status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(t.events.calls[3].ends, 1);
}

TEST(ServerSession, BoundsUnfinishedMessagesOfAllStreams) {
  SessionOptions options;
  options.max_partial_bytes = 1000;
  ServerUnderTest t(options);
  const std::string partial = Framed(std::string(5000, 'x')).substr(0, 405);
  t.Call(RawPeer::GrpcRequest(), partial, false);
  t.Call(RawPeer::GrpcRequest(), partial, false);
  EXPECT_EQ(t.session.open_streams(), 2u);
  EXPECT_EQ(t.Call(RawPeer::GrpcRequest(), partial, false).Field("grpc-status"), "8");
  EXPECT_EQ(t.session.open_streams(), 2u);
  t.peer.ResetStream(1, NGHTTP2_CANCEL);
  t.Call(RawPeer::GrpcRequest(), partial, false);
  EXPECT_EQ(t.session.open_streams(), 2u);
}

// Replies that nobody takes count as calls: a peer that does not read cannot make them pile up.
TEST(ServerSession, RefusesMoreCallsThanItsLimitWhoeverEndedThem) {
  SessionOptions options;
  options.max_concurrent_streams = 3;
  ServerUnderTest t(options);
  t.events.on_request = [&t](StreamId id) { t.session.EndCall(id, absl::AbortedError("at once")); };
  for (int i = 0; i < 5; ++i) t.peer.Request(RawPeer::GrpcRequest(), Framed("m"));
  ASSERT_TRUE(t.session.Receive(t.peer.Output()).ok());
  EXPECT_EQ(t.events.calls.size(), 3u);
  ASSERT_TRUE(t.peer.Pump(&t.session).ok());
  for (int32_t id : {1, 3, 5}) EXPECT_EQ(t.peer.streams[id].Field("grpc-status"), "10");
  for (int32_t id : {7, 9}) EXPECT_EQ(t.peer.streams[id].reset, NGHTTP2_REFUSED_STREAM);
  EXPECT_EQ(t.Call(RawPeer::GrpcRequest(), Framed("m")).Field("grpc-status"), "10");
}

// Resets of a stream that has ended: the cheapest way to keep a server busy.
std::string Resets(int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes.append({0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, NGHTTP2_CANCEL});
  return bytes;
}

TEST(ServerSession, LimitsResetsPerSecond) {
  ServerUnderTest t;
  t.Call(RawPeer::GrpcRequest(), Framed("m"));
  ASSERT_TRUE(t.session.Receive(Resets(20000)).ok());  // a burst
  for (int i = 0; i < 3; ++i) {
    t.events.time += std::chrono::seconds(1);
    ASSERT_TRUE(t.session.Receive(Resets(10000)).ok()) << i;
  }
  t.events.time += std::chrono::seconds(1) - Nanos(1);
  EXPECT_FALSE(t.session.Receive(Resets(1)).ok());
  std::string out;
  while (t.session.Pull(&out)) continue;
  nghttp2_session_mem_recv(t.peer.h2, reinterpret_cast<const uint8_t*>(out.data()), out.size());
  EXPECT_EQ(t.peer.goaway, NGHTTP2_ENHANCE_YOUR_CALM);
}

TEST(ServerSession, RefusesCompressedMessages) {
  ServerUnderTest t;
  RawPeer::Stream& refused = t.Call(RawPeer::GrpcRequest(), Framed("zzz", 1));
  EXPECT_EQ(refused.Field("grpc-status"), "13") << "no grpc-encoding";
  EXPECT_EQ(t.events.calls[1].status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(t.Call(RawPeer::GrpcRequest(), Framed("zzz", 2)).Field("grpc-status"), "13");
  const RawPeer::Fields identity = With(RawPeer::GrpcRequest(), "grpc-encoding", "identity");
  EXPECT_EQ(t.Call(identity, Framed("zzz", 1)).Field("grpc-status"), "13");
  EXPECT_EQ(t.Call(identity, Framed("zzz")).Field("grpc-status"), "0");
  const size_t heard = t.events.calls.size();
  RawPeer::Stream& unknown = t.Call(With(RawPeer::GrpcRequest(), "grpc-encoding", "zip"), Framed("zzz", 1));
  EXPECT_EQ(unknown.Field("grpc-status"), "12");
#ifdef CURTAIL_ZSTD
  EXPECT_EQ(unknown.Field("grpc-accept-encoding"), "identity,deflate,gzip,zstd");
#else
  EXPECT_EQ(unknown.Field("grpc-accept-encoding"), "identity,deflate,gzip");
#endif
  EXPECT_EQ(t.events.calls.size(), heard);
}

TEST(ServerSession, RefusesRequestsThatEndInsideAMessage) {
  const std::string whole = Framed("message");
  for (size_t cut = 1; cut < whole.size(); ++cut) {
    ServerUnderTest t;
    EXPECT_EQ(t.Call(RawPeer::GrpcRequest(), whole.substr(0, cut)).Field("grpc-status"), "13") << cut;
    EXPECT_EQ(t.events.calls[1].status.code(), absl::StatusCode::kInternal);
    EXPECT_FALSE(t.events.calls[1].request_ended);
  }
}

TEST(ServerSession, TakesRequestTrailersAsEnd) {
  ServerUnderTest t;
  const int32_t id = t.peer.Request(RawPeer::GrpcRequest(), Framed("m"), false);
  ASSERT_TRUE(t.peer.Pump(&t.session).ok());
  nghttp2_nv nv = {reinterpret_cast<uint8_t*>(const_cast<char*>("x")),
                   reinterpret_cast<uint8_t*>(const_cast<char*>("y")), 1, 1, NGHTTP2_NV_FLAG_NONE};
  nghttp2_submit_trailer(t.peer.h2, id, &nv, 1);
  ASSERT_TRUE(t.peer.Pump(&t.session).ok());
  EXPECT_EQ(t.peer.streams[id].Field("grpc-status"), "0");
}

TEST(ServerSession, WindowUpdatesAreRare) {
  ServerUnderTest t;
  t.events.on_message = nullptr;
  t.Call(RawPeer::GrpcRequest(), "", false);
  const int at_start = t.peer.window_updates;
  for (int i = 0; i < 1000; ++i) t.Call(RawPeer::GrpcRequest(), Framed(std::string(1000, 'x')));
  EXPECT_EQ(t.peer.window_updates, at_start);
}

}  // namespace
}  // namespace curtail::wire
