// SPDX-License-Identifier: Apache-2.0
//
// Servers under policies that their program brings along.
#include "curtail/adapt/policy_kind.h"
#include "curtail/rpc/server/adaptation/adaptation_testing.h"

extern const curtail::PolicyKind kTwoStepPolicy;  // tests/install_consumer

namespace curtail {
namespace {

using testing::HasSubstr;

// Leaves SIB1 for SIB2 once it is told of a latency.
class SeesLatencies final : public Policy {
 public:
  Choice Decide(const Signals& signals) override {
    seen_ = seen_ || (signals.window != nullptr && signals.window->latencies.weight() > 0);
    return {{.network = seen_ ? 2 : 1}, seen_ ? "saw a latency" : "saw none"};
  }

 private:
  bool seen_ = false;
};

absl::StatusOr<std::unique_ptr<Policy>> MakeSeesLatencies(const PolicyRequest&) {
  return std::make_unique<SeesLatencies>();
}

constexpr PolicyKind kSeesLatencies = {
    .name = "sees",
    .summary = "SIB2 after the first latency",
    .make = MakeSeesLatencies,
    .latencies = true,
};

// One line for each policy.
const PolicyKind* const kOwnPolicies[] = {
    &kTwoStepPolicy,
    &kSeesLatencies,
};

class OwnPolicyTest : public AdaptationTest {
 protected:
  static ServerOptions OwnOptions(std::string policy) {
    ServerOptions options = Options(std::move(policy));
    options.policies.assign(std::begin(kOwnPolicies), std::end(kOwnPolicies));
    return options;
  }
};

TEST_F(OwnPolicyTest, AServerFollowsIt) {
  ExpectUpAndBack(OwnOptions("two-step:SIB1,SDB1-4"), "SIB1", "SDB1-4", "many requests", /*coroutine=*/false);
}

TEST_F(OwnPolicyTest, AServerFollowsItToFibers) {
  ExpectUpAndBack(OwnOptions("two-step:SIB1,FDB1-2"), "SIB1", "FDB1-2", "many requests", /*coroutine=*/false);
}

TEST_F(OwnPolicyTest, IsToldOfLatenciesIfItSaysSo) {
  const auto server = Start(OwnOptions("sees"));
  ASSERT_NE(server, nullptr);
  Caller caller(server->addresses()[0]);
  EXPECT_TRUE(caller.Trickle([&] { return ConfigOfServer(*server) == "SIB2"; }));
  caller.ExpectAllAnsweredOnce(1);
}

TEST_F(OwnPolicyTest, MistakesAreExplained) {
  EXPECT_THAT(Refusal(OwnOptions("two-step")), HasSubstr("policy \"two-step\": needs two configs"));
  EXPECT_THAT(Refusal(OwnOptions("two-step:SIB1,SDB1-99")), HasSubstr("cannot run under SDB1-99"));
  EXPECT_THAT(Refusal(OwnOptions("mootune")), HasSubstr("mutune, mutune:paper, "));
  EXPECT_THAT(Refusal(OwnOptions("mootune")), HasSubstr(", two-step:LOW,HIGH and sees"));
  EXPECT_THAT(Refusal(Options("two-step:SIB1,SDB1-4")), HasSubstr("there is static:CONFIG"));
}

}  // namespace
}  // namespace curtail
