// SPDX-License-Identifier: Apache-2.0
//
// Server and client together, over real sockets, under each synchronous model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "curtail/rpc/rpc_testing.h"

namespace curtail {
namespace {

using testing::HasSubstr;

class RpcTest : public RpcBase, public testing::TestWithParam<const char*> {
 protected:
  // The part that a leaf sees of the "x-key" that the caller of its mid-tier sends.
  std::string MetadataAtTheLeaf() {
    Client client;
    auto leaf = StartServer("SIB1");
    Channel channel_leaf(&client, leaf->addresses()[0]);
    auto mid = StartServer(GetParam(), {&channel_leaf});
    Client front;
    Channel channel(&front, mid->addresses()[0]);
    Context ctx(kMaxTestWait);
    ctx.AddMetadata("x-key", "value");
    StringValue reply;
    const absl::Status status = channel.Call(ctx, kForward.path, Text("meta"), &reply);
    EXPECT_TRUE(status.ok()) << status;
    return reply.value();
  }
};

TEST_P(RpcTest, AnswersACall) {
  auto server = StartServer(GetParam());
  Client client;
  Channel channel(&client, server->addresses()[0]);
  std::string answer;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(Call(channel, kEcho, Join("hello ", i), &answer).ok());
    ASSERT_EQ(answer, Join("hello ", i));
  }
  EXPECT_TRUE(server->Drain(Deadline::In(seconds(5))).ok());
}

TEST_P(RpcTest, CarriesErrors) {
  auto server = StartServer(GetParam());
  Client client;
  Channel channel(&client, server->addresses()[0]);
  const absl::Status failed = Call(channel, kEcho, "fail");
  EXPECT_EQ(failed.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Message(failed), "no such thing: \xc3\xa9 100%");
  EXPECT_EQ(Call(channel, {"/test.Echo/Nope"}, "").code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(Call(channel, {"/test.Nope/Echo"}, "").code(), absl::StatusCode::kUnimplemented);
  const absl::Status thrown = Call(channel, kThrow, "");
  EXPECT_EQ(thrown.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(Message(thrown)), HasSubstr("thrown"));
  EXPECT_EQ(Call(channel, kThrow, "int").code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(Call(channel, kEcho, "still here").ok());
}

TEST_P(RpcTest, FansOutToLeaves) {
  Client client;
  auto a = StartServer("SIB1");
  auto b = StartServer("SDB1-2");
  Channel leaf_a(&client, a->addresses()[0]);
  Channel leaf_b(&client, b->addresses()[0]);
  auto mid = StartServer(GetParam(), {&leaf_a, &leaf_b, &leaf_a, &leaf_b});
  Client front;
  Channel channel(&front, mid->addresses()[0]);
  std::string answer;
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(Call(channel, kForward, "x", &answer).ok());
    ASSERT_EQ(answer, "x;x;x;x;");
  }
}

TEST_P(RpcTest, ManyThreadsFanOutAtOnceStress) {
  Client client({.lanes = 2});
  auto a = StartServer("SIB2");
  auto b = StartServer("SDB2-3");
  Channel leaf_a(&client, a->addresses()[0]);
  Channel leaf_b(&client, b->addresses()[0]);
  auto mid = StartServer(GetParam(), {&leaf_a, &leaf_b});
  Client front;
  Channel channel(&front, mid->addresses()[0]);
  constexpr int kThreads = 8;
  constexpr int kCalls = 200;
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kCalls; ++i) {
        std::string answer;
        const std::string text = Join(t, "/", i);
        if (Call(channel, kForward, text, &answer).ok() && answer == text + ";" + text + ";") ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, kThreads * kCalls);
}

TEST_P(RpcTest, DeadlineEndsACallAndTheHandlerLearnsOfIt) {
  auto server = StartServer(GetParam());
  Client client;
  Channel channel(&client, server->addresses()[0]);
  // On a busy machine a deadline may pass before the handler begins: the next one is longer.
  for (milliseconds timeout(50); gate_.arrived() == 0 && timeout < kMaxTestWait; timeout *= 2) {
    const absl::Status status = Call(channel, kHang, "", nullptr, timeout);
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  }
  ASSERT_TRUE(gate_.AwaitArrivals(1));
  gate_.Open();
  EXPECT_TRUE(Call(channel, kEcho, "next").ok());
}

TEST_P(RpcTest, DeadlineOfTheParentEndsItsChildren) {
  Client client;
  auto leaf = StartServer("SDB1-4");
  Channel channel_leaf(&client, leaf->addresses()[0]);
  auto mid = StartServer(GetParam(), {&channel_leaf});
  Client front;
  Channel channel(&front, mid->addresses()[0]);
  const absl::Status status = Call(channel, kForward, "hang", nullptr, milliseconds(100));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  gate_.Open();
  EXPECT_TRUE(Call(channel, kForward, "x").ok());
}

TEST_P(RpcTest, CancellationReachesTheChildren) {
  Client client;
  auto leaf = StartServer("SDB1-4");
  Channel channel_leaf(&client, leaf->addresses()[0]);
  auto mid = StartServer("SDB1-2", {&channel_leaf});
  Client front;
  Channel channel(&front, mid->addresses()[0]);
  Context ctx(kMaxTestWait);
  std::thread caller([&] {
    StringValue reply;
    const absl::Status status = channel.Call(ctx, kForward.path, Text("hang"), &reply);
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  });
  ASSERT_TRUE(gate_.AwaitArrivals(1));
  ctx.Cancel();
  caller.join();
  // The mid-tier's handler ends with its call to the leaf cancelled, although the leaf never answered.
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (cancelled_ == 0 && !deadline.Expired()) BetweenLooks();
  EXPECT_GE(cancelled_, 1);
  gate_.Open();
}

TEST_P(RpcTest, AReplyThatIsReadAfterTheDeadlineIsNone) {
  auto server = StartServer(GetParam());
  Client client;
  Channel channel(&client, server->addresses()[0]);
  struct Answer final : Completion {
    void Done(absl::Status&& s, std::string&&) override { status = std::move(s), done = true; }
    absl::Status status;
    bool done = false;
  } answer;
  const Deadline deadline = Deadline::In(milliseconds(200));
  channel.Start(kHang.path, deadline, {}, Text("x").SerializeAsString(), &answer);
  while (gate_.arrived() == 0 && !deadline.Expired()) client.Poll(Deadline::In(milliseconds(1)));
  gate_.Open();
  while (!deadline.Expired()) BetweenLooks();  // the reply waits in the socket
  const Deadline limit = Deadline::In(kMaxTestWait);
  while (!answer.done && !limit.Expired()) client.Poll(Deadline::In(milliseconds(1)));
  EXPECT_EQ(answer.status.code(), absl::StatusCode::kDeadlineExceeded) << answer.status;
}

TEST_P(RpcTest, ChildCallsCarryForwardedMetadata) {
  forward_metadata_ = {"x-key"};
  EXPECT_EQ(MetadataAtTheLeaf(), "value;");
}

TEST_P(RpcTest, ChildCallsCarryNothingElseOfTheCallers) {
  forward_metadata_ = {"x-other"};
  EXPECT_EQ(MetadataAtTheLeaf(), "none;");
}

TEST_P(RpcTest, RefusesToForwardAKeyThatIsNone) {
  for (const char* key : {"X-Upper", "grpc-timeout", ":path", "te", "a b", ""}) {
    ServerOptions options;
    options.forward_metadata = {key};
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<EchoService>(&gate_, std::vector<Channel*>(), nullptr));
    const auto server = Server::Start(std::move(options), std::move(services));
    EXPECT_EQ(server.status().code(), absl::StatusCode::kInvalidArgument) << key;
    EXPECT_THAT(std::string(Message(server.status())), testing::HasSubstr("forward")) << key;
  }
}

