// SPDX-License-Identifier: Apache-2.0
//
// Exchanging a server's config while it serves.
#include <gtest/gtest.h>
#include <unistd.h>

#include <deque>

#include "curtail/base/rng.h"
#include "curtail/rpc/admin/admin_testing.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/rpc_testing.h"

namespace curtail {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool kThoroughly = true;
#elif defined(__has_feature)
constexpr bool kThoroughly = __has_feature(thread_sanitizer);
#else
constexpr bool kThoroughly = false;
#endif

// Echo under every model, and a fan-out by a coroutine, which runs under every model too.
class AnyModelService final : public Service {
 public:
  explicit AnyModelService(std::vector<Channel*> leaves) : leaves_(std::move(leaves)) {}
  std::string_view FullName() const override { return "test.Echo"; }
  std::vector<MethodHandler> Handlers() override {
    return {internal::CoroutineMethod<StringValue, StringValue>(
        "Forward", [this](Context& ctx, const StringValue& in, StringValue* out) -> Coroutine {
          const auto replies = co_await fan_out(ctx, std::span<Channel* const>(leaves_), kEcho,
                                                std::vector(leaves_.size(), in));
          std::string joined;
          for (const auto& reply : replies) {
            if (!reply.ok()) co_return reply.status();
            joined += reply->value() + ";";
          }
          out->set_value(joined);
          co_return absl::OkStatus();
        })};
  }

 private:
  const std::vector<Channel*> leaves_;
};

struct Family {
  const char* name;
  std::vector<std::string> configs;
};

class SwitchTest : public RpcBase, public testing::TestWithParam<Family> {};

// Property: under load, random switches lose, fail and double no request.
TEST_P(SwitchTest, RandomSwitchesHarmNoRequestStress) {
  const std::vector<std::string>& configs = GetParam().configs;
  const uint64_t seed = static_cast<uint64_t>(Now().time_since_epoch().count());
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Rng rng(seed);
  Client client;
  auto leaf = StartServer("SIB1");
  Channel leaf_channel(&client, leaf->addresses()[0]);
  ServerOptions options;
  options.config = *Config::Parse(configs[0]);
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::make_unique<AnyModelService>(std::vector<Channel*>{&leaf_channel, &leaf_channel}));
  auto started = Server::Start(options, std::move(services));
  ASSERT_TRUE(started.ok()) << started.status();
  Server& mid = **started;
  Client front;
  Channel channel(&front, mid.addresses()[0]);
  struct Answer final : Completion {
    void Done(absl::Status&& s, std::string&& reply) override {
      StringValue value;
      good = s.ok() && value.ParseFromString(reply) && value.value() == expected;
      status = std::move(s);
      ++times;
    }
    std::string expected;
    absl::Status status;
    int times = 0;
    bool good = false;
  };
  constexpr size_t kInFlight = 16;
  std::deque<Answer> answers;  // stay where they are
  int switches = 0;
  size_t done = 0;
  const Deadline enough = Deadline::In(kThoroughly ? milliseconds(3500) : milliseconds(1500));
  const Deadline deadline = Deadline::In(kMaxTestWait * 3);
  TimePoint next_switch = Now();
  while (!deadline.Expired() && (!enough.Expired() || done < answers.size())) {
    while (!enough.Expired() && answers.size() - done < kInFlight) {
      const size_t n = answers.size();
      answers.emplace_back().expected = Join(n, ";", n, ";");
      channel.Start(kForward.path, Deadline::In(kMaxTestWait), {}, Text(Join(n)).SerializeAsString(),
                    &answers.back());
    }
    done += front.Poll(std::min(Deadline::At(next_switch), Deadline::In(milliseconds(10))));
    if (Now() < next_switch) continue;
    const absl::Status switched = mid.SwitchTo(*Config::Parse(configs[rng.Below(configs.size())]));
    ASSERT_TRUE(switched.ok()) << switched;
    next_switch = Now() + milliseconds(1) + Nanos(rng.Below(8'000'000));
    ++switches;
  }
  ASSERT_EQ(done, answers.size());
  for (const Answer& answer : answers) {
    ASSERT_TRUE(answer.good) << answer.status;
    ASSERT_EQ(answer.times, 1);
  }
  EXPECT_GT(switches, 1);
  EXPECT_GT(done, kInFlight);
  EXPECT_TRUE(mid.Drain(Deadline::In(kMaxTestWait)).ok());
}

INSTANTIATE_TEST_SUITE_P(
    Families, SwitchTest,
    testing::Values(Family{"SyncAndFiber",
                           {"SIB1", "SIB4", "SIP1", "SDB1-1", "SDB1-16", "SDB2-8", "SDP1-4", "FIB1", "FIB3",
                            "FIP2", "FDB1-1", "FDB2-3", "FDP1-2"}},
                    Family{"Async", {"AIB1-1", "AIB3-2", "AIP1-1", "ADB1-1-1", "ADB2-4-3", "ADP1-2-2"}},
                    Family{"All",
                           {"SIB1", "SDB1-8", "FIB1", "FIP1", "FDB1-2", "AIB1-1", "ADB1-2-2", "ADP1-4-1"}}),
    [](const auto& info) { return std::string(info.param.name); });

