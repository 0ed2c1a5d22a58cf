// SPDX-License-Identifier: Apache-2.0
//
// A server's use of its policy and profile before the first request: those that it takes and refuses, and its words.
#include <unistd.h>

#include "curtail/rpc/admin/admin_testing.h"
#include "curtail/rpc/server/adaptation/adaptation_testing.h"

namespace curtail {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST_F(AdaptationTest, WithoutAPolicyThereIsNothingToReport) {
  const auto server = Start(Options(""));
  ASSERT_NE(server, nullptr);
  EXPECT_FALSE(server->Sample().policy.has_value());
}

TEST_F(AdaptationTest, StaticIsTheConfigItNames) {
  const auto server = Start(Options("static:SDB1-20"));
  ASSERT_NE(server, nullptr);
  EXPECT_EQ(ConfigOfServer(*server), "SDB1-20");  // with more threads than were asked for
  EXPECT_FALSE(server->Sample().policy->switches_by_itself);
  EXPECT_TRUE(server->SwitchTo(*Config::Parse("SIB2")).ok());
  EXPECT_THAT(Refusal(Options("static:ADB1-4-4")), HasSubstr("straight-line handler"));
}

TEST_F(AdaptationTest, WithoutAProfileTheConfigStaysAndTheNoteSaysSo) {
  for (const char* policy : {"mutune", "mutune:paper", "fm", "tbd", "ipi"}) {
    const auto server = Start(Options(policy, "SDB1-4"));
    ASSERT_NE(server, nullptr);
    const PolicyStats stats = server->Sample().policy.value();
    EXPECT_FALSE(stats.switches_by_itself) << policy;
    EXPECT_THAT(stats.note, HasSubstr("the config stays SDB1-4"));
    EXPECT_EQ(ConfigOfServer(*server), "SDB1-4");
  }
}

TEST_F(AdaptationTest, ProfilesThatDoNotFitAreRefused) {
  const std::string good = TextOf(LowAndHigh("SIB1", "SDB1-4"));
  const auto refusal = [&](const std::string& text, bool any_machine = true) {
    const TempFile file(text);
    ServerOptions options = Options("mutune");
    options.profile = file.path();
    options.any_machine = any_machine;
    const std::string why = Refusal(std::move(options));
    EXPECT_THAT(why, HasSubstr(file.path()));
    return why;
  };
  EXPECT_THAT(refusal(""), HasSubstr("JSON"));
  EXPECT_THAT(refusal(good.substr(0, good.size() / 2)), HasSubstr("JSON"));
  std::string other_summary = good;
  other_summary.replace(other_summary.find("\"saturation_per_s\":"), 19, "\"saturation_per_S\":");
  refusal(other_summary);
  EXPECT_THAT(refusal(good, /*any_machine=*/false), HasSubstr("another machine"));
  std::string other_service = good;
  other_service.replace(other_service.find("test.Echo"), 9, "test.Ecce");
  EXPECT_THAT(refusal(other_service), HasSubstr("not of \"test.Echo\""));
  // None of its configs is for a straight-line service.
  EXPECT_THAT(refusal(TextOf(LowAndHigh("AIB1-1", "ADB1-2-2")), true), Not(HasSubstr("JSON")));
}

TEST_F(AdaptationTest, AProfileOfThisMachineIsTaken) {
  Profile profile = LowAndHigh("SIB1", "SDB1-4");
  profile.machine = ThisMachineFingerprint();
  const TempFile file(TextOf(profile));
  ServerOptions options = Options("mutune", "SDB1-4");
  options.profile = file.path();
  options.any_machine = false;
  const auto server = Start(std::move(options));
  ASSERT_NE(server, nullptr);
  EXPECT_EQ(ConfigOfServer(*server), "SIB1");  // the best for no load, from the first moment
}

TEST_F(AdaptationTest, MistakesAreExplained) {
  EXPECT_THAT(Refusal(Options("mootune")), HasSubstr("there is static:CONFIG"));
  EXPECT_THAT(Refusal(Options("static:X")), HasSubstr("config \"X\""));
  ServerOptions no_policy = Options("");
  no_policy.profile = "p.json";
  EXPECT_THAT(Refusal(no_policy), HasSubstr("no policy"));
  ServerOptions no_file = Options("mutune");
  no_file.profile = "/nonexistent/p.json";
  EXPECT_THAT(Refusal(no_file), HasSubstr("cannot open /nonexistent/p.json: No such file"));
  no_file.profile = "/";
  EXPECT_THAT(Refusal(no_file), HasSubstr("cannot read /: Is a directory"));
  ServerOptions no_slo = Options("online");
  no_slo.slo = Nanos(0);
  EXPECT_THAT(Refusal(no_slo), HasSubstr("SLO"));
  ServerOptions weightless = Options("online");
  weightless.cpu_weight = -0.1;
  EXPECT_THAT(Refusal(weightless), HasSubstr("weight of CPU"));
}

TEST_F(AdaptationTest, ConfigsForMoreThreadsAreLeftOut) {
  const TempFile profile(TextOf(LowAndHigh("SIB1", "SDB1-50")));
  ServerOptions options = Options("mutune");
  options.profile = profile.path();
  const auto server = Start(std::move(options));
  ASSERT_NE(server, nullptr);
  EXPECT_THAT(server->Sample().policy->note, HasSubstr("SDB1-50"));
  Caller caller(server->addresses()[0]);
  EXPECT_TRUE(caller.Drive(16, [&] { return caller.done() >= 1000; }));
  EXPECT_EQ(server->Sample().policy->switches, 0u);
}

TEST_F(AdaptationTest, NobodyElseSwitches) {
  const TempFile profile(TextOf(LowAndHigh("SIB1", "SDB1-4")));
  ServerOptions options = Options("mutune");
  options.profile = profile.path();
  options.admin = Join("unix:", testing::TempDir(), "nobody_else.", getpid());
  const auto server = Start(std::move(options));
  ASSERT_NE(server, nullptr);
  EXPECT_TRUE(absl::IsFailedPrecondition(server->SwitchTo(*Config::Parse("SDB1-4"))));
  const absl::Status status =
      AskAdmin(server->admin_address(), Admin::kSwitch, SwitchToConfig("SDB1-4")).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("static:SDB1-4"));
  EXPECT_EQ(ConfigOfServer(*server), "SIB1");
}