TEST_P(RpcTest, BigMessagesPass) {
  auto server = StartServer(GetParam());
  Client client;
  Channel channel(&client, server->addresses()[0]);
  std::string answer;
  const std::string big(16u << 20, 'b');
  ASSERT_TRUE(Call(channel, kEcho, big, &answer).ok());
  EXPECT_EQ(answer, big);
  EXPECT_EQ(Call(channel, kEcho, std::string(33u << 20, 'b')).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Call(channel, kEcho, "small").ok());
}

TEST_P(RpcTest, ReconnectsAfterTheServerIsBack) {
  auto server = StartServer(GetParam());
  const std::string address = server->addresses()[0];
  Client client;
  Channel channel(&client, address, {.initial_backoff = milliseconds(1), .max_backoff = milliseconds(1)});
  ASSERT_TRUE(Call(channel, kEcho, "one").ok());
  ASSERT_TRUE(server->Drain(Deadline::In(seconds(5))).ok());
  server.reset();
  const absl::Status gone = Call(channel, kEcho, "two");
  EXPECT_EQ(gone.code(), absl::StatusCode::kUnavailable) << gone;
  EXPECT_THAT(std::string(Message(gone)), HasSubstr(address));
  server = StartServer(GetParam(), {}, address);
  const Deadline deadline = Deadline::In(kMaxTestWait);
  absl::Status back;
  do {
    back = Call(channel, kEcho, "three");
    BetweenLooks();
  } while (!back.ok() && !deadline.Expired());
  EXPECT_TRUE(back.ok()) << back;
}

TEST_P(RpcTest, DrainLetsRequestsFinish) {
  auto server = StartServer(GetParam());
  Client client;
  Channel channel(&client, server->addresses()[0]);
  std::string answer;
  std::thread caller([&] { EXPECT_TRUE(Call(channel, kHang, "done", &answer).ok()); });
  ASSERT_TRUE(gate_.AwaitArrivals(1));
  std::thread opener([&] { gate_.Open(); });
  EXPECT_TRUE(server->Drain(Deadline::In(seconds(10))).ok());
  caller.join();
  opener.join();
  EXPECT_EQ(answer, "done");
}

