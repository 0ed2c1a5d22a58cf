// SPDX-License-Identifier: Apache-2.0
//
// A client that sends more than its share, against a server whose handlers hold their threads: calls end in time, health is
// answered, and a connection has a share of the queue.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "curtail/rpc/server/hostile_testing.h"

namespace curtail {
namespace {

using std::string_literals::operator""s;

// Handlers that hold their thread: the pool that receives has to be another.
class HostileDispatchTest : public HostileTest {};

TEST_P(HostileDispatchTest, ACallEndsAtItsDeadlineWhileItsHandlerGoesOn) {
  Serve();
  Attacker attacker = Attacker::Greeting(address());
  const TimePoint begin = Now();
  // One runs, the others wait for a thread.
  for (uint32_t stream = 1; stream < 20; stream += 2) {
    attacker.Send(Head(stream, kHang.path, FieldOf("grpc-timeout", "100m")) +
                  DataOf(stream, Prefix(0), true));
  }
  EXPECT_TRUE(Eventually([&] { return Reached("deadline") == 10; }));
  EXPECT_GE(Now() - begin, milliseconds(100));
  EXPECT_TRUE(Eventually([&] { return server_->Sample().open_calls == 0; }));
  gate_.Open();
  EXPECT_TRUE(Eventually([&] { return cancelled_ >= 1; }));
}

// More than a connection may have in work: bytes stay in the socket until replies have gone, and none is lost.
TEST_P(HostileDispatchTest, WholeRequestsPauseTheConnection) {
  Serve();
  Attacker attacker = Attacker::Greeting(address(), "\0\4\x7f\0\0\0"s);
  attacker.Send(FrameOf(8, 0, 0, "\x7f\0\0\0"s));
  constexpr uint32_t kCalls = 60;
  std::thread sender([&] {
    const std::string request = BigText(1 << 20);
    for (uint32_t i = 0; i < kCalls; ++i) {
      attacker.Send(Head(1 + 2 * i, kHang.path) + DataOf(1 + 2 * i, Prefix(request.size()) + request, true));
    }
  });
  EXPECT_TRUE(Eventually([&] { return server_->Sample().held_bytes > 16u << 20; }));
  EXPECT_LT(server_->Sample().held_bytes, 24u << 20);
  gate_.Open();
  EXPECT_TRUE(attacker.AwaitBytes(kCalls << 20));
  sender.join();
  EXPECT_EQ(Reached("held bytes") + Reached("held bytes in all"), 0u);
}

// Replies that wait for windows hold no requests: the bytes that open the windows are read, behind more requests.
TEST_P(HostileDispatchTest, RepliesThatWaitForWindowsPauseNoConnection) {
  Serve();
  Attacker attacker = Attacker::Greeting(address(), "\0\4\0\0\0\0"s);
  constexpr uint32_t kCalls = 40;
  std::thread sender([&] {
    const std::string request = BigText(1 << 20);
    for (uint32_t i = 0; i < kCalls; ++i) {
      attacker.Send(Head(1 + 2 * i, kEcho.path) + DataOf(1 + 2 * i, Prefix(request.size()) + request, true));
    }
    attacker.Send(FrameOf(8, 0, 0, "\x7f\0\0\0"s) + FrameOf(4, 0, 0, "\0\4\x7f\0\0\0"s));
  });
  EXPECT_TRUE(attacker.AwaitBytes(kCalls << 20));
  sender.join();
  EXPECT_EQ(Reached("held bytes") + Reached("held bytes in all"), 0u);
}

// A whole request for a handler that waits.
std::string Hanging(uint32_t stream) { return Head(stream, kHang.path) + DataOf(stream, Prefix(0), true); }

TEST_P(HostileDispatchTest, HealthIsAnsweredWhateverTheQueueIs) {
  options_.health = true;
  Serve();
  Attacker attacker = Attacker::Greeting(address());
  for (uint32_t stream = 1; stream < 200; stream += 2) attacker.Send(Hanging(stream));
  ASSERT_TRUE(gate_.AwaitArrivals(2));  // all threads
  Client client;
  Channel probe(&client, address());
  EXPECT_TRUE(Call(probe, {"/grpc.health.v1.Health/Check"}, "").ok());
  EXPECT_EQ(Call(probe, {"/grpc.health.v1.Health/Check"}, "nobody").code(), absl::StatusCode::kNotFound);
  gate_.Open();
}

TEST_P(HostileDispatchTest, HealthIsAskedByOneMessage) {
  options_.health = true;
  Serve();
  for (const int messages : {0, 2}) {
    std::string data;
    for (int i = 0; i < messages; ++i) data += Prefix(0);
    Attacker attacker = Attacker::Greeting(address());
    attacker.Send(Head(1, "/grpc.health.v1.Health/Check") + FrameOf(0, kEndStream, 1, data));
    EXPECT_TRUE(attacker.AwaitText("exactly one message")) << messages;
  }
}

TEST_P(HostileDispatchTest, ResetCallsLeaveTheQueue) {
  options_.max_queue = 50;
  Serve();
  Attacker attacker = Attacker::Greeting(address());
  for (uint32_t stream = 1; stream < 200; stream += 2) attacker.Send(Hanging(stream));
  ASSERT_TRUE(gate_.AwaitArrivals(2));
  EXPECT_TRUE(Eventually([&] { return Reached("queue") > 0; }));
  for (uint32_t stream = 1; stream < 200; stream += 2) attacker.Send(FrameOf(3, 0, stream, "\0\0\0\x8"s));
  EXPECT_TRUE(Eventually([&] { return server_->Sample().open_calls == 0; }));
  Attacker other = Attacker::Greeting(address());
  for (uint32_t stream = 1; stream < 80; stream += 2) other.Send(Hanging(stream));  // forty: they fit
  EXPECT_TRUE(Eventually([&] { return server_->Sample().open_calls == 40; }));
  const uint64_t refused = Reached("queue");
  gate_.Open();
  EXPECT_TRUE(Eventually([&] { return server_->Sample().open_calls == 0; }));
  EXPECT_EQ(Reached("queue"), refused);
  EXPECT_EQ(other.heard().find(StatusOf(8)), std::string::npos);
}

TEST_P(HostileDispatchTest, OneConnectionHasAShareOfTheQueue) {
  options_.max_queue = 2048;
  Serve();
  Attacker attacker = Attacker::Greeting(address());
  for (uint32_t stream = 1; stream < 3000; stream += 2) attacker.Send(Hanging(stream));
  EXPECT_TRUE(Eventually([&] { return Reached("queue share") >= 1500 - 2048 / 3 - 3; }));
  std::vector<Attacker> more;
  for (int i = 0; i < 4; ++i) {
    more.push_back(Attacker::Greeting(address()));
    for (uint32_t stream = 1; stream < 1500; stream += 2) more.back().Send(Hanging(stream));
    ASSERT_TRUE(more.back().AwaitText(StatusOf(8)));
  }
  EXPECT_EQ(Reached("queue"), 0u);
  Attacker other = Attacker::Greeting(address());
  other.Send(Hanging(1) + FrameOf(6, 0, 0, "12345678"));
  EXPECT_TRUE(other.AwaitText("12345678"));  // it has a place by then
  EXPECT_EQ(other.heard().find(StatusOf(8)), std::string::npos);
  gate_.Open();
  EXPECT_TRUE(other.AwaitText(StatusOf(0)));
}

// Answers with the number of calls so far, once its gate is open.
class CountService final : public Service {
 public:
  explicit CountService(Gate* gate) : gate_(gate) {}
  std::string_view FullName() const override { return "test.Count"; }
  std::vector<MethodHandler> Handlers() override {
    return {{.name = "Next",
             .handler = internal::UnaryHandler<StringValue, StringValue>(
                 [this](Context&, const StringValue&, StringValue* out) -> absl::Status {
                   gate_->Pass();
                   out->set_value(Join(++calls_));
                   return absl::OkStatus();
                 })}};
  }

