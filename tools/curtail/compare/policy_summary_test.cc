// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/compare/policy_summary.h"

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/curtail/compare/policy_testing.h"

namespace curtail::tool {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;

// Two policies, whose p99 is that of `first` and `second` by round, everywhere.
PolicyComparison Two(const std::vector<int>& first_us, const std::vector<int>& second_us) {
  return MadeUpComparison({"mutune", "fm"}, static_cast<int>(first_us.size()),
                          [&](size_t policy, const Phase&, int round) -> Nanos {
                            const int us = (policy == 0 ? first_us : second_us)[static_cast<size_t>(round)];
                            return us < 0 ? Nanos(-1) : Nanos(microseconds(us));
                          });
}

std::string VerdictText(const PolicyComparison& c) { return absl::StrJoin(Verdict(c), "\n"); }

TEST(Standings, MarkTheBestAndWhatEqualsIt) {
  const PolicyComparison c = SampleComparison();
  EXPECT_THAT(Standings(c, 0, 0),
              ElementsAre(Standing::kBest, Standing::kBeaten, Standing::kMatched, Standing::kBeaten));
  EXPECT_THAT(Standings(c, 1, 1),
              ElementsAre(Standing::kBest, Standing::kBeaten, Standing::kBeaten, Standing::kBeaten));
  EXPECT_THAT(Standings(Two({-1, -1}, {1000, 1000}), 0, 0),
              ElementsAre(Standing::kUnknown, Standing::kUnknown))
      << "the best of one is none";
  EXPECT_THAT(Standings(Two({3000, 3000}, {1000, 1000}), 0, 0),
              ElementsAre(Standing::kMatched, Standing::kBest))
      << "two rounds tell nothing apart";
  EXPECT_THAT(Standings(Two({-1, 1000}, {1000, -1}), 0, 0), ElementsAre(Standing::kBest, Standing::kUnknown))
      << "no round in common";
  EXPECT_THAT(Standings(Two({-1}, {-1}), 0, 0), ElementsAre(Standing::kUnknown, Standing::kUnknown));
}

TEST(P99Us, IsTheMedianWithItsRange) {
  const std::optional<RoundSpread> p99 = P99Us(Two({1300, 1000, 1100}, {1, 1, 1}), 0, 0, 0);
  ASSERT_TRUE(p99);
  EXPECT_DOUBLE_EQ(p99->median, 1100);
  EXPECT_DOUBLE_EQ(p99->low, 1000);
  EXPECT_DOUBLE_EQ(p99->high, 1300);
  EXPECT_EQ(p99->rounds, 3u);
  EXPECT_FALSE(P99Us(Two({-1}, {1}), 0, 0, 0));
}

TEST(Verdict, SaysWhereTheFirstPolicyIsBest) {
  const std::vector<std::string> lines = Verdict(SampleComparison());
  EXPECT_THAT(lines[0], MatchesRegex("Over all 11 cells mutune is better than fm \\(0\\.77\\), static:SIP1 "
                                     "\\(0\\.1.\\), static:SDB1-50 \\(0\\.67\\)\\."));
  EXPECT_THAT(lines[1], MatchesRegex("Against fm: better, with 0\\.77 times the p99 \\(95 %: 0\\.77 to "
                                     "0\\.77\\), 5 rounds\\. By cell: better at 11 \\(100/s up 0\\.77, .*"
                                     "flash-crowd spike 0\\.77, .*ramp falling low 0\\.77\\)\\."));
  EXPECT_THAT(lines[2], HasSubstr("Against static:SIP1: better, "));
  EXPECT_THAT(lines[2], HasSubstr("By cell: better at 9 (1000/s 0.50, flash-crowd before 0.50, flash-crowd "
                                  "spike 0.0"));
  EXPECT_THAT(lines[2], HasSubstr("), level at 2."));
  EXPECT_THAT(lines[4],
              HasSubstr("In the spike the p99 is 1.01 ms under mutune, 1.31 ms under fm, > 1 s under "
                        "static:SIP1, 1.51 ms under static:SDB1-50; mutune is better than fm (0.77)"));
  EXPECT_THAT(lines[5], HasSubstr("Over the whole ramp the p99 is 1.01 ms under mutune"));
  EXPECT_THAT(VerdictText(SampleComparison()), Not(HasSubstr("worse")));
}

TEST(Verdict, SaysWhereTheFirstPolicyLosesAndByHowMuch) {
  const PolicyComparison c = MadeUpComparison(
      {"mutune", "fm", "static:SIP1"}, 5, [](size_t policy, const Phase& phase, int) -> Nanos {
        if (phase.name == "spike") return policy == 0 ? milliseconds(1500) : milliseconds(3);
        if (phase.name == "1000/s") return microseconds(policy == 0 ? 1000 : 1200);
        return microseconds(policy == 0 ? 1120 : policy == 1 ? 1000 : 400);
      });
  const std::string text = VerdictText(c);
  EXPECT_THAT(text, HasSubstr("Over all 11 cells mutune is worse than fm (1.90), static:SIP1 (4.02)."));
  EXPECT_THAT(text,
              HasSubstr("Against fm: worse, with 1.90 times the p99 (95 %: 1.90 to 1.90), 5 rounds. "
                        "By cell: better at 1 (1000/s 0.83), worse at 10 (100/s up 1.12, 100/s down 1.12, "));
  EXPECT_THAT(text, HasSubstr("flash-crowd spike 500, flash-crowd first second after 1.12"));
  EXPECT_THAT(text, HasSubstr("In the spike the p99 is > 1 s under mutune, 3.00 ms under fm, 3.00 ms under "
                              "static:SIP1; mutune is worse than fm (500), static:SIP1 (500)."));
  EXPECT_THAT(text, HasSubstr("mutune is worse than fm (1.12), static:SIP1 (2.80)."));
}

TEST(Verdict, TakesFiveRoundsThatCount) {
  const std::string text = VerdictText(Two({1000, -1, 1000}, {9000, 9000, 9000}));
  EXPECT_THAT(text, HasSubstr("No verdict: it takes 5 rounds that count, and there are 2."));
  EXPECT_THAT(text, HasSubstr("Against fm: too few rounds, with 0.11 times the p99, 2 rounds."));
  EXPECT_THAT(text, HasSubstr("In the spike the p99 is 1.00 ms under mutune, 9.00 ms under fm."));
  EXPECT_THAT(VerdictText(Two({1000}, {9000})),
              HasSubstr("No verdict: it takes 5 rounds that count, and there is 1."));
}

TEST(Verdict, SaysNothingAboutWhatDidNotRun) {
  PolicyComparison c = SampleComparison();
  c.interrupted = true;
  std::erase_if(c.runs, [](const PolicyRun& run) { return run.policy != "mutune" || run.round > 0; });
  const std::vector<std::string> lines = Verdict(c);
  EXPECT_EQ(lines[0], "PARTIAL. No verdict: there are not two policies that were measured.");
  EXPECT_EQ(lines[1], "Not measured, so nothing is said about: fm, static:SIP1, static:SDB1-50.");
  for (const char* claim : {"best", "better", "lowest", "Against"})
    EXPECT_THAT(VerdictText(c), Not(HasSubstr(claim)));
  for (size_t s = 0; s < c.scenarios.size(); ++s)
    EXPECT_THAT(Standings(c, s, 0), testing::Each(Standing::kUnknown));

  c = SampleComparison();
  c.interrupted = true;
  std::erase_if(c.runs, [](const PolicyRun& run) { return run.policy == "fm"; });
  EXPECT_THAT(Verdict(c)[0],
              testing::StartsWith("PARTIAL. Over all 11 cells mutune is better than static:SIP1"));
  EXPECT_THAT(VerdictText(c), HasSubstr("Not measured, so nothing is said about: fm."));
  EXPECT_THAT(VerdictText(c), Not(HasSubstr("Against fm")));
}

TEST(Verdict, IsThereWhateverWasMeasured) {
  PolicyComparison c = SampleComparison();
  c.runs.clear();
  EXPECT_THAT(Verdict(c), ElementsAre("Nothing was measured."));
  EXPECT_THAT(Verdict(PolicyComparison{}), ElementsAre("Nothing was measured."));
  EXPECT_THAT(VerdictText(Two({-1}, {1000})), HasSubstr("Not measured, so nothing is said about: mutune."));
  EXPECT_THAT(Verdict(Two({-1}, {-1})), ElementsAre("No verdict: no run can be believed.",
                                                    "Not measured, so nothing is said about: mutune, fm."));
  PolicyComparison interrupted = Two({-1}, {-1});
  interrupted.interrupted = true;
  EXPECT_EQ(Verdict(interrupted).front(), "PARTIAL. No verdict: no run can be believed.");
  c = Two({1000}, {1000});
  c.policies.pop_back();
  EXPECT_THAT(Verdict(c), ElementsAre("There is nothing to compare mutune with."));
}

TEST(Caveats, SayWhatLimitsTheNumbers) {
  EXPECT_THAT(Caveats(SampleComparison()), IsEmpty());
  PolicyComparison c = Two({-1, 1000}, {1000, 1000});
  c.interrupted = true;
  EXPECT_THAT(Caveats(c), ElementsAre("Interrupted: some rounds are missing or incomplete.",
                                      "3 of 12 runs are void and left out: the generator was <late> (3)."));
  c = Two({1000, 1900, 700, 1000, 1000, 1300}, {1000, 1000, 1000, 1000, 1000, 1000});
  EXPECT_THAT(Caveats(c), ElementsAre("It takes more rounds to tell mutune from fm."));
}

TEST(MsText, HasThreeDigitsUpToASecond) {
  EXPECT_EQ(MsText(985.4), "0.99");
  EXPECT_EQ(MsText(12'040), "12.0");
  EXPECT_EQ(MsText(9'996), "10.0");
  EXPECT_EQ(MsText(430'400), "430");
  EXPECT_EQ(MsText(999'999), "1000");
  EXPECT_EQ(MsText(1e6), "> 1 s");
}

}  // namespace
}  // namespace curtail::tool