TEST_P(RpcTest, DrainIsBoundedByItsDeadline) {
  auto server = StartServer(GetParam());
  Client client;
  Channel channel(&client, server->addresses()[0]);
  std::thread caller([&] { EXPECT_EQ(Call(channel, kHang, "").code(), absl::StatusCode::kUnavailable); });
  ASSERT_TRUE(gate_.AwaitArrivals(1));
  const absl::Status drained = server->Drain(Deadline::In(milliseconds(50)));
  EXPECT_EQ(drained.code(), absl::StatusCode::kAborted) << drained;  // the handler ignores its cancellation
  caller.join();
  gate_.Open();
}

TEST_P(RpcTest, ServesUnixSockets) {
  const std::string path = Join("unix:", testing::TempDir(), "/curtail_rpc_test.", getpid());
  auto server = StartServer(GetParam(), {}, path);
  Client client;
  Channel channel(&client, path);
  EXPECT_TRUE(Call(channel, kEcho, "x").ok());
  server.reset();
  EXPECT_NE(access(path.c_str() + 5, F_OK), 0);
}

TEST_P(RpcTest, EventDrivenCallsShareTheChannel) {
  auto server = StartServer(GetParam());
  Client client;
  Channel channel(&client, server->addresses()[0]);
  struct Count final : Completion {
    void Done(absl::Status&& status, std::string&& reply) override {
      StringValue value;
      ok += status.ok() && value.ParseFromString(reply) && value.value() == "event";
      ++all;
    }
    int ok = 0;
    int all = 0;
  } count;
  constexpr int kCalls = 1000;
  const std::string request = Text("event").SerializeAsString();
  for (int i = 0; i < kCalls; ++i) {
    channel.Start(kEcho.path, Deadline::In(kMaxTestWait), {}, request, &count);
  }
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (count.all < kCalls && !deadline.Expired()) client.Poll(deadline);
  EXPECT_EQ(count.ok, kCalls);
}

TEST_P(RpcTest, EventDrivenDeadlinesExpire) {
  auto server = StartServer(GetParam());
  Client client;
  Channel channel(&client, server->addresses()[0]);
  struct Last final : Completion {
    void Done(absl::Status&& s, std::string&&) override { status = std::move(s), done = true; }
    absl::Status status;
    bool done = false;
  } last;
  channel.Start(kHang.path, Deadline::In(milliseconds(20)), {}, Text("").SerializeAsString(), &last);
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (!last.done && !deadline.Expired()) client.Poll(deadline);
  EXPECT_EQ(last.status.code(), absl::StatusCode::kDeadlineExceeded) << last.status;
  gate_.Open();
}

// A reply that is ready must not wait for a slow request that was received together with it.
TEST_P(RpcTest, ASlowHandlerHoldsNoRepliesBack) {
  auto server = StartServer(GetParam());
  Client client;
  Channel channel(&client, server->addresses()[0]);
  ASSERT_TRUE(Call(channel, kEcho, "warm").ok());
  struct Flag final : Completion {
    void Done(absl::Status&& s, std::string&&) override { ok = s.ok(), done = true; }
    bool ok = false;
    bool done = false;
  } quick, slow;
  channel.Start(kEcho.path, Deadline::In(kMaxTestWait), {}, Text("x").SerializeAsString(), &quick);
  channel.Start(kHang.path, Deadline::In(kMaxTestWait), {}, Text("y").SerializeAsString(), &slow);
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (!quick.done && !deadline.Expired()) client.Poll(deadline);
  EXPECT_TRUE(quick.ok);
  EXPECT_FALSE(slow.done);  // the gate is still shut
  gate_.Open();
  while (!slow.done && !deadline.Expired()) client.Poll(deadline);
  EXPECT_TRUE(slow.ok);
}

// Property: a drain at any moment under load ends every call, with an answer or with an error, and frees what
// it used.
TEST_P(RpcTest, DrainUnderLoadLosesNoCallStress) {
  for (int round = 0; round < 10; ++round) {
    auto server = StartServer(GetParam());
    Client client;
    Channel channel(&client, server->addresses()[0]);
    struct Count final : Completion {
      void Done(absl::Status&&, std::string&&) override { ++done; }
      int done = 0;
    } count;
    constexpr int kCalls = 300;
    for (int i = 0; i < kCalls; ++i) {
      channel.Start(kEcho.path, Deadline::In(kMaxTestWait), {}, Text("x").SerializeAsString(), &count);
    }
    client.Poll(Deadline::In(milliseconds(0)));
    std::thread drainer([&] { server->Drain(Deadline::In(Nanos(round * 100'000))).IgnoreError(); });
    const Deadline deadline = Deadline::In(kMaxTestWait);
    while (count.done < kCalls && !deadline.Expired()) client.Poll(deadline);
    drainer.join();
    ASSERT_EQ(count.done, kCalls);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, RpcTest,
                         testing::Values("SIB1", "SIB4", "SIP1", "SIP3", "SDB1-1", "SDB1-8", "SDB2-4",
                                         "SDP1-4", "FIB1", "FIB3", "FIP1", "FDB1-1", "FDB2-4", "FDP1-2"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace curtail
