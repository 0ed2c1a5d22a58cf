// SPDX-License-Identifier: Apache-2.0
//
// Connections that a server ends by age. Property: no call is lost, unless it takes longer than the grace.
#include <gtest/gtest.h>

#include <thread>

#include "curtail/rpc/rpc_testing.h"

namespace curtail {
namespace {

constexpr Method<StringValue, StringValue> kPeer{"/test.Peer/Peer"};

// Answers with its caller's address; "hang" waits at the gate first.
class PeerService final : public Service {
 public:
  explicit PeerService(Gate* gate) : gate_(gate) {}
  std::string_view FullName() const override { return "test.Peer"; }
  std::vector<MethodHandler> Handlers() override {
    return {{.name = "Peer",
             .handler = internal::UnaryHandler<StringValue, StringValue>(
                 [this](Context& ctx, const StringValue& in, StringValue* out) -> absl::Status {
                   if (in.value() == "hang") gate_->Pass();
                   out->set_value(std::string(ctx.peer()));
                   return absl::OkStatus();
                 })}};
  }

 private:
  Gate* const gate_;
};

class ConnectionAge : public testing::Test {
 protected:
  ~ConnectionAge() override { gate_.Open(); }
  void Serve(Nanos age, Nanos grace) {
    ServerOptions options;
    options.config = *Config::Parse("SDB1-4");
    options.max_connection_age = age;
    options.max_connection_age_grace = grace;
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<PeerService>(&gate_));
    server_ = *Server::Start(std::move(options), std::move(services));
    // On a slow machine a connection may end by age before its first call, which counts as a failed attempt.
    ChannelOptions patient;
    patient.initial_backoff = milliseconds(1);
    patient.wait_for_ready = true;
    channel_ = std::make_unique<Channel>(&client_, server_->addresses()[0], patient);
  }
  absl::StatusOr<std::string> Ask(const std::string& text = "") {
    Context ctx(kMaxTestWait);
    StringValue reply;
    const absl::Status status = channel_->Call(ctx, kPeer.path, Text(text), &reply);
    if (!status.ok()) return status;
    return reply.value();
  }
  // Calls, each of which must succeed, until they come from another port than `before`.
  std::string AwaitNewConnection(const std::string& before) {
    std::string now = before;
    for (const Deadline end = Deadline::In(kMaxTestWait); now == before && !end.Expired();) {
      const absl::StatusOr<std::string> answer = Ask();
      EXPECT_TRUE(answer.ok()) << answer.status();
      if (!answer.ok()) break;
      now = *answer;
    }
    EXPECT_NE(now, before);
    return now;
  }

  Gate gate_;
  std::unique_ptr<Server> server_;
  Client client_;
  std::unique_ptr<Channel> channel_;
};

TEST_F(ConnectionAge, NoCallIsLostWhenConnectionsAreReplaced) {
  Serve(milliseconds(20), Nanos::zero());
  std::string port = Ask().value_or("failed");
  for (int i = 0; i < 3; ++i) port = AwaitNewConnection(port);
}

TEST_F(ConnectionAge, ACallInFlightEndsNormally) {
  Serve(milliseconds(20), Nanos::zero());
  absl::StatusOr<std::string> slow;
  std::thread hangs([&] { slow = Ask("hang"); });
  ASSERT_TRUE(gate_.AwaitArrivals(1));
  AwaitNewConnection(AwaitNewConnection(Ask().value_or("failed")));
  gate_.Open();
  hangs.join();
  EXPECT_TRUE(slow.ok()) << slow.status();
}

TEST_F(ConnectionAge, AfterTheGraceTheConnectionEnds) {
  Serve(milliseconds(10), milliseconds(10));
  EXPECT_EQ(Ask("hang").status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace curtail
