// SPDX-License-Identifier: Apache-2.0
//
// One Session against a peer that breaks or stretches the rules.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "curtail/wire/raw_peer_testing.h"
#include "curtail/wire/session_testing.h"

namespace curtail::wire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view kPreface(NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);

RawPeer::Fields With(RawPeer::Fields fields, const std::string& name, const std::string& value) {
  for (auto& [key, old] : fields) {
    if (key == name) {
      old = value;
      return fields;
    }
  }
  fields.emplace_back(name, value);
  return fields;
}

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

// A client Session with one call, and a raw server.
struct ClientUnderTest {
  explicit ClientUnderTest(const SessionOptions& options = {}) : session(Role::kClient, options, &events) {
    RequestHead head;
    head.path = "/a.B/C";
    id = session.StartUnaryCall(head, "request", nullptr).value();
    EXPECT_TRUE(peer.Pump(&session).ok());
  }
  const CallLog& Reply(const RawPeer::Fields& head, std::string body, const RawPeer::Fields& trailers) {
    peer.Reply(id, head, std::move(body), trailers);
    EXPECT_TRUE(peer.Pump(&session).ok());
    return events.calls[id];
  }
  Recorder events;
  Session session;
  RawPeer peer{Role::kServer};
  StreamId id = 0;
};

const RawPeer::Fields kReplyHead = {{":status", "200"}, {"content-type", "application/grpc+proto"}};
const RawPeer::Fields kOkTrailers = {{"grpc-status", "0"}};

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
    bytes += {static_cast<char>(piece.size() >> 16),
              static_cast<char>(piece.size() >> 8),
              static_cast<char>(piece.size()),
              static_cast<char>(first ? NGHTTP2_HEADERS : NGHTTP2_CONTINUATION),
              static_cast<char>((first ? flags : 0) | (last ? NGHTTP2_FLAG_END_HEADERS : 0)),
              0,
              0,
              0,
              static_cast<char>(stream)};
    bytes += piece;
  }
  return bytes;
}

std::string HpackText(std::string_view text) {
  std::string bytes;
  size_t rest = text.size();
  bytes += static_cast<char>(std::min<size_t>(rest, 127));
  if (rest >= 127) {
    for (rest -= 127; rest >= 128; rest >>= 7) bytes += static_cast<char>(rest % 128 + 128);
    bytes += static_cast<char>(rest);
  }
  return bytes.append(text);
}

