// SPDX-License-Identifier: Apache-2.0
//
// A client Session against a server that breaks or stretches the rules.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "curtail/base/version.h"
#include "curtail/wire/raw_peer_testing.h"
#include "curtail/wire/session_testing.h"

namespace curtail::wire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view kPreface(NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);

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
                                    {"user-agent", std::string(UserAgent())},
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
