// SPDX-License-Identifier: Apache-2.0
//
// Channels that watch their servers. Property: a server whose calls fail, or that says that it does not serve, gets no
// new calls until that is over, and no call is lost meanwhile.
#include <gmock/gmock.h>

#include <atomic>
#include <climits>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "curtail/rpc/client/servers/many_servers_testing.h"
#include "curtail/rpc/load_reporter.h"
#include "curtail/rpc/stream.h"

namespace curtail {
namespace {

using testing::HasSubstr;

// Calls until `n` calls in a row were answered, and none by the server `name`.
void AwaitCallsWithout(Channel& channel, const std::string& name, const std::string& text = "", int n = 60) {
  int row = 0;
  for (const Deadline end = Deadline::In(kMaxTestWait); row < n && !end.Expired();) {
    const absl::StatusOr<std::string> who = Ask(channel, text);
    row = who.ok() && *who != name ? row + 1 : 0;
  }
  EXPECT_EQ(row, n) << "server " << name << " is still called";
}

void AwaitCallsTo(Channel& channel, const std::string& name) {
  for (const Deadline end = Deadline::In(kMaxTestWait); !end.Expired();) {
    if (Ask(channel).value_or("failed") == name) return;
  }
  ADD_FAILURE() << "server " << name << " is not called";
}

ChannelOptions Configured(std::string config) {
  ChannelOptions options;
  options.initial_backoff = milliseconds(1);
  options.max_backoff = milliseconds(5);
  options.service_config = std::move(config);
  return options;
}

std::string Outliers(std::string_view child, std::string_view rest) {
  return Join(R"({"loadBalancingConfig":[{"outlier_detection_experimental":{"interval":"0.02s",)", rest,
              R"("failurePercentageEjection":{"threshold":50,"minimumHosts":1,"requestVolume":3},)",
              R"("childPolicy":[{")", child, R"(":{}}]}}]})");
}

TEST(OutlierDetection, LeavesAServerOutWhoseCallsFail) {
  for (const char* balancer : {"pick_first", "round_robin", "least_request", "ring_hash"}) {
    ManyServers servers(3);
    Client client;
    Channel channel(&client, servers.Target(),
                    Configured(Outliers(balancer, R"("baseEjectionTime":"900s",)")));
    AwaitCallsWithout(channel, "0", "fail 0");
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(Ask(channel, "fail 0").ok()) << balancer;
  }
}

TEST(OutlierDetection, FailuresInARowEjectAtOnce) {
  ManyServers servers(3);
  Client client;
  Channel channel(&client, servers.Target(),
                  Configured(R"({"loadBalancingConfig":[{"outlier_detection_experimental":{"interval":"900s",
                      "baseEjectionTime":"900s","consecutiveFailureEjection":{"threshold":3},
                      "childPolicy":[{"round_robin":{}}]}}]})"));
  AwaitCallsWithout(channel, "0", "fail 0");
}

TEST(OutlierDetection, LetsItComeBack) {
  ManyServers servers(3);
  Client client;
  Channel channel(&client, servers.Target(),
                  Configured(Outliers("round_robin", R"("baseEjectionTime":"0.5s",)")));
  AwaitCallsWithout(channel, "1", "fail 1");
  AwaitCallsTo(channel, "1");
}

TEST(OutlierDetection, EndsCallsWhenAllServersAreLeftOut) {
  ManyServers servers(1);
  Client client;
  Channel channel(&client, servers.Addresses({0})[0],
                  Configured(Outliers("round_robin", R"("baseEjectionTime":"900s",)")));
  absl::Status status;
  for (const Deadline end = Deadline::In(kMaxTestWait); !absl::IsUnavailable(status) && !end.Expired();)
    status = Ask(channel, "fail 0").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("too many of its calls failed"));
}

