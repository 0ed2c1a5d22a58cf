// SPDX-License-Identifier: Apache-2.0
//
// Two Sessions face to face: what calls look like when both ends keep the rules.

#include "curtail/wire/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "curtail/wire/session_testing.h"

namespace curtail::wire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Session, UnaryCallCarriesHeadMessageAndStatus) {
  Pair pair;
  pair.ServeEcho();
  RequestHead head = Head("/a.B/C");
  head.timeout = std::chrono::milliseconds(250);
  const StreamId id = StartUnary(pair, "hello", head);
  EXPECT_EQ(pair.client.open_streams(), 1u);
  ASSERT_TRUE(pair.Pump().ok());
  const CallLog& served = pair.server_events.calls[id];
  EXPECT_EQ(served.request.path, "/a.B/C");
  EXPECT_EQ(served.request.timeout, Nanos(std::chrono::milliseconds(250)));
  EXPECT_TRUE(served.request.metadata.empty());
  EXPECT_THAT(served.messages, ElementsAre("hello"));
  EXPECT_TRUE(served.request_ended);
  EXPECT_EQ(served.ends, 1);
  EXPECT_TRUE(served.status.ok());
  const CallLog& call = pair.client_events.calls[id];
  EXPECT_TRUE(call.head);
  EXPECT_THAT(call.messages, ElementsAre("hello"));
  EXPECT_EQ(call.ends, 1);
  EXPECT_TRUE(call.status.ok()) << call.status;
  EXPECT_EQ(pair.client.open_streams(), 0u);
  EXPECT_EQ(pair.server.open_streams(), 0u);
}

TEST(Session, RequestAndReplyEachLeaveInOnePull) {
  Pair pair;
  pair.ServeEcho();
  ASSERT_TRUE(pair.Pump().ok());
  const StreamId id = StartUnary(pair, "m");
  std::string request, reply;
  EXPECT_FALSE(pair.client.Pull(&request));
  ASSERT_TRUE(pair.server.Receive(request).ok());
  EXPECT_TRUE(pair.server_events.calls[id].request_ended);
  EXPECT_FALSE(pair.server.Pull(&reply));
  ASSERT_TRUE(pair.client.Receive(reply).ok());
  EXPECT_EQ(pair.client_events.calls[id].ends, 1);
}

TEST(Session, EmptyMessageIsAMessage) {
  Pair pair;
  pair.ServeEcho();
  const StreamId id = StartUnary(pair, "");
  ASSERT_TRUE(pair.Pump().ok());
  EXPECT_THAT(pair.client_events.calls[id].messages, ElementsAre(""));
}

TEST(Session, TrailersOnlyReplyHasStatusAndMetadata) {
  Pair pair;
  pair.server_events.on_request = [&](StreamId id) {
    Metadata trailing;
    trailing.Add("why", "because");
    pair.server.EndCall(id, absl::NotFoundError("no 100% \xc3\xa4 here\n"), trailing);
  };
  const StreamId id = StartUnary(pair, "m");
  ASSERT_TRUE(pair.Pump().ok());
  const CallLog& call = pair.client_events.calls[id];
  EXPECT_FALSE(call.head);
  EXPECT_EQ(call.status, absl::NotFoundError("no 100% \xc3\xa4 here\n"));
  EXPECT_EQ(call.trailing.Find("why"), "because");
}

TEST(Session, StatusCodesSurviveTheWire) {
  for (int code = 1; code <= 16; ++code) {
    Pair pair;
    const absl::Status status(static_cast<absl::StatusCode>(code), "text");
    pair.server_events.on_request = [&](StreamId id) { pair.server.EndCall(id, status); };
    const StreamId id = StartUnary(pair, "m");
    ASSERT_TRUE(pair.Pump().ok());
    EXPECT_EQ(pair.client_events.calls[id].status, status);
  }
}

