// SPDX-License-Identifier: Apache-2.0
//
// Two Sessions face to face: how calls and connections end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "curtail/wire/internal/messages.h"
#include "curtail/wire/session.h"
#include "curtail/wire/session_testing.h"

namespace curtail::wire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Session, CallsBeyondThePeersLimitWaitTheirTurn) {
  SessionOptions few;
  few.max_concurrent_streams = 3;
  Pair pair({}, few, 1);
  pair.ServeEcho();
  ASSERT_TRUE(pair.Pump().ok());
  std::vector<StreamId> ids;
  for (int i = 0; i < 20; ++i) ids.push_back(StartUnary(pair, "m"));
  pair.client.Cancel(ids[10]);  // still waits for a stream
  EXPECT_EQ(pair.client_events.calls[ids[10]].status.code(), absl::StatusCode::kCancelled);
  ASSERT_TRUE(pair.Pump().ok());
  for (StreamId id : ids) EXPECT_EQ(pair.client_events.calls[id].ends, 1);
  EXPECT_EQ(pair.server_events.calls.size(), 19u);
}

TEST(Session, ClientCancelReachesTheServer) {
  Pair pair;
  const StreamId id = StartUnary(pair, "m");
  ASSERT_TRUE(pair.Pump().ok());
  pair.client.Cancel(id);
  EXPECT_EQ(pair.client_events.calls[id].ends, 1);
  EXPECT_EQ(pair.client_events.calls[id].status.code(), absl::StatusCode::kCancelled);
  ASSERT_TRUE(pair.Pump().ok());
  EXPECT_EQ(pair.server_events.calls[id].ends, 1);
  EXPECT_EQ(pair.server_events.calls[id].status.code(), absl::StatusCode::kCancelled);
  pair.server.SendMessage(id, "too late");
  pair.server.EndCall(id, absl::OkStatus());
  pair.client.Cancel(id);
  ASSERT_TRUE(pair.Pump().ok());
  EXPECT_EQ(pair.client_events.late_events + pair.server_events.late_events, 0);
  EXPECT_EQ(pair.server.queued_bytes(), 0u);
}

