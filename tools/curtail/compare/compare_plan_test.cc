// SPDX-License-Identifier: Apache-2.0
//
// Policies as the user of `curtail compare` names them, and those that it takes when the user names none.
#include "tools/curtail/compare/compare_plan.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "curtail/adapt/profile_testing.h"
#include "curtail/base/strings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail::tool {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::string Refusal(std::string_view label, const Profile* profile) {
  const absl::Status status = CheckPolicy(ParsePolicyChoice(label), profile);
  EXPECT_FALSE(status.ok()) << std::string(label);
  return std::string(Message(status));
}

TEST(PolicyChoice, SaysWhatTheServerIsGiven) {
  const auto parsed = [](std::string_view label) {
    const PolicyChoice choice = ParsePolicyChoice(label);
    EXPECT_EQ(choice.label, label);
    return absl::StrCat(choice.policy, choice.wants_profile ? ", a profile" : "",
                        choice.switches ? ", switches" : "", choice.learns ? ", learns" : "");
  };
  EXPECT_EQ(parsed("mutune"), "mutune, a profile, switches");
  EXPECT_EQ(parsed("mutune:paper"), "mutune:paper, a profile, switches");
  EXPECT_EQ(parsed("ipi"), "ipi, a profile, switches");
  EXPECT_EQ(parsed("ipi:SDB1-8"), "ipi:SDB1-8, switches");
  EXPECT_EQ(parsed("online"), "online, switches, learns");
  EXPECT_EQ(parsed("online+profile"), "online, a profile, switches, learns");
  EXPECT_EQ(parsed("static:SIB1"), "static:SIB1");
  EXPECT_EQ(parsed("static:SIB1+profile"), "static:SIB1");
}

TEST(ComparePlan, UsualPoliciesAreThoseThatTheProfileSufficesFor) {
  const Profile profile = SteppedProfile();
  const LoadRange range = RangeOf(profile).value();
  EXPECT_THAT(DefaultPolicies(range, profile),
              ElementsAre("mutune", "static:auto", Join("static:", range.low.ToString()),
                          Join("static:", range.peak.ToString()), "fm", "ipi", "tbd", "online"));
  const Profile in_line = MakeProfile({100, 200}, {{"SIP1", 1e18, [](double) { return 1.0; }}});
  EXPECT_THAT(DefaultPolicies(RangeOf(in_line).value(), in_line),
              ElementsAre("mutune", "static:auto", "static:SIP1", "tbd", "online"));
}

TEST(ComparePlan, AutoIsComparedOnceAndOnlyWhereItCanRun) {
  const auto flat = [](double) { return 1.0; };
  const Profile best = MakeProfile({100, 200}, {{"auto", 1e18, flat}});
  EXPECT_THAT(DefaultPolicies(RangeOf(best).value(), best),
              ElementsAre("mutune", "static:auto", "tbd", "online"));
  const Profile continuations = MakeProfile({100, 200}, {{"AIB1-1", 1e18, flat}});
  EXPECT_THAT(DefaultPolicies(RangeOf(continuations).value(), continuations),
              ElementsAre("mutune", "static:AIB1-1", "tbd", "online"));
}

TEST(ComparePlan, SaysWhyAPolicyCannotBeCompared) {
  const Profile profile = SteppedProfile();
  for (const char* label : {"mutune", "fm", "ipi", "online", "online+profile", "ipi:SDB1-8", "static:SIB1"}) {
    EXPECT_TRUE(CheckPolicy(ParsePolicyChoice(label), &profile).ok()) << label;
  }
  for (const char* label : {"online", "ipi:SDB1-8", "static:SIB1"}) {
    EXPECT_TRUE(CheckPolicy(ParsePolicyChoice(label), nullptr).ok()) << label;
  }
  EXPECT_THAT(Refusal("online+profile", nullptr), HasSubstr("goes by a profile"));
  EXPECT_THAT(Refusal("mutune", nullptr), HasSubstr("goes by a profile"));
  EXPECT_THAT(Refusal("best", nullptr), HasSubstr("there is static:CONFIG"));
  EXPECT_THAT(Refusal("best", nullptr), StartsWith("policy \"best\": there is"));
  EXPECT_THAT(Refusal("static:X", &profile), HasSubstr("config \"X\""));
}

TEST(ComparePlan, LeavesOnlyWhatTheLibraryDoesNotKnowToAProgramOfOnesOwn) {
  const PolicyChoice own = ParsePolicyChoice("two-step:SIB1,SDB1-16");
  EXPECT_TRUE(own.switches && !own.wants_profile);
  EXPECT_TRUE(CheckPolicy(own, nullptr, /*own_program=*/true).ok());
  EXPECT_THAT(Refusal("two-step:SIB1,SDB1-16", nullptr), HasSubstr("--program"));
  EXPECT_FALSE(CheckPolicy(ParsePolicyChoice("static:X"), nullptr, /*own_program=*/true).ok());
  EXPECT_FALSE(CheckPolicy(ParsePolicyChoice("two-step+profile"), nullptr, /*own_program=*/true).ok());
  EXPECT_EQ(ParsePolicyChoice("two-step+profile").policy, "two-step");
}

TEST(ComparePlan, ArgumentsMayHaveCommasIfSemicolonsSeparateThePolicies) {
  EXPECT_THAT(SplitPolicies("mutune,static:SIB1"), ElementsAre("mutune", "static:SIB1"));
  EXPECT_THAT(SplitPolicies("two-step:SIB1,SDB1-16;mutune"), ElementsAre("two-step:SIB1,SDB1-16", "mutune"));
}

}  // namespace
}  // namespace curtail::tool