// With as many threads as the largest config needs, there is nobody to take a new role but those in the old one.
TEST(Switch, WorksWithoutThreadsToSpare) {
  Client client;
  ServerOptions leaf_options;
  leaf_options.config = *Config::Parse("SIB1");
  std::vector<std::unique_ptr<Service>> leaf_services;
  leaf_services.push_back(std::make_unique<EchoService>(nullptr, std::vector<Channel*>{}, nullptr));
  auto leaf = Server::Start(leaf_options, std::move(leaf_services));
  ASSERT_TRUE(leaf.ok());
  Channel leaf_channel(&client, (*leaf)->addresses()[0]);
  ServerOptions options;
  options.config = *Config::Parse("AIB1-1");
  options.max_threads = 2;
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::make_unique<AnyModelService>(std::vector<Channel*>{&leaf_channel}));
  auto mid = Server::Start(options, std::move(services));
  ASSERT_TRUE(mid.ok()) << mid.status();
  Client front;
  Channel channel(&front, (*mid)->addresses()[0]);
  for (int i = 0; i < 20; ++i) {
    for (const char* config : {"AIB1-1", "FIB1", "SDB1-1", "FDB1-1", "SIB2", "FIB2", "AIP1-1", "SIB1"}) {
      ASSERT_TRUE((*mid)->SwitchTo(*Config::Parse(config)).ok());
      Context ctx(kMaxTestWait);
      StringValue reply;
      ASSERT_TRUE(channel.Call(ctx, kForward.path, Text("x"), &reply).ok()) << config;
      ASSERT_EQ(reply.value(), "x;");
    }
  }
}

TEST(AdminTest, SwitchesAndTellsTheConfig) {
  ServerOptions options;
  options.config = *Config::Parse("SIB1");
  options.admin = Join("unix:", testing::TempDir(), "admin_test.", getpid());
  auto server = Server::Start(options, {});
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string admin = (*server)->admin_address();
  const auto switched = AskAdmin(admin, Admin::kSwitch, SwitchToConfig("SDP1-4"));
  ASSERT_TRUE(switched.ok()) << switched.status();
  EXPECT_EQ(switched->previous(), "SIB1");
  EXPECT_EQ((*server)->config().ToString(), "SDP1-4");
  EXPECT_EQ(AskAdmin(admin, Admin::kSwitch, SwitchToConfig("XYZ")).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(AskAdmin(admin, Admin::kSwitch, SwitchToConfig("SDB1-999")).status().code(),
            absl::StatusCode::kInvalidArgument);
  const auto config = AskAdmin(admin, Admin::kGetConfig);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->config(), "SDP1-4");
  // The public port does not have it.
  EXPECT_EQ(AskAdmin((*server)->addresses()[0], Admin::kSwitch, SwitchToConfig("SIB1")).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST(AdminTest, ChangesOverTcpNeedTheToken) {
  for (const char* token : {"", "secret"}) {
    ServerOptions options;
    options.config = *Config::Parse("SIB1");
    options.admin = "127.0.0.1:0";
    options.admin_token = token;
    auto server = Server::Start(options, {});
    ASSERT_TRUE(server.ok()) << server.status();
    Client client;
    Channel channel(&client, (*server)->admin_address());
    const auto try_with = [&](const char* authorization) {
      Context ctx(kMaxTestWait);
      if (authorization != nullptr) ctx.AddMetadata("authorization", authorization);
      curtail::admin::v1::SwitchReply reply;
      const auto request = SwitchToConfig("SDB1-2");
      return channel.Call(ctx, Admin::kSwitch.path, request, &reply).code();
    };
    for (const char* wrong :
         {static_cast<const char*>(nullptr), "", "Bearer", "Bearer secre", "Bearer secrets", "secret"}) {
      EXPECT_EQ(try_with(wrong), absl::StatusCode::kPermissionDenied) << token << (wrong ? wrong : "nothing");
    }
    EXPECT_EQ((*server)->config().ToString(), "SIB1");
    EXPECT_TRUE(AskAdmin((*server)->admin_address(), Admin::kGetConfig).ok());
    EXPECT_TRUE(AskAdmin((*server)->admin_address(), Admin::kGetStatus).ok());
    const auto code = *token == '\0' ? absl::StatusCode::kPermissionDenied : absl::StatusCode::kOk;
    EXPECT_EQ(try_with("Bearer secret"), code);
  }
}

}  // namespace
}  // namespace curtail