TEST(Session, PayloadsOfAStatusTravelAsItsDetails) {
  Pair pair;
  const std::string long_detail(3000, 'd');
  absl::Status failed = absl::FailedPreconditionError("with details");
  failed.SetPayload("type.googleapis.com/a.B", absl::Cord(absl::string_view("\0\xff bytes", 8)));
  failed.SetPayload("type.googleapis.com/a.Empty", absl::Cord());
  failed.SetPayload("other.example/long.Name", absl::Cord(long_detail));
  pair.server_events.on_request_end = [&](StreamId id) { pair.server.EndCall(id, failed); };
  const StreamId first = StartUnary(pair, "m");
  const StreamId second = StartUnary(pair, "m");
  ASSERT_TRUE(pair.Pump(11).ok());
  EXPECT_EQ(pair.client_events.calls[first].status, failed);
  EXPECT_EQ(pair.client_events.calls[second].status, failed);
}

TEST(Session, DetailsThatThePeerWouldNotTakeAreLeftOutAndTheMessageSaysSo) {
  SessionOptions small;
  small.max_header_bytes = 8 << 10;
  Pair pair(small, {}, 1);
  const std::string long_detail(6000, 'd');
  absl::Status failed = absl::InternalError("why");
  failed.SetPayload("type.googleapis.com/a.B", absl::Cord(long_detail));
  pair.server_events.on_request_end = [&](StreamId id) { pair.server.EndCall(id, failed); };
  const StreamId id = StartUnary(pair, "m");
  ASSERT_TRUE(pair.Pump().ok());
  const absl::Status& status = pair.client_events.calls[id].status;
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              testing::MatchesRegex("why \\[8[0-9]+ bytes of details left out\\]"));
  EXPECT_FALSE(status.GetPayload("type.googleapis.com/a.B"));
}

TEST(Session, MetadataTravelsAllThreeWays) {
  Pair pair;
  const std::string binary("\0\xff\x01,=", 5);
  RequestHead head = Head();
  head.metadata.Add("k", "v");
  head.metadata.Add("k", "w");
  head.metadata.Add("raw-bin", binary);
  pair.server_events.on_request_end = [&](StreamId id) {
    Metadata initial, trailing;
    initial.Add("i-bin", binary);
    trailing.Add("t", "1");
    trailing.Add("il legal", "left out");
    trailing.Add("huge", std::string(64 << 10, 'x'));
    trailing.Add("u", "2");
    pair.server.SendHead(id, initial);
    pair.server.SendMessage(id, "reply");
    pair.server.EndCall(id, absl::AbortedError("after a message"), trailing);
  };
  const StreamId id = StartUnary(pair, "m", head);
  ASSERT_TRUE(pair.Pump(7).ok());
  const Metadata& got = pair.server_events.calls[id].request.metadata;
  EXPECT_THAT(std::vector(got.begin(), got.end()),
              ElementsAre(std::pair("k", "v"), std::pair("k", "w"), std::pair("raw-bin", binary)));
  const CallLog& call = pair.client_events.calls[id];
  EXPECT_EQ(call.head.value_or(Metadata()).Find("i-bin"), binary);
  EXPECT_THAT(call.messages, ElementsAre("reply"));
  EXPECT_EQ(call.status, absl::AbortedError("after a message"));
  EXPECT_THAT(std::vector(call.trailing.begin(), call.trailing.end()),
              ElementsAre(std::pair("t", "1"), std::pair("u", "2")));
}

TEST(Session, StartCallRefusesMoreMetadataThanTheServerTakes) {
  SessionOptions small;
  small.max_header_bytes = 2000;
  Pair pair({}, small, 1);
  ASSERT_TRUE(pair.Pump().ok());  // the client has seen the limit
  RequestHead head = Head();
  head.metadata.Add("k", std::string(1400, 'x'));
  StartUnary(pair, "m", head);
  ASSERT_TRUE(pair.Pump().ok());
  EXPECT_EQ(pair.server_events.calls.size(), 1u);
  head.metadata.Add("l", std::string(600, 'x'));
  const absl::Status refused = pair.client.StartCall(head, nullptr).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("2000"));
}