TEST(Session, ServerCancelReachesTheClient) {
  Pair pair;
  const StreamId id = StartUnary(pair, "m");
  ASSERT_TRUE(pair.Pump().ok());
  pair.server.Cancel(id);
  ASSERT_TRUE(pair.Pump().ok());
  EXPECT_EQ(pair.client_events.calls[id].status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(pair.client_events.calls[id].ends, 1);
}

TEST(Session, HalfAReplyIsResetWithACodeThatTellsTheStatus) {
  const struct {
    absl::Status failed;
    absl::StatusCode heard;
  } cases[] = {{absl::DeadlineExceededError("late"), absl::StatusCode::kCancelled},
               {absl::ResourceExhaustedError("too much"), absl::StatusCode::kResourceExhausted},
               {absl::InternalError("broken"), absl::StatusCode::kInternal}};
  for (const auto& c : cases) {
    Pair pair;
    const StreamId id = StartUnary(pair, "m");
    ASSERT_TRUE(pair.Pump().ok());
    pair.server.SendMessage(id, Pattern(3 << 20));
    std::string half;
    EXPECT_TRUE(pair.server.Pull(&half, 100000));
    ASSERT_TRUE(pair.client.Receive(half).ok());
    pair.server.FailCall(id, c.failed);
    EXPECT_EQ(pair.server_events.calls[id].status, c.failed);
    ASSERT_TRUE(pair.Pump().ok());
    EXPECT_EQ(pair.client_events.calls[id].ends, 1);
    EXPECT_EQ(pair.client_events.calls[id].status.code(), c.heard) << c.failed;
  }
}

TEST(Session, CancelDropsWhatIsQueued) {
  Pair pair;
  ASSERT_TRUE(pair.Pump().ok());
  const StreamId id = StartUnary(pair, Pattern(3 << 20));
  std::string out;
  EXPECT_TRUE(pair.client.Pull(&out, 100000));
  pair.client.Cancel(id);
  EXPECT_EQ(pair.client.queued_bytes(), 0u);
  ASSERT_TRUE(pair.server.Receive(out).ok());
  ASSERT_TRUE(pair.Pump().ok());
  EXPECT_EQ(pair.server_events.calls[id].status.code(), absl::StatusCode::kCancelled);
}

// Every event may cancel its own stream or all others; each call still ends exactly once.
TEST(Session, EventsMayCancelAnyStream) {
  for (int who = 0; who < 7; ++who) {
    Pair pair({}, TestSeed());
    pair.ServeEcho();
    auto cancel_all = [&](Session* session, Recorder* log) {
      return [session, log](StreamId) {
        std::vector<StreamId> ids;
        for (const auto& [id, call] : log->calls) ids.push_back(id);
        for (StreamId id : ids) session->Cancel(id);
      };
    };
    const auto at_server = cancel_all(&pair.server, &pair.server_events);
    const auto at_client = cancel_all(&pair.client, &pair.client_events);
    if (who == 0) pair.server_events.on_request = at_server;
    if (who == 1) pair.server_events.on_message = [&](StreamId id, const std::string&) { at_server(id); };
    if (who == 2) pair.server_events.on_request_end = at_server;
    if (who == 3) pair.server_events.on_end = at_server;
    if (who == 4) pair.client_events.on_head = at_client;
    if (who == 5) pair.client_events.on_message = [&](StreamId id, const std::string&) { at_client(id); };
    if (who == 6) pair.client_events.on_end = at_client;
    for (int i = 0; i < 10; ++i) StartUnary(pair, Pattern(40000));
    ASSERT_TRUE(pair.Pump(1 + pair.rng() % 5000).ok());
    for (const auto& [id, call] : pair.client_events.calls) EXPECT_EQ(call.ends, 1) << who << " " << id;
    for (const auto& [id, call] : pair.server_events.calls) EXPECT_EQ(call.ends, 1) << who << " " << id;
    EXPECT_EQ(pair.client_events.calls.size(), 10u);
    EXPECT_EQ(pair.client.open_streams() + pair.server.open_streams(), 0u);
  }
}

TEST(Session, EndedCallMayStartTheNext) {
  Pair pair;
  pair.ServeEcho();
  int left = 20;
  pair.client_events.on_end = [&](StreamId) {
    if (left-- > 0) StartUnary(pair, "next");
  };
  StartUnary(pair, "first");
  ASSERT_TRUE(pair.Pump().ok());
  EXPECT_EQ(pair.client_events.calls.size(), 21u);
}

TEST(Session, GoawayLetsStreamsInFlightFinish) {
  Pair pair;
  const StreamId first = StartUnary(pair, "in flight");
  ASSERT_TRUE(pair.Pump().ok());
  pair.server.SendGoaway();
  const StreamId second = StartUnary(pair, "crosses the GOAWAY");
  ASSERT_TRUE(pair.Pump().ok());
  EXPECT_EQ(pair.client_events.goaway, first);
  EXPECT_EQ(pair.client_events.calls[second].status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(pair.server_events.calls.count(second), 0u);
  EXPECT_EQ(pair.client.StartCall(Head(), nullptr).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(pair.server.Finished());
  EXPECT_FALSE(pair.client.Finished());
  pair.server.SendMessage(first, "done");
  pair.server.EndCall(first, absl::OkStatus());
  ASSERT_TRUE(pair.Pump().ok());
  EXPECT_TRUE(pair.client_events.calls[first].status.ok());
  EXPECT_TRUE(pair.server.Finished());
  EXPECT_TRUE(pair.client.Finished());
}

TEST(Session, ShutdownNoticeRefusesNothingInFlight) {
  Pair pair;
  pair.ServeEcho();
  ASSERT_TRUE(pair.Pump().ok());
  pair.server.SendShutdownNotice();
  const StreamId crossing = StartUnary(pair, "crosses the notice");
  std::string request;
  pair.client.Pull(&request);
  ASSERT_TRUE(pair.Pump().ok());
  EXPECT_TRUE(pair.client_events.goaway);
  EXPECT_FALSE(pair.client.StartCall(Head(), nullptr).ok());
  ASSERT_TRUE(pair.server.Receive(request).ok());
  pair.server.SendGoaway();
  ASSERT_TRUE(pair.Pump().ok());
  EXPECT_TRUE(pair.client_events.calls[crossing].status.ok()) << pair.client_events.calls[crossing].status;
  EXPECT_TRUE(pair.server.Finished());
}

TEST(Session, GoawayEndsCallsThatWaitForAStream) {
  SessionOptions few;
  few.max_concurrent_streams = 1;
  Pair pair({}, few, 1);
  ASSERT_TRUE(pair.Pump().ok());
  const StreamId running = StartUnary(pair, "m");
  const StreamId waiting = StartUnary(pair, "m");
  ASSERT_TRUE(pair.Pump().ok());
  pair.server.SendGoaway();
  ASSERT_TRUE(pair.Pump().ok());
  EXPECT_EQ(pair.client_events.calls[waiting].status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(pair.client_events.calls[running].ends, 0);
}

TEST(Session, CallsThatNeverGotAStreamAreUnprocessed) {
  SessionOptions options;
  options.max_concurrent_streams = 1;
  for (const bool goaway : {false, true}) {
    Pair pair(options);
    const StreamId first = StartUnary(pair, "first");
    ASSERT_TRUE(pair.Pump().ok());
    const StreamId waits = StartUnary(pair, "waits");
    if (goaway) {
      pair.server.SendGoaway();
      ASSERT_TRUE(pair.Pump().ok());
    } else {
      pair.client.Abort(absl::UnavailableError("gone"));
    }
    EXPECT_FALSE(pair.client_events.calls[first].unprocessed);
    EXPECT_EQ(pair.client_events.calls[waits].unprocessed, "waits");
    EXPECT_EQ(pair.client_events.calls[waits].status.code(), absl::StatusCode::kUnavailable);
  }
}

TEST(Session, PingIsAnsweredWithItsPayload) {
  Pair pair;
  pair.client.SendPing(0x0123456789abcdefu);
  pair.server.SendPing(7);
  ASSERT_TRUE(pair.Pump(3).ok());
  EXPECT_THAT(pair.client_events.pongs, ElementsAre(0x0123456789abcdefu));
  EXPECT_THAT(pair.server_events.pongs, ElementsAre(7u));
}

TEST(Session, AbortEndsEveryCallOnce) {
  Pair pair;
  std::vector<StreamId> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(StartUnary(pair, "m"));
  ASSERT_TRUE(pair.Pump().ok());
  ids.push_back(StartUnary(pair, "never sent"));
  pair.client.Abort(absl::UnavailableError("gone"));
  pair.client.Abort(absl::UnavailableError("again"));
  pair.server.Abort(absl::UnavailableError("gone"));
  for (StreamId id : ids) EXPECT_EQ(pair.client_events.calls[id].status, absl::UnavailableError("gone"));
  for (const auto& [id, call] : pair.client_events.calls) EXPECT_EQ(call.ends, 1);
  EXPECT_EQ(pair.server_events.calls.size(), 5u);
  EXPECT_EQ(pair.client.open_streams() + pair.server.open_streams(), 0u);
  EXPECT_EQ(pair.client.queued_bytes(), 0u);
  EXPECT_EQ(pair.client.StartCall(Head(), nullptr).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(pair.client.Receive("anything").ok());
  std::string out;
  while (pair.client.Pull(&out)) continue;
  EXPECT_TRUE(pair.client.Finished());
}

TEST(Session, AbortFromAnEventIsSafe) {
  Pair pair;
  pair.server_events.on_message = [&](StreamId, const std::string&) {
    pair.server.Abort(absl::AbortedError("x"));
  };
  for (int i = 0; i < 3; ++i) StartUnary(pair, "m");
  EXPECT_FALSE(pair.Pump().ok());
  for (const auto& [id, call] : pair.server_events.calls) EXPECT_EQ(call.ends, 1);
  EXPECT_EQ(pair.server_events.late_events, 0);
}

TEST(Session, DestructionIsSilent) {
  Recorder events;
  {
    Session client(Role::kClient, {}, &events);
    ASSERT_TRUE(client.StartUnaryCall(Head(), "m", nullptr).ok());
  }
  EXPECT_TRUE(events.calls.empty());
}

TEST(Session, TagComesBackWithEveryEvent) {
  struct Tagged : Recorder {
    void* expected = nullptr;
    int wrong = 0;
    void OnMessage(StreamId, void* tag, std::string&&) override { wrong += tag != expected; }
    void OnResponseHead(StreamId, void* tag, Metadata&&) override { wrong += tag != expected; }
    void OnCallEnd(StreamId, void* tag, absl::Status&&, Metadata&&) override { wrong += tag != expected; }
  };
  Tagged client_events;
  Recorder server_events;
  client_events.expected = &server_events;
  Session client(Role::kClient, {}, &client_events), server(Role::kServer, {}, &server_events);
  server_events.on_request_end = [&](StreamId id) {
    server.SendMessage(id, "m");
    server.EndCall(id, absl::OkStatus());
  };
  ASSERT_TRUE(client.StartUnaryCall(Head(), "m", &server_events).ok());
  std::string request, reply;
  client.Pull(&request);
  ASSERT_TRUE(server.Receive(request).ok());
  server.Pull(&reply);
  ASSERT_TRUE(client.Receive(reply).ok());
  EXPECT_EQ(client.open_streams(), 0u);
  EXPECT_EQ(client_events.wrong, 0);
}

// A session keeps its streams for later calls: a thousand of them, so without the memory of long messages.
TEST(SendQueue, KeepsNoMemoryOfALongMessage) {
  internal::SendQueue queue;
  queue.Push(std::string(1u << 20, 'x'));
  std::string out;
  internal::Lender lender;
  queue.Take(queue.size(), &out, lender, /*keep_last=*/true);
  EXPECT_EQ(queue.Clear(), 0u);
  EXPECT_LT(queue.TakeBack(lender).capacity(), 4096u);
}

}  // namespace
}  // namespace curtail::wire