// Says of the server that which the test says.
class HealthStub final : public Service {
 public:
  enum State { kServing = 1, kNotServing = 2 };
  std::string_view FullName() const override { return "grpc.health.v1.Health"; }
  std::vector<MethodHandler> Handlers() override {
    return {internal::StreamMethod(
        "Watch", [this](Context& ctx, internal::MessageStream& stream) { return Watch(ctx, stream); })};
  }
  void Set(State state) {
    std::lock_guard lock(mu_);
    state_ = state;
    cv_.notify_all();
  }
  // Ends the watches that run, and those to come if `all`.
  void End(absl::Status status, bool all = false) {
    std::lock_guard lock(mu_);
    ended_ = all ? INT_MAX : watches_;
    end_ = std::move(status);
    cv_.notify_all();
  }
  int watches() {
    std::lock_guard lock(mu_);
    return watches_;
  }

 private:
  absl::Status Watch(const Context& ctx, internal::MessageStream& stream) {
    std::string request;
    stream.Read(&request);
    int said = 0;
    std::unique_lock lock(mu_);
    for (const int number = ++watches_; !ctx.cancelled();) {
      if (number <= ended_) return end_;
      if (said == state_) {
        cv_.wait_for(lock, milliseconds(5));
        continue;
      }
      said = state_;
      lock.unlock();
      stream.Write(std::string{'\x08', static_cast<char>(said)});
      lock.lock();
    }
    return absl::CancelledError("the watch is over");
  }

  std::mutex mu_;
  std::condition_variable cv_;
  State state_ = kServing;
  int watches_ = 0;
  int ended_ = 0;
  absl::Status end_;
};

constexpr const char* kChecked =
    R"({"loadBalancingConfig":[{"round_robin":{}}],"healthCheckConfig":{"serviceName":"test.Who"}})";

// Servers "0" and "1", whose health the test says.
class HealthCheckTest : public testing::Test {
 protected:
  HealthCheckTest() {
    for (size_t i = 0; i < 2; ++i) {
      ServerOptions options;
      options.config = *Config::Parse("SDB1-4");
      options.health = false;
      health_[i] = new HealthStub;
      std::vector<std::unique_ptr<Service>> services;
      services.push_back(std::make_unique<WhoService>(std::to_string(i), &gate_));
      services.emplace_back(health_[i]);
      servers_[i] = *Server::Start(std::move(options), std::move(services));
    }
  }
  Channel& channel() {
    if (channel_ == nullptr) {
      channel_ = std::make_unique<Channel>(
          &client_, Join("ipv4:", servers_[0]->addresses()[0], ",", servers_[1]->addresses()[0]),
          Configured(kChecked));
    }
    return *channel_;
  }

  Gate gate_;
  HealthStub* health_[2];
  std::unique_ptr<Server> servers_[2];
  Client client_;
  std::unique_ptr<Channel> channel_;
};

TEST_F(HealthCheckTest, AServerThatDoesNotServeGetsNoCallsUntilItDoes) {
  health_[0]->Set(HealthStub::kNotServing);
  AwaitCallsWithout(channel(), "0");
  for (int i = 0; i < 50; ++i) EXPECT_EQ(Ask(channel()).value_or("failed"), "1");
  health_[0]->Set(HealthStub::kServing);
  AwaitCallsTo(channel(), "0");
  AwaitCallsTo(channel(), "1");
  health_[1]->Set(HealthStub::kNotServing);
  AwaitCallsWithout(channel(), "1");
}

TEST_F(HealthCheckTest, CallsFailWhileNoneServes) {
  for (HealthStub* health : health_) health->Set(HealthStub::kNotServing);
  absl::Status status;
  for (const Deadline end = Deadline::In(kMaxTestWait); !absl::IsUnavailable(status) && !end.Expired();)
    status = Ask(channel()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("says that it does not serve"));
  EXPECT_EQ(Ask(channel()).status().code(), absl::StatusCode::kUnavailable);
  health_[1]->Set(HealthStub::kServing);
  AwaitCallsTo(channel(), "1");
  AwaitCallsWithout(channel(), "0");
}