TraceParent ParentOf(char digit) {
  TraceParent parent;
  parent.text.fill(digit);
  parent.set = true;
  return parent;
}

// Property: each call has its own traceparent or none, whatever entered the compression's table meanwhile.
TEST(Session, ATraceparentIsOneOfTheMetadata) {
  Pair pair;
  std::vector<StreamId> ids;
  const std::string digits = "aab-c0c1";
  for (size_t i = 0; i < digits.size(); ++i) {
    RequestHead head = Head(i < 4 ? "/a.B/C" : "/a.B/D");  // a new path moves the table's entries
    if (digits[i] != '-') head.trace_parent = ParentOf(digits[i]);
    if (i % 3 == 0) head.metadata.Add("k", "v");
    ids.push_back(StartUnary(pair, "m", head));
    if (i % 2 == 0) {
      ASSERT_TRUE(pair.Pump().ok());
    }
  }
  ASSERT_TRUE(pair.Pump().ok());
  for (size_t i = 0; i < digits.size(); ++i) {
    const Metadata& got = pair.server_events.calls[ids[i]].request.metadata;
    EXPECT_EQ(got.size(), (digits[i] != '-' ? 1u : 0u) + (i % 3 == 0 ? 1u : 0u)) << i;
    if (digits[i] == '-') EXPECT_EQ(got.Find("traceparent"), std::nullopt) << i;
    else EXPECT_EQ(got.Find("traceparent"), std::string(TraceParent::kBytes, digits[i])) << i;
    EXPECT_EQ(got.Find("k").has_value(), i % 3 == 0) << i;
  }
}

TEST(Session, ATraceparentThatDoesNotFitIsLeftOut) {
  SessionOptions small;
  small.max_header_bytes = 2000;
  Pair pair({}, small, 1);
  ASSERT_TRUE(pair.Pump().ok());  // the client has seen the limit
  RequestHead head = Head();
  head.trace_parent = ParentOf('0');
  const StreamId fits = StartUnary(pair, "m", head);
  head.metadata.Add("k", std::string(1500, 'x'));
  const StreamId full = StartUnary(pair, "m", head);
  ASSERT_TRUE(pair.Pump().ok());
  EXPECT_TRUE(pair.server_events.calls[fits].request.metadata.Find("traceparent").has_value());
  EXPECT_TRUE(pair.server_events.calls[full].request.metadata.Find("k").has_value());
  EXPECT_FALSE(pair.server_events.calls[full].request.metadata.Find("traceparent").has_value());
}

