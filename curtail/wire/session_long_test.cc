// SPDX-License-Identifier: Apache-2.0
//
// Long messages: handed out where they lie, read to where they belong, in long frames.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "curtail/wire/internal/frame.h"
#include "curtail/wire/session_testing.h"

namespace curtail::wire {
namespace {

using internal::FrameHeader;
using internal::FrameType;
using internal::kFrameHeaderBytes;
using internal::kMaxLongFrameBytes;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr size_t kLong = 100'000;

// A pair that has shaken hands.
struct LongMessages : Pair, testing::Test {
  LongMessages() { EXPECT_TRUE(Pump().ok()); }

  // A client's output for `to`, without its memory.
  std::string Say(Session& from) {
    Output output;
    EXPECT_FALSE(from.Gather(&output));
    std::string said = Joined(output);
    from.Written();
    return said;
  }
};

TEST_F(LongMessages, AreHandedOutWhereTheyLie) {
  std::string message = Pattern(kLong);
  const std::string_view where = message;
  const StreamId id = StartUnary(*this, std::move(message));
  Output output;
  EXPECT_FALSE(client.Gather(&output));
  size_t lent = 0;
  for (const Output::Piece& piece : output.pieces) {
    EXPECT_GE(piece.bytes.data(), where.data());
    EXPECT_LE(piece.bytes.data() + piece.bytes.size(), where.data() + where.size());
    lent += piece.bytes.size();
  }
  EXPECT_EQ(lent, kLong);
  EXPECT_EQ(output.size, output.bytes.size() + lent);
  ASSERT_TRUE(server.Receive(Joined(output)).ok());
  client.Written();
  EXPECT_THAT(server_events.calls[id].messages, ElementsAre(Pattern(kLong)));
}

TEST_F(LongMessages, StayUntilTheyAreWritten) {
  const absl::StatusOr<StreamId> id = client.StartCall(Head(), nullptr);
  ASSERT_TRUE(id.ok());
  client.SendMessage(*id, Pattern(kLong));      // is handed out whole
  client.SendMessage(*id, Pattern(kLong + 1));  // ... and this in part
  Output output;
  EXPECT_TRUE(client.Gather(&output, kLong + 50'000));
  const std::string before = Joined(output);
  EXPECT_GE(client.memory_bytes(), kLong);
  client.Cancel(*id);
  EXPECT_EQ(Joined(output), before);
  EXPECT_GE(client.memory_bytes(), 2 * kLong);
  client.Written();
  EXPECT_LT(client.memory_bytes(), 10'000u);
}

TEST_F(LongMessages, OfARepliesEndStayUntilTheyAreWritten) {
  ServeEcho();
  StartUnary(*this, Pattern(kLong));
  ASSERT_TRUE(server.Receive(Say(client)).ok());
  Output output;
  EXPECT_FALSE(server.Gather(&output));
  EXPECT_EQ(server.open_streams(), 0u);
  EXPECT_THAT(Joined(output), HasSubstr(Pattern(kLong)));
  server.Written();
  EXPECT_LT(server.memory_bytes(), 10'000u);
}

TEST_F(LongMessages, ComeBackUnprocessedWhileTheyAreWritten) {
  const StreamId id = StartUnary(*this, Pattern(kLong));
  Output output;
  EXPECT_FALSE(client.Gather(&output));
  const std::string before = Joined(output);
  server.SendGoaway();
  ASSERT_TRUE(client.Receive(Say(server)).ok());
  EXPECT_EQ(client_events.calls[id].unprocessed, Pattern(kLong));
  EXPECT_EQ(Joined(output), before);
  client.Written();
}

TEST_F(LongMessages, AreReadToWhereTheyBelong) {
  const StreamId id = StartUnary(*this, Pattern(kLong));
  const std::string said = Say(client);
  const std::string_view first = std::string_view(said).substr(0, 5000);
  ASSERT_TRUE(server.Receive(first).ok());
  EXPECT_TRUE(server.TookLong());
  EXPECT_FALSE(server.TookLong());
  EXPECT_FALSE(server.input_unfinished()) << "DATA of a call has the call's time";
  EXPECT_EQ(server.Room().size(), said.size() - first.size());
  for (std::string_view rest = std::string_view(said).substr(first.size()); !rest.empty();) {
    const std::string_view some = rest.substr(0, 30'000);
    ASSERT_TRUE(server_events.calls[id].messages.empty());
    ASSERT_TRUE(ReceiveByRooms(server, some, 1).ok());
    rest.remove_prefix(some.size());
  }
  EXPECT_TRUE(server.Room(1).empty());
  EXPECT_THAT(server_events.calls[id].messages, ElementsAre(Pattern(kLong)));
  EXPECT_TRUE(server_events.calls[id].request_ended);
}

TEST(LongMessagesLimits, HoldForFramesThatHaveNotComeWhole) {
  SessionOptions options;
  options.max_partial_bytes = 30'000;
  options.max_message_bytes = 50'000;
  Pair pair({}, options, 1);
  ASSERT_TRUE(pair.Pump().ok());
  const auto begin = [&](size_t size, size_t come) {
    const absl::StatusOr<StreamId> id = pair.client.StartCall(Head(), nullptr);
    pair.client.SendMessage(*id, Pattern(size));
    Output output;
    pair.client.Gather(&output);
    EXPECT_TRUE(ReceiveByRooms(pair.server, std::string_view(Joined(output)).substr(0, come), 1).ok());
    pair.client.Written();
    return *id;
  };
  const StreamId too_long = begin(60'000, 1000);
  EXPECT_EQ(pair.server_events.calls[too_long].status.code(), absl::StatusCode::kResourceExhausted);
  // The rest of the frame goes nowhere, and the connection goes on.
  EXPECT_TRUE(pair.server.Receive(std::string(200, 'x')).ok());
  EXPECT_EQ(pair.server.open_streams(), 0u);
}

TEST_F(LongMessages, OfManyStreamsAreHeldToTheLimitWhileTheyCome) {
  server.LimitHeld(30'000, 30'000);
  const StreamId id = StartUnary(*this, Pattern(kLong));
  const std::string said = Say(client);
  ASSERT_TRUE(ReceiveByRooms(server, std::string_view(said).substr(0, 29'000), 1).ok());
  EXPECT_EQ(server_events.calls[id].ends, 0);
  EXPECT_GE(server.memory_bytes(), 28'000u);
  ASSERT_TRUE(ReceiveByRooms(server, std::string_view(said).substr(29'000, 2000), 1).ok());
  EXPECT_EQ(server_events.calls[id].status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_LT(server.memory_bytes(), 10'000u);
  EXPECT_TRUE(server.Receive(std::string_view(said).substr(31'000)).ok());
  EXPECT_FALSE(server.input_unfinished());
}

TEST(LongMessagesLimits, AWindowHoldsForHalfAFrame) {
  Recorder events;
  SessionOptions options;
  options.stream_window_bytes = 70'000;
  Session server(Role::kServer, options, &events);
  Session client(Role::kClient, {}, &events);
  std::string said;
  client.Pull(&said);
  EXPECT_TRUE(client.StartCall(Head(), nullptr).ok());
  client.Pull(&said);
  ASSERT_TRUE(server.Receive(said).ok());
  server.SetReading(1, false);
  char header[kFrameHeaderBytes];
  FrameHeader{90'000, FrameType::kData, 0, 1}.Write(header);
  said.assign(header, sizeof header).append("\0\1\0\0\0", 5).append(std::string(69'000, 'x'));
  ASSERT_TRUE(ReceiveByRooms(server, said, 1).ok());
  EXPECT_EQ(events.calls[1].ends, 0);
  ASSERT_TRUE(ReceiveByRooms(server, std::string(2000, 'x'), 1).ok());
  EXPECT_EQ(events.calls[1].ends, 1);
  EXPECT_THAT(std::string(events.calls[1].status.message()), HasSubstr("FLOW_CONTROL_ERROR"));
}

TEST(LongMessagesLimits, FramesMayBeLongIfTheyCarryRequests) {
  for (const auto& [type, length, allowed] : {std::tuple(FrameType::kData, kMaxLongFrameBytes, true),
                                              {FrameType::kData, kMaxLongFrameBytes + 1, false},
                                              {FrameType::kHeaders, kMaxLongFrameBytes, true},
                                              {FrameType::kHeaders, kMaxLongFrameBytes + 1, false},
                                              {FrameType::kSettings, 16386u, false},
                                              {FrameType::kPing, 16385u, false},
                                              {FrameType::kPriority, 16385u, false}}) {
    Recorder events;
    Session server(Role::kServer, {}, &events);
    Session client(Role::kClient, {}, &events);
    std::string said;
    client.Pull(&said);
    char header[kFrameHeaderBytes];
    FrameHeader{length, type, 0, type == FrameType::kData || type == FrameType::kHeaders ? 1 : 0}.Write(
        header);
    said.append(header, sizeof header);
    EXPECT_EQ(server.Receive(said).ok(), allowed) << static_cast<int>(type) << " " << length;
    EXPECT_TRUE(server.input_unfinished() || !allowed);
  }
}

}  // namespace
}  // namespace curtail::wire