 private:
  Gate* const gate_;
  int calls_ = 0;  // of the one thread that runs handlers
};

// A call waits for one of each other connection, not for all that came before it.
TEST_P(HostileDispatchTest, ConnectionsTakeTurns) {
  options_.config = *Config::Parse("SDB1-1");
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::make_unique<CountService>(&gate_));
  auto server = Server::Start(options_, std::move(services));
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
  const auto next = [](uint32_t stream) {
    return Head(stream, "/test.Count/Next") + DataOf(stream, Prefix(0), true);
  };
  // The thread that answers the second ping has queued what it read before the first one.
  const auto all_wait = [](Attacker& client) {
    client.Send(FrameOf(6, 0, 0, "1st ping"));
    if (!client.AwaitText("1st ping")) return false;
    client.Send(FrameOf(6, 0, 0, "2nd ping"));
    return client.AwaitText("2nd ping");
  };
  Attacker attacker = Attacker::Greeting(address());
  attacker.Send(next(1));
  ASSERT_TRUE(gate_.AwaitArrivals(1));
  for (uint32_t stream = 3; stream < 180; stream += 2) attacker.Send(next(stream));
  ASSERT_TRUE(all_wait(attacker));
  Attacker other = Attacker::Greeting(address());
  other.Send(next(1));
  ASSERT_TRUE(all_wait(other));
  gate_.Open();
  EXPECT_TRUE(other.AwaitText(Text("3").SerializeAsString()));
  EXPECT_TRUE(attacker.AwaitText(Text("91").SerializeAsString()));
}

INSTANTIATE_TEST_SUITE_P(Models, HostileDispatchTest, testing::Values("SDB1-2"),
                         [](const auto&) { return "SDB12"; });

}  // namespace
}  // namespace curtail