TEST(Session, StartCallRefusesWhatMayNotBeSent) {
  Pair pair;
  RequestHead reserved = Head(), text = Head(), huge = Head();
  reserved.metadata.Add("grpc-x", "1");
  text.metadata.Add("k", "line\nbreak");
  huge.metadata.Add("k", std::string(64 << 10, 'x'));
  for (const RequestHead& head : {reserved, text, huge, Head(""), Head("noslash"), Head("/a b\r\n")}) {
    EXPECT_EQ(pair.client.StartCall(head, nullptr).status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(pair.client.open_streams(), 0u);
  EXPECT_FALSE(pair.server.StartCall(Head(), nullptr).ok());
}

// The view of the two applications must not depend on how the transport cuts the bytes.
TEST(Session, ResultIsIndependentOfSplits) {
  const uint32_t seed = TestSeed();
  for (size_t largest_piece : {1u, 2u, 9u, 100u, 5000u, 1u << 20}) {
    Pair pair({}, seed);
    pair.ServeEcho();
    std::vector<StreamId> ids;
    for (size_t size : {0u, 1u, 4u, 100u, 16379u, 16380u, 70000u})
      ids.push_back(StartUnary(pair, Pattern(size)));
    ASSERT_TRUE(pair.Pump(largest_piece).ok());
    for (StreamId id : ids) {
      EXPECT_EQ(pair.client_events.calls[id].messages, pair.server_events.calls[id].messages);
      EXPECT_TRUE(pair.client_events.calls[id].status.ok()) << pair.client_events.calls[id].status;
    }
    EXPECT_EQ(pair.client_events.calls[ids.back()].messages, std::vector{Pattern(70000)});
    EXPECT_EQ(pair.client_events.late_events + pair.server_events.late_events, 0);
  }
}

TEST(Session, SixteenMebibytesPassBothWays) {
  Pair pair({}, TestSeed());
  pair.ServeEcho();
  const std::string big = Pattern(16 << 20);
  const StreamId id = StartUnary(pair, big);
  EXPECT_EQ(pair.client.queued_bytes(), big.size() + 5);
  ASSERT_TRUE(pair.Pump().ok());
  EXPECT_TRUE(pair.client_events.calls[id].messages == std::vector{big});
  EXPECT_EQ(pair.client.queued_bytes() + pair.server.queued_bytes(), 0u);
}

TEST(Session, PullStopsNearItsLimitAndGoesOn) {
  Pair pair;
  ASSERT_TRUE(pair.Pump().ok());
  StartUnary(pair, Pattern(900000));
  std::string out;
  EXPECT_TRUE(pair.client.Pull(&out, 50000));
  EXPECT_GE(out.size(), 50000u);
  EXPECT_LT(out.size(), 50000u + (16u << 10) + 1000);
  EXPECT_GT(pair.client.queued_bytes(), 800000u);
  EXPECT_FALSE(pair.client.Pull(&out, 10 << 20));
  EXPECT_EQ(pair.client.queued_bytes(), 0u);
}

TEST(Session, AStreamThatIsNotReadGetsNoMoreThanItsWindow) {
  SessionOptions narrow;
  narrow.stream_window_bytes = 100'000;
  Pair pair({}, narrow, 1);
  const StreamId id = *pair.client.StartCall({.path = "/a.B/C"}, nullptr);
  const StreamId other = *pair.client.StartCall({.path = "/a.B/C"}, nullptr);
  ASSERT_TRUE(pair.Pump().ok());
  pair.server.SetReading(id, false);
  for (int i = 0; i < 500; ++i) {
    pair.client.SendMessage(id, std::string(995, 'm'));
    pair.client.SendMessage(other, std::string(995, 'm'));
  }
  ASSERT_TRUE(pair.Pump().ok());
  EXPECT_EQ(pair.server_events.calls[id].messages.size(), 100u);
  EXPECT_EQ(pair.client.queued_bytes(id), 400'000u);
  EXPECT_EQ(pair.server_events.calls[other].messages.size(), 500u) << "others go on";
  pair.server.SetReading(id, true);
  ASSERT_TRUE(pair.Pump().ok());
  EXPECT_EQ(pair.server_events.calls[id].messages.size(), 500u);
  EXPECT_EQ(pair.client.queued_bytes(id), 0u);
}

TEST(Session, TellsWhenAStreamHasRoomAgain) {
  Pair pair;
  const StreamId id = *pair.client.StartCall({.path = "/a.B/C"}, nullptr);
  ASSERT_TRUE(pair.Pump().ok());
  int told = 0;
  pair.client_events.on_writable = [&](StreamId stream) {
    EXPECT_EQ(stream, id);
    EXPECT_LE(pair.client.queued_bytes(id), kWritableBytes);
    if (++told == 1) pair.client.SendMessage(id, std::string(200'000, 'm'));  // from within the event
  };
  pair.client.SendMessage(id, std::string(30'000, 'm'));
  ASSERT_TRUE(pair.Pump().ok());
  EXPECT_EQ(told, 0) << "it had room all the time";
  pair.client.SendMessage(id, std::string(200'000, 'm'));
  ASSERT_TRUE(pair.Pump().ok());
  EXPECT_EQ(told, 2);
  pair.client.SendMessage(id, std::string(200'000, 'm'));
  pair.client.EndRequest(id);
  ASSERT_TRUE(pair.Pump().ok());
  EXPECT_EQ(told, 3);
  EXPECT_EQ(pair.server_events.calls[id].messages.size(), 4u);
  EXPECT_TRUE(pair.server_events.calls[id].request_ended);
}

TEST(Session, FullWindowHoldsMessagesBack) {
  SessionOptions narrow;
  narrow.stream_window_bytes = 1000;
  narrow.connection_window_bytes = 70000;
  Pair pair({}, narrow, 1);
  ASSERT_TRUE(pair.Pump().ok());
  StartUnary(pair, Pattern(5000));
  std::string out;
  EXPECT_FALSE(pair.client.Pull(&out));
  EXPECT_EQ(pair.client.queued_bytes(), 4005u);
  ASSERT_TRUE(pair.server.Receive(out).ok());
  ASSERT_TRUE(pair.Pump().ok());
  EXPECT_EQ(pair.client.queued_bytes(), 0u);
}

TEST(Session, StreamsManyMessagesEachWay) {
  Pair pair({}, TestSeed());
  pair.server_events.on_message = [&](StreamId id, const std::string& m) {
    pair.server.SendMessage(id, "a" + m);
    pair.server.SendMessage(id, "b" + m);
  };
  pair.server_events.on_request_end = [&](StreamId id) { pair.server.EndCall(id, absl::OkStatus()); };
  const StreamId id = pair.client.StartCall(Head(), nullptr).value();
  std::vector<std::string> expected;
  for (int i = 0; i < 100; ++i) {
    const std::string message = std::to_string(i) + std::string(static_cast<size_t>(i) * 50, '.');
    pair.client.SendMessage(id, std::string(message));
    expected.insert(expected.end(), {"a" + message, "b" + message});
    if (i % 7 == 0) {
      ASSERT_TRUE(pair.Pump(300).ok());
    }
  }
  ASSERT_TRUE(pair.Pump(300).ok());
  EXPECT_EQ(pair.client_events.calls[id].messages, expected);
  EXPECT_EQ(pair.client_events.calls[id].ends, 0);
  pair.client.EndRequest(id);
  ASSERT_TRUE(pair.Pump().ok());
  EXPECT_EQ(pair.client_events.calls[id].ends, 1);
  EXPECT_TRUE(pair.client_events.calls[id].status.ok());
}

TEST(Session, ReplyMayEndBeforeTheRequest) {
  Pair pair;
  pair.server_events.on_request = [&](StreamId id) {
    pair.server.SendMessage(id, "early");
    pair.server.EndCall(id, absl::OkStatus());
  };
  const StreamId id = pair.client.StartCall(Head(), nullptr).value();
  ASSERT_TRUE(pair.Pump().ok());
  EXPECT_THAT(pair.client_events.calls[id].messages, ElementsAre("early"));
  EXPECT_TRUE(pair.client_events.calls[id].status.ok()) << pair.client_events.calls[id].status;
  EXPECT_EQ(pair.server_events.calls[id].ends, 1);
  EXPECT_TRUE(pair.server_events.calls[id].status.ok());
  pair.client.SendMessage(id, "ignored");
  pair.client.EndRequest(id);
  ASSERT_TRUE(pair.Pump().ok());
  EXPECT_EQ(pair.client.queued_bytes(), 0u);
}

TEST(Session, ThousandConcurrentStreamsAllEnd) {
  Pair pair({}, TestSeed());
  pair.ServeEcho();
  std::vector<StreamId> ids;
  for (int i = 0; i < 1000; ++i) ids.push_back(StartUnary(pair, std::to_string(i)));
  EXPECT_EQ(pair.client.open_streams(), 1000u);
  ASSERT_TRUE(pair.Pump(3000).ok());
  for (size_t i = 0; i < ids.size(); ++i) {
    ASSERT_THAT(pair.client_events.calls[ids[i]].messages, ElementsAre(std::to_string(i)));
  }
  EXPECT_EQ(pair.client.open_streams() + pair.server.open_streams(), 0u);
}

}  // namespace
}  // namespace curtail::wire
