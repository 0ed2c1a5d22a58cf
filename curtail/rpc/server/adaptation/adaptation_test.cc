// SPDX-License-Identifier: Apache-2.0
//
// Servers that choose their config by the load.
#include <dirent.h>

#include "curtail/base/cpus.h"
#include "curtail/rpc/admin/admin_testing.h"
#include "curtail/rpc/server/adaptation/adaptation_testing.h"

namespace curtail {
namespace {

using testing::HasSubstr;

// How many threads of this process have this name.
int ThreadsNamed(std::string_view name) {
  int found = 0;
  DIR* const tasks = opendir("/proc/self/task");
  while (const dirent* const task = readdir(tasks)) {
    std::string comm;
    std::ifstream(Join("/proc/self/task/", task->d_name, "/comm")) >> comm;
    found += comm == name;
  }
  closedir(tasks);
  return found;
}

TEST_F(AdaptationTest, SwitchesUpInABurstAndBack) { ExpectUpAndBack("SIB1", "SDB1-4", false); }
TEST_F(AdaptationTest, SwitchesToFibersAndBack) { ExpectUpAndBack("SIB1", "FDB1-2", false); }
TEST_F(AdaptationTest, SwitchesACoroutineServiceToAsynchronousModels) {
  ExpectUpAndBack("FIB1", "ADB1-2-2", true);
}

// At each load another config is best, and the paper's estimate wanders over many.
Profile AnotherAtEachLoad() {
  const std::vector<double> loads = {250, 500, 1000, 2000, 4000, 8000, 16'000, 32'000, 64'000};
  std::vector<TestCurve> curves;
  const std::vector<std::string> configs = {"SIB1", "SDB1-4", "FIB1", "ADB1-2-2"};
  for (size_t c = 0; c < configs.size(); ++c) {
    curves.push_back({.config = configs[c], .p99_us = [c, &loads](double load) {
                        const size_t i = std::find(loads.begin(), loads.end(), load) - loads.begin();
                        return i % 4 == c ? 100 : 1000;
                      }});
  }
  return MakeProfile(loads, curves);
}

// Property: a policy that switches all the time loses, fails and doubles no request.
TEST_F(AdaptationTest, ConstantSwitchingHarmsNoRequestStress) {
  const TempFile profile(TextOf(AnotherAtEachLoad()));
  ServerOptions options = Options("mutune:paper");
  options.profile = profile.path();
  const auto server = Start(std::move(options), /*coroutine=*/true);
  ASSERT_NE(server, nullptr);
  Caller caller(server->addresses()[0]);
  const Deadline enough = Deadline::In(seconds(1));
  EXPECT_TRUE(caller.Drive(16, [&] { return enough.Expired() && server->Sample().policy->switches >= 100; }));
  caller.ExpectAllAnsweredOnce(100);
  EXPECT_EQ(server->Sample().policy->failures, 0u);
  EXPECT_TRUE(server->Drain(Deadline::In(kMaxTestWait)).ok());
}

TEST_F(AdaptationTest, TheAdminInterfaceTellsOfEachDecisionAndWhen) {
  const TempFile profile(TextOf(AnotherAtEachLoad()));
  ServerOptions options = Options("mutune:paper");
  options.profile = profile.path();
  options.admin = "127.0.0.1:0";
  const int64_t before = Now().time_since_epoch().count();
  const auto server = Start(std::move(options), /*coroutine=*/true);
  ASSERT_NE(server, nullptr);
  Caller caller(server->addresses()[0]);
  ASSERT_TRUE(caller.Drive(16, [&] { return server->Sample().policy->switches >= 40; }));
  EXPECT_EQ(server->Sample().policy->decisions.size(), 32u);
  const auto answer = AskAdmin(server->admin_address(), Admin::kGetDecisions);
  ASSERT_TRUE(answer.ok()) << answer.status();
  const auto& decisions = answer->decisions();
  ASSERT_GE(decisions.size(), 40);
  EXPECT_TRUE(std::any_of(decisions.begin(), decisions.end(), [](const admin::v1::Decision& decision) {
    return decision.reason() == "lowest prediction" && decision.failure().empty();
  }));
  // A switch that the policy makes meanwhile may be in one of the two only.
  EXPECT_NEAR(decisions.size(), static_cast<double>(answer->switches()), 1);
  EXPECT_GE(decisions.begin()->at_ns(), before);
  EXPECT_TRUE(std::is_sorted(decisions.begin(), decisions.end(),
                             [](const auto& a, const auto& b) { return a.at_ns() < b.at_ns(); }));
  EXPECT_LE(decisions.rbegin()->at_ns(), answer->now_ns());
  EXPECT_LE(answer->now_ns(), Now().time_since_epoch().count());
}

TEST_F(AdaptationTest, OnlineLearnsWithoutAProfile) {
  ServerOptions options = Options("online");
  options.slo = seconds(1);
  const auto server = Start(std::move(options));
  ASSERT_NE(server, nullptr);
  Caller caller(server->addresses()[0]);
  // It tries another config only when it has measured the present one.
  EXPECT_TRUE(caller.Trickle(
      [&] {
        const PolicyStats stats = server->Sample().policy.value();
        return std::any_of(stats.decisions.begin(), stats.decisions.end(),
                           [](const PolicyDecision& decision) { return decision.reason == "trial"; });
      },
      std::chrono::microseconds(500)));
  caller.ExpectAllAnsweredOnce(300);
  EXPECT_TRUE(server->Drain(Deadline::In(kMaxTestWait)).ok());
}

TEST_F(AdaptationTest, IpiBlocksOrPollsByTheThreadsThatWait) {
  const auto server = Start(Options("ipi:SDB1-4"));
  ASSERT_NE(server, nullptr);
  Caller caller(server->addresses()[0]);
  const auto is = [&](const char* config) {
    return [&, config] { return ConfigOfServer(*server) == config; };
  };
  // Nothing to do: no thread is active.
  EXPECT_TRUE(caller.Trickle(is("SDP1-4")));
  caller.ExpectAllAnsweredOnce(0);
  // Each worker is held up where the server cannot see that it waits.
  Client client;
  Channel channel(&client, server->addresses()[0]);
  struct Ignore final : Completion {
    void Done(absl::Status&&, std::string&&) override {}
  } ignore;
  for (int i = 0; i < 4; ++i) {
    channel.Start(kHang.path, Deadline::In(kMaxTestWait), {}, Text("x").SerializeAsString(), &ignore);
  }
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (gate_.arrived() < 4 && !deadline.Expired()) client.Poll(Deadline::In(milliseconds(5)));
  const auto held_up = is(UsableCpus() < 4 ? "SDB1-4" : "SDP1-4");
  while (!held_up() && !deadline.Expired()) client.Poll(Deadline::In(milliseconds(5)));
  EXPECT_TRUE(held_up()) << ConfigOfServer(*server);
  gate_.Open();
  for (int left = 4; left > 0 && !deadline.Expired();) left -= static_cast<int>(client.Poll(deadline));
  EXPECT_TRUE(server->Drain(Deadline::In(kMaxTestWait)).ok());
}

// Property: threads that switch in the middle of their waits lose no request, and leave the right count behind.
TEST_F(AdaptationTest, IpiUnderLoadHarmsNoRequestStress) {
  for (const char* policy : {"ipi:SDB1-4", "ipi:SDB2-8", "ipi:SIB3"}) {
    const auto server = Start(Options(policy));
    ASSERT_NE(server, nullptr);
    std::string idle = std::string(policy).substr(4);
    idle[2] = 'P';  // nobody is active
    Caller caller(server->addresses()[0]);
    const Deadline enough = Deadline::In(milliseconds(300));
    EXPECT_TRUE(caller.Drive(16, [&] { return enough.Expired() && caller.done() >= 100; }));
    caller.ExpectAllAnsweredOnce(100);
    const Deadline deadline = Deadline::In(kMaxTestWait);
    Client client;
    while (ConfigOfServer(*server) != idle && !deadline.Expired()) client.Poll(Deadline::In(milliseconds(5)));
    EXPECT_EQ(ConfigOfServer(*server), idle);
    EXPECT_EQ(server->Sample().policy->failures, 0u);
    EXPECT_TRUE(server->Drain(Deadline::In(kMaxTestWait)).ok());
  }
}

TEST_F(AdaptationTest, TheTimerThreadExistsOnlyForPoliciesThatSwitch) {
  const TempFile profile(TextOf(LowAndHigh("SIB1", "SDB1-4")));
  for (const char* policy : {"", "static:SDB1-4", "mutune"}) {
    const auto server = Start(Options(policy));
    ASSERT_NE(server, nullptr);
    EXPECT_EQ(ThreadsNamed("adapt"), 0) << policy;
  }
  ServerOptions options = Options("mutune");
  options.profile = profile.path();
  const auto server = Start(std::move(options));
  ASSERT_NE(server, nullptr);
  EXPECT_EQ(ThreadsNamed("adapt"), 1);
  EXPECT_TRUE(server->Drain(Deadline::In(kMaxTestWait)).ok());
  EXPECT_EQ(ThreadsNamed("adapt"), 0);
}

}  // namespace
}  // namespace curtail