std::string RequestBlock(const RawPeer::Fields& more = {}) {
  std::string block;
  for (const RawPeer::Fields& fields : {RawPeer::GrpcRequest(), more}) {
    for (const auto& [name, value] : fields)
      block += std::string(1, '\0') + HpackText(name) + HpackText(value);
  }
  return block;
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
  EXPECT_EQ(unknown.Field("grpc-accept-encoding"), "identity,deflate,gzip");
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

// Calls that name another authority, between others that do not.
TEST(ClientSession, SendsTheAuthorityOfACall) {
  Recorder events;
  SessionOptions options;
  options.authority = "host:1";
  Session client(Role::kClient, options, &events);
  RawPeer peer(Role::kServer);
  const char* const authorities[] = {"", "other:2", "", "other:2", "third"};
  for (const char* authority : authorities) {
    RequestHead head;
    head.path = "/a.B/C";
    head.authority = authority;
    ASSERT_TRUE(client.StartUnaryCall(head, "m", nullptr).ok());
  }
  for (const char* wrong : {"a b", "user@host", "line\nbreak", "a/b"}) {
    RequestHead head;
    head.path = "/a.B/C";
    head.authority = wrong;
    EXPECT_EQ(client.StartUnaryCall(head, "m", nullptr).status().code(), absl::StatusCode::kInvalidArgument);
  }
  ASSERT_TRUE(peer.Pump(&client).ok());
  ASSERT_EQ(peer.streams.size(), std::size(authorities));
  for (size_t i = 0; i < std::size(authorities); ++i) {
    const std::string_view expected = *authorities[i] == 0 ? "host:1" : authorities[i];
    EXPECT_EQ(peer.streams[static_cast<int32_t>(2 * i + 1)].Field(":authority"), expected) << i;
  }
}

TEST(ClientSession, SendsTheFieldsOfTheProtocol) {
  Recorder events;
  SessionOptions options;
  options.authority = "host:1";
  Session client(Role::kClient, options, &events);
  RequestHead head;
  head.path = "/a.B/C";
  head.timeout = std::chrono::seconds(1);
  ASSERT_TRUE(client.StartUnaryCall(head, "m", nullptr).ok());
  RawPeer peer(Role::kServer);
  ASSERT_TRUE(peer.Pump(&client).ok());
  const RawPeer::Fields expected = {{":method", "POST"},
                                    {":scheme", "http"},
                                    {":path", "/a.B/C"},
                                    {":authority", "host:1"},
                                    {"te", "trailers"},
                                    {"content-type", "application/grpc"},
                                    {"user-agent", "curtail/0.1.0"},
                                    {"grpc-timeout", "1000000u"}};
  EXPECT_EQ(peer.streams[1].blocks[0], expected);
  EXPECT_EQ(peer.streams[1].data, Framed("m"));
  EXPECT_TRUE(peer.streams[1].ended);
}

TEST(ClientSession, MapsHttpStatusWhenGrpcStatusIsMissing) {
  const std::pair<const char*, absl::StatusCode> cases[] = {
      {"400", absl::StatusCode::kInternal},         {"401", absl::StatusCode::kUnauthenticated},
      {"403", absl::StatusCode::kPermissionDenied}, {"404", absl::StatusCode::kUnimplemented},
      {"429", absl::StatusCode::kUnavailable},      {"502", absl::StatusCode::kUnavailable},
      {"503", absl::StatusCode::kUnavailable},      {"504", absl::StatusCode::kUnavailable},
      {"418", absl::StatusCode::kUnknown},          {"200", absl::StatusCode::kUnknown}};
  for (const auto& [http, code] : cases) {
    for (const char* body : {"", "<html>"}) {
      ClientUnderTest t;
      EXPECT_EQ(t.Reply({{":status", http}, {"content-type", "text/html"}}, body, {}).status.code(), code)
          << http;
      EXPECT_EQ(t.events.calls[t.id].ends, 1);
      EXPECT_TRUE(t.events.calls[t.id].messages.empty());
    }
  }
}

TEST(ClientSession, MapsResetCodes) {
  const std::pair<uint32_t, absl::StatusCode> cases[] = {
      {NGHTTP2_NO_ERROR, absl::StatusCode::kInternal},
      {NGHTTP2_PROTOCOL_ERROR, absl::StatusCode::kInternal},
      {NGHTTP2_REFUSED_STREAM, absl::StatusCode::kUnavailable},
      {NGHTTP2_CANCEL, absl::StatusCode::kCancelled},
      {NGHTTP2_ENHANCE_YOUR_CALM, absl::StatusCode::kResourceExhausted},
      {NGHTTP2_INADEQUATE_SECURITY, absl::StatusCode::kPermissionDenied}};
  for (const auto& [reset, code] : cases) {
    ClientUnderTest t;
    t.peer.ResetStream(t.id, reset);
    ASSERT_TRUE(t.peer.Pump(&t.session).ok());
    EXPECT_EQ(t.events.calls[t.id].status.code(), code) << reset;
  }
}

TEST(ClientSession, RefusedStreamsAreUnprocessed) {
  for (const uint32_t reset : {NGHTTP2_REFUSED_STREAM, NGHTTP2_CANCEL, NGHTTP2_ENHANCE_YOUR_CALM}) {
    ClientUnderTest t;
    t.peer.ResetStream(t.id, reset);
    ASSERT_TRUE(t.peer.Pump(&t.session).ok());
    EXPECT_EQ(t.events.calls[t.id].unprocessed.has_value(), reset == NGHTTP2_REFUSED_STREAM) << reset;
  }
}

TEST(ClientSession, MessagesOfRefusedStreamsComeBack) {
  ClientUnderTest t;
  RequestHead head;
  head.path = "/a.B/C";
  // The first takes most of the connection's window, so that the second is sent in part and the third not at all.
  std::vector<StreamId> ids;
  for (const char c : {'a', 'b', 'c'}) {
    ids.push_back(t.session.StartUnaryCall(head, std::string(40000, c), nullptr).value());
  }
  std::string out;
  t.session.Pull(&out, 1 << 20);
  const StreamId stays_out = t.session.StartUnaryCall(head, "short", nullptr).value();
  nghttp2_session_mem_recv(t.peer.h2, reinterpret_cast<const uint8_t*>(out.data()), out.size());
  for (const StreamId id : ids) t.peer.ResetStream(id, NGHTTP2_REFUSED_STREAM);
  ASSERT_TRUE(t.session.Receive(t.peer.Output()).ok());
  EXPECT_EQ(t.events.calls[ids[0]].unprocessed, std::string(40000, 'a'));
  EXPECT_EQ(t.events.calls[ids[1]].unprocessed, std::string(40000, 'b'));
  EXPECT_EQ(t.events.calls[ids[2]].unprocessed, std::string(40000, 'c'));
  EXPECT_EQ(t.events.calls[stays_out].ends, 0);
  EXPECT_EQ(t.session.queued_bytes(), 10u);
}

TEST(ClientSession, RefusalAfterTheReplyHasBegunIsNone) {
  ClientUnderTest t;
  const std::string head(
      "\0\0\x14\1\4\0\0\0\1\x88\x0f\x10\x10"
      "application/grpc",
      29);
  const std::string reset("\0\0\4\3\0\0\0\0\1\0\0\0\7", 13);
  ASSERT_TRUE(t.session.Receive(head + reset).ok());
  EXPECT_EQ(t.events.calls[t.id].status.code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(t.events.calls[t.id].unprocessed);
}

TEST(ClientSession, GoawayTellsWhyAndWhichCallsWereNotSeen) {
  ClientUnderTest t;
  RequestHead head;
  head.path = "/a.B/C";
  const StreamId second = t.session.StartUnaryCall(head, "second", nullptr).value();
  std::string out;
  t.session.Pull(&out);
  const std::string text = "too_many_pings\n";
  nghttp2_submit_goaway(t.peer.h2, 0, t.id, NGHTTP2_ENHANCE_YOUR_CALM,
                        reinterpret_cast<const uint8_t*>(text.data()), text.size());
  ASSERT_TRUE(t.session.Receive(t.peer.Output()).ok());
  EXPECT_EQ(t.events.goaway, t.id);
  EXPECT_EQ(t.events.goaway_why, "ENHANCE_YOUR_CALM too_many_pings\\n");
  EXPECT_EQ(t.events.calls[t.id].ends, 0);
  EXPECT_TRUE(t.events.calls[second].unprocessed);
  EXPECT_EQ(t.events.calls[second].status.code(), absl::StatusCode::kUnavailable);
}

TEST(ClientSession, ReplyWithoutTrailersIsNoSuccess) {
  ClientUnderTest t;
  EXPECT_EQ(t.Reply(kReplyHead, Framed("m"), {}).status.code(), absl::StatusCode::kUnknown);
}

TEST(ClientSession, UnknownGrpcStatusIsUnknown) {
  for (const char* code : {"17", "-1", "x", "", "0x"}) {
    ClientUnderTest t;
    EXPECT_EQ(t.Reply(kReplyHead, "", {{"grpc-status", code}}).status.code(), absl::StatusCode::kUnknown)
        << code;
  }
}

TEST(ClientSession, TakesTrailersOnlyEvenWithAnHttpError) {
  ClientUnderTest t;
  t.peer.ReplyHeadersOnly(t.id, {{":status", "503"}, {"grpc-status", "7"}, {"grpc-message", "a%20b"}});
  ASSERT_TRUE(t.peer.Pump(&t.session).ok());
  EXPECT_EQ(t.events.calls[t.id].status, absl::PermissionDeniedError("a b"));
}

TEST(ClientSession, TakesDetailsAsPayloadsOfTheStatus) {
  // A google.rpc.Status: code 5, a message of its own, and details: one of type "t", another of type "t", one without
  // a type, one of type "u".
  const std::string bytes(
      "\x08\x05\x12\x01m\x1a\x06\x0a\x01t\x12\x01v\x1a\x06\x0a\x01t\x12\x01w\x1a\x02\x12\x00\x1a\x03\x0a\x01"
      "u",
      30);
  ClientUnderTest t;
  const CallLog& call = t.Reply(
      kReplyHead, "",
      {{"grpc-status", "7"}, {"grpc-message", "no"}, {"grpc-status-details-bin", Base64Encode(bytes)}});
  absl::Status expected = absl::PermissionDeniedError("no");
  expected.SetPayload("t", absl::Cord("v"));
  expected.SetPayload("u", absl::Cord());
  EXPECT_EQ(call.status, expected);
  EXPECT_TRUE(call.trailing.empty()) << "details are not metadata";
}

TEST(ClientSession, MalformedDetailsLeaveTheStatusAsItIs) {
  const std::string whole("\x1a\x06\x0a\x01t\x12\x01v", 8);
  std::vector<std::string> values = {"not base64!", "=",
                                     Base64Encode("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
                                     Base64Encode("\x1b\x1b"), Base64Encode("\x1a\xff\xff\xff\xff\x0f")};
  for (size_t cut = 0; cut < whole.size(); ++cut) values.push_back(Base64Encode(whole.substr(0, cut)));
  for (const std::string& value : values) {
    ClientUnderTest t;
    const CallLog& call = t.Reply(kReplyHead, "", {{"grpc-status", "3"}, {"grpc-status-details-bin", value}});
    EXPECT_EQ(call.status, absl::InvalidArgumentError("")) << value;
  }
  ClientUnderTest succeeds;
  EXPECT_TRUE(
      succeeds.Reply(kReplyHead, "", {{"grpc-status", "0"}, {"grpc-status-details-bin", Base64Encode(whole)}})
          .status.ok());
}

TEST(ClientSession, TakesABoundedNumberOfDetails) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) {
    bytes += std::string("\x1a\x04\x0a\x02", 4) + static_cast<char>('a' + i % 26) +
             static_cast<char>('a' + i / 26);
  }
  ClientUnderTest t;
  const CallLog& call =
      t.Reply(kReplyHead, "", {{"grpc-status", "3"}, {"grpc-status-details-bin", Base64Encode(bytes)}});
  int payloads = 0;
  call.status.ForEachPayload([&payloads](absl::string_view, const absl::Cord&) { ++payloads; });
  EXPECT_EQ(payloads, 64);
}

TEST(ClientSession, SkipsInformationalHeads) {
  ClientUnderTest t;
  const std::string status = ":status", hundred = "103";
  nghttp2_nv nv = {reinterpret_cast<uint8_t*>(const_cast<char*>(status.data())),
                   reinterpret_cast<uint8_t*>(const_cast<char*>(hundred.data())), 7, 3, NGHTTP2_NV_FLAG_NONE};
  nghttp2_submit_headers(t.peer.h2, NGHTTP2_FLAG_NONE, t.id, nullptr, &nv, 1, nullptr);
  const CallLog& call = t.Reply(kReplyHead, Framed("m"), kOkTrailers);
  EXPECT_TRUE(call.status.ok()) << call.status;
  EXPECT_THAT(call.messages, ElementsAre("m"));
}

TEST(ClientSession, ReplyThatEndsInsideAMessageIsInternal) {
  const std::string whole = Framed("message");
  for (size_t cut = 1; cut < whole.size(); ++cut) {
    ClientUnderTest t;
    EXPECT_EQ(t.Reply(kReplyHead, whole.substr(0, cut), kOkTrailers).status.code(),
              absl::StatusCode::kInternal);
    EXPECT_TRUE(t.events.calls[t.id].messages.empty());
  }
}

TEST(ClientSession, RefusesLongAndCompressedMessages) {
  SessionOptions options;
  options.max_message_bytes = 10;
  ClientUnderTest longer(options), compressed(options);
  EXPECT_EQ(longer.Reply(kReplyHead, Framed("12345678901"), kOkTrailers).status.code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(longer.peer.streams[longer.id].reset, NGHTTP2_CANCEL);
  EXPECT_EQ(compressed.Reply(kReplyHead, Framed("z", 1), kOkTrailers).status.code(),
            absl::StatusCode::kInternal);
  ClientUnderTest unknown;
  EXPECT_EQ(
      unknown.Reply(With(kReplyHead, "grpc-encoding", "zip"), Framed("z", 1), kOkTrailers).status.code(),
      absl::StatusCode::kInternal);
}

TEST(ClientSession, RefusesRepliesOfAWrongLength) {
  for (const char* length : {"5", "7", "x"}) {
    ClientUnderTest t;
    EXPECT_EQ(t.Reply(With(kReplyHead, "content-length", length), Framed("m"), kOkTrailers).status.code(),
              absl::StatusCode::kInternal)
        << length;
    EXPECT_EQ(t.peer.streams[t.id].reset, NGHTTP2_PROTOCOL_ERROR);
  }
  ClientUnderTest right;
  EXPECT_TRUE(right.Reply(With(kReplyHead, "content-length", "6"), Framed("m"), kOkTrailers).status.ok());
}

TEST(ClientSession, RefusesTooManyHeaderBytes) {
  SessionOptions options;
  options.max_header_bytes = 1000;
  ClientUnderTest head(options), trailers(options);
  EXPECT_EQ(head.Reply(With(kReplyHead, "big", std::string(1000, 'x')), "", kOkTrailers).status.code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(trailers.Reply(kReplyHead, "", With(kOkTrailers, "big", std::string(1000, 'x'))).status.code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(ClientSession, HttpOneServerIsAnError) {
  Recorder events;
  Session client(Role::kClient, {}, &events);
  RequestHead head;
  head.path = "/a/b";
  const StreamId id = client.StartUnaryCall(head, "m", nullptr).value();
  std::string out;
  client.Pull(&out);
  absl::Status status = client.Receive("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
  while (client.Pull(&out)) continue;
  EXPECT_TRUE(client.Finished());
  EXPECT_FALSE(client.Receive("x").ok());
  client.Abort(absl::UnavailableError("closed"));
  EXPECT_EQ(events.calls[id].status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(events.calls[id].ends, 1);
}

TEST(ClientSession, CarriesOnAfterAPeerWithoutSettingsYet) {
  Recorder events;
  Session client(Role::kClient, {}, &events);
  std::string out;
  EXPECT_FALSE(client.Pull(&out));
  EXPECT_THAT(out, StartsWith(std::string(kPreface)));
}

}  // namespace
}  // namespace curtail::wire
