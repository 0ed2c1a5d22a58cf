// SPDX-License-Identifier: Apache-2.0
//
// The table of policies, and what is derived from it: texts for users, and policies by their names.
#include "curtail/adapt/policy_kind.h"

#include <set>
#include <string>

#include "absl/status/status.h"
#include "curtail/adapt/profile_testing.h"
#include "curtail/base/strings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

std::string TextOf(const PolicyKind& kind) {
  return kind.argument.starts_with(':') ? FixedPolicy(ConfigOf("SDB1-8")) : std::string(kind.name);
}

TEST(LibraryPolicies, DescribeThemselvesAndAreMade) {
  const Profile profile = SteppedProfile();
  std::set<std::string_view> names;
  for (const PolicyKind* kind : LibraryPolicies()) {
    SCOPED_TRACE(std::string(kind->name));
    EXPECT_TRUE(names.insert(kind->name).second) << "twice";
    EXPECT_FALSE(kind->summary.empty());
    EXPECT_LE(kind->summary.size(), 90u) << "one line of help";
    EXPECT_GE(kind->evaluate_every, 1);
    const std::string text = TextOf(*kind);
    const absl::StatusOr<PolicySpec> spec = ParsePolicy(text);
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(spec->kind, kind);
    EXPECT_TRUE(MakePolicy(*spec, &profile, {}).ok());
    const PolicyOptions options{.configs = {ConfigOf("SIB1")}};
    EXPECT_EQ(MakePolicy(*spec, nullptr, options).ok(), !spec->NeedsProfile());
  }
}

// Property: a policy chooses only what its description says.
TEST(LibraryPolicies, ChooseOnlyWhatTheySay) {
  const Profile profile = SteppedProfile();
  for (const PolicyKind* kind : LibraryPolicies()) {
    SCOPED_TRACE(std::string(kind->name));
    const auto policy = MakePolicy(TextOf(*kind), &profile, {}).value();
    Signals signals{.current = ConfigOf("SIP1")};
    Config first;
    for (int i = 0; i < 2000; ++i) {
      signals.now = TimePoint(std::chrono::milliseconds(i));
      signals.arrivals += static_cast<uint64_t>(i % 400) / 20;
      signals.blocked = i % 10;
      signals.rates = {10.0 * i, 10.0 * i, 10.0 * i};
      signals.trigger = i == 0                    ? Trigger::kTimer
                        : kind->toggles_reception ? Trigger::kBlocked
                                                  : Trigger::kArrival;
      signals.current = policy->Decide(signals).config;
      if (i == 0) first = signals.current;
      ASSERT_TRUE(kind->chooses == nullptr || kind->chooses(signals.current)) << signals.current.ToString();
      Config toggled = signals.current;
      toggled.model.reception = first.model.reception;
      ASSERT_TRUE(!kind->toggles_reception || toggled == first) << signals.current.ToString();
      ASSERT_TRUE(kind->switches || signals.current == first) << signals.current.ToString();
    }
  }
}

TEST(LibraryPolicies, TextsNameAll) {
  for (const PolicyKind* kind : LibraryPolicies()) {
    const std::string usage = Join(kind->name, kind->argument);
    EXPECT_THAT(PolicyNames(), HasSubstr(usage));
    EXPECT_THAT(PolicyHelp("  "), testing::ContainsRegex(Join("(^|\n)  ", kind->name)));
    EXPECT_THAT(PolicyHelp("  "), HasSubstr(Join("  ", kind->summary, "\n")));
  }
  EXPECT_THAT(PolicyNames(), HasSubstr("ipi[:CONFIG], "));
  EXPECT_THAT(PolicyNames(), EndsWith(" and online"));
  EXPECT_EQ(PolicyThatUses(ProfileUse::kRequired), "mutune");
  EXPECT_EQ(PolicyThatUses(ProfileUse::kOptional), "online");
  EXPECT_EQ(FixedPolicy(ConfigOf("SDB1-50")), "static:SDB1-50");
}

TEST(ParsePolicy, KnowsWhoNeedsAProfile) {
  const auto use = [](std::string_view text) {
    const PolicySpec spec = ParsePolicy(text).value();
    return Join(spec.NeedsProfile()   ? "needs"
                : spec.TakesProfile() ? "takes"
                                      : "ignores",
                " ", spec.argument);
  };
  EXPECT_EQ(use("mutune"), "needs ");
  EXPECT_EQ(use("mutune:paper"), "needs ");
  EXPECT_EQ(use("ipi"), "needs ");
  EXPECT_EQ(use("ipi:SDB1-4"), "ignores SDB1-4");
  EXPECT_EQ(use("online"), "takes ");
  EXPECT_EQ(use("static:SIB1"), "ignores SIB1");
  for (const char* text :
       {"", ":", "mutun", "mutunes", "mutune:", "mutune:paper:", "online:SIB1", "statics:SIB1"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParsePolicy(text).status())) << text;
  }
}

// Policies of a program's own.
absl::StatusOr<std::unique_ptr<Policy>> MakeNone(const PolicyRequest& request) {
  return absl::InvalidArgumentError(Join("cannot be made of ", request.argument));
}
constexpr PolicyKind kNone = {
    .name = "none", .argument = "[:TEXT]", .summary = "is never made", .make = MakeNone};
constexpr PolicyKind kTwin = {.name = "fm", .summary = "has a name that is taken", .make = MakeNone};

TEST(ParsePolicy, TakesPoliciesOfTheProgram) {
  const PolicyKind* const own[] = {&kNone};
  const absl::StatusOr<PolicySpec> spec = ParsePolicy("none:a:b", own);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(Message(MakePolicy(*spec, nullptr, {}).status()), "policy \"none:a:b\": cannot be made of a:b");
  EXPECT_TRUE(ParsePolicy("none", own).ok());
  EXPECT_TRUE(ParsePolicy("mutune", own).ok());
  EXPECT_FALSE(ParsePolicy("none").ok());
  EXPECT_THAT(std::string(Message(ParsePolicy("best", own).status())), EndsWith(" and none[:TEXT]"));
  EXPECT_THAT(PolicyHelp("", own), HasSubstr("\nnone[:TEXT]    is never made\n"));
}

TEST(ParsePolicy, RefusesTwoPoliciesOfOneName) {
  const PolicyKind* const own[] = {&kTwin};
  EXPECT_THAT(std::string(Message(ParsePolicy("fm", own).status())),
              HasSubstr("two policies have the name fm"));
  EXPECT_TRUE(ParsePolicy("tbd", own).ok());
}

}  // namespace
}  // namespace curtail