TEST_F(AdaptationTest, TheAdminInterfaceTellsOfThePolicy) {
  const TempFile profile(TextOf(LowAndHigh("SIB1", "SDB1-4")));
  ServerOptions options = Options("mutune", "SDB1-4");
  options.profile = profile.path();
  options.admin = "127.0.0.1:0";
  const auto server = Start(std::move(options));
  ASSERT_NE(server, nullptr);
  const auto status = AskAdmin(server->admin_address(), Admin::kGetStatus);
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->policy().name(), "mutune");
  EXPECT_EQ(status->policy().note(), "");
  EXPECT_TRUE(status->policy().switches_by_itself());
  ASSERT_GE(status->policy().decisions_size(), 1);
  EXPECT_EQ(status->policy().decisions(0).from(), "SDB1-4");
  EXPECT_EQ(status->policy().decisions(0).to(), "SIB1");
  const auto plain = Start([] {
    ServerOptions options = Options("");
    options.admin = "127.0.0.1:0";
    return options;
  }());
  ASSERT_NE(plain, nullptr);
  const auto plain_status = AskAdmin(plain->admin_address(), Admin::kGetStatus);
  ASSERT_TRUE(plain_status.ok()) << plain_status.status();
  EXPECT_EQ(plain_status->config(), ConfigOfServer(*plain));
  EXPECT_FALSE(plain_status->has_policy());
  const auto decisions = AskAdmin(plain->admin_address(), Admin::kGetDecisions);
  ASSERT_TRUE(decisions.ok()) << decisions.status();
  EXPECT_EQ(decisions->switches(), 0u);
  EXPECT_EQ(decisions->decisions_size(), 0);
}

}  // namespace
}  // namespace curtail