TEST_F(HealthCheckTest, AWatchThatFailsIsBegunAgain) {
  AwaitCallsTo(channel(), "0");
  AwaitCallsTo(channel(), "1");
  for (const Deadline end = Deadline::In(kMaxTestWait); health_[0]->watches() == 0 && !end.Expired();)
    EXPECT_TRUE(Ask(channel()).ok());
  health_[0]->End(absl::InternalError("broken"));
  AwaitCallsWithout(channel(), "0");  // its connection lives, and a call on it would be answered
  for (const Deadline end = Deadline::In(kMaxTestWait); health_[0]->watches() < 2 && !end.Expired();)
    EXPECT_TRUE(Ask(channel()).ok());
  AwaitCallsTo(channel(), "0");
}

TEST_F(HealthCheckTest, AServerWithoutAnOpinionServes) {
  for (HealthStub* health : health_) health->End(absl::UnimplementedError("no health here"), /*all=*/true);
  for (const Deadline end = Deadline::In(kMaxTestWait); health_[0]->watches() == 0 && !end.Expired();)
    EXPECT_TRUE(Ask(channel()).ok());
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(Ask(channel()).ok());
  AwaitCallsTo(channel(), "0");
  AwaitCallsTo(channel(), "1");
}

TEST_F(HealthCheckTest, AWatchDoesNotKeepAServerFromStopping) {
  AwaitCallsTo(channel(), "0");
  AwaitCallsTo(channel(), "1");
  std::atomic<bool> over{false};
  std::thread calls([&] {
    while (!over.load()) EXPECT_TRUE(Ask(channel()).ok());
  });
  const absl::Status drained = servers_[0]->Drain(Deadline::In(seconds(5)));
  EXPECT_TRUE(drained.ok()) << drained;
  over = true;
  calls.join();
}

// With the health service that each server of curtail has.
TEST(HealthCheck, KnowsTheServersOfTheLibrary) {
  ManyServers servers(2);
  Client client;
  Channel channel(&client, servers.Target(), Configured(kChecked));
  AwaitCallsTo(channel, "0");
  AwaitCallsTo(channel, "1");
  servers.Stop(0);
  AwaitCallsWithout(channel, "0");
  servers.Start(0);
  AwaitCallsTo(channel, "0");
}

// Servers that say how busy they are.
TEST(WeightedRoundRobin, SendsFewCallsToABusyServer) {
  Gate gate;
  LoadReporter reports[] = {LoadReporter(milliseconds(1)), LoadReporter(milliseconds(1))};
  reports[0].SetUtilization(0.1);
  reports[1].SetUtilization(0.9);
  std::vector<std::unique_ptr<Server>> servers;
  std::string target = "ipv4:";
  for (int i = 0; i < 2; ++i) {
    ServerOptions options;
    options.config = *Config::Parse("SDB1-4");
    options.interceptors = {&reports[i]};
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<WhoService>(std::to_string(i), &gate));
    servers.push_back(*Server::Start(std::move(options), std::move(services)));
    target += Join(i == 0 ? "" : ",", servers.back()->addresses()[0]);
  }
  Client client;
  Channel channel(&client, target, Configured(R"({"loadBalancingConfig":[{"weighted_round_robin":
      {"blackoutPeriod":"0s","weightUpdatePeriod":"0.1s"}}]})"));
  int busy = 0;
  for (const Deadline end = Deadline::In(kMaxTestWait); !end.Expired();) {
    busy = 0;
    for (int i = 0; i < 100; ++i) busy += Ask(channel).value_or("failed") == "1";
    if (busy <= 25) break;
  }
  EXPECT_LE(busy, 25);
  EXPECT_GT(busy, 0) << "no server is given up";
}

}  // namespace
}  // namespace curtail
