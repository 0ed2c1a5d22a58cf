// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/compare/policy_summary.h"

#include <cmath>

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
using testing::Not;

// Two policies, whose p99 is that of `first` and `second` by round, everywhere.
PolicyComparison Two(const std::vector<int>& first_us, const std::vector<int>& second_us) {
  return MadeUpComparison({"mutune", "fm"}, static_cast<int>(first_us.size()),
                          [&](size_t policy, const Phase&, int round) -> Nanos {
                            const int us = (policy == 0 ? first_us : second_us)[static_cast<size_t>(round)];
                            return us < 0 ? Nanos(-1) : Nanos(microseconds(us));
                          });
}

Order OrderOf(const std::vector<int>& first_us, const std::vector<int>& second_us) {
  const PolicyComparison c = Two(first_us, second_us);
  const Order order = Compare(c, 0, 0, 0, 1).order, reverse = Compare(c, 0, 0, 1, 0).order;
  EXPECT_EQ(order == Order::kHigher, reverse == Order::kLower);
  EXPECT_EQ(order == Order::kLower, reverse == Order::kHigher);
  return order;
}

std::string VerdictText(const PolicyComparison& c) { return absl::StrJoin(Verdict(c), "\n"); }

TEST(Compare, NeedsEveryRoundAndFivePercent) {
  EXPECT_EQ(OrderOf({1100, 1200, 1100}, {1000, 1000, 1000}), Order::kHigher);
  EXPECT_EQ(OrderOf({1000, 1000, 1000}, {1100, 1200, 1100}), Order::kLower);
  EXPECT_EQ(OrderOf({1100, 1200, 999}, {1000, 1000, 1000}), Order::kSame) << "lost two of three rounds";
  EXPECT_EQ(OrderOf({1040, 1040, 1040}, {1000, 1000, 1000}), Order::kSame) << "by 4 %";
  EXPECT_EQ(OrderOf({1000, 1000, 1000}, {1000, 1000, 1000}), Order::kSame);
}

TEST(Compare, IsPairedByRound) {
  // Rounds differ by far more than policies do.
  EXPECT_EQ(OrderOf({1100, 11'000, 110}, {1000, 10'000, 100}), Order::kHigher);
  const PolicyComparison c = Two({1100, 11'000, 110}, {1000, 10'000, 100});
  EXPECT_NEAR(Compare(c, 0, 0, 0, 1).ratio, 1.1, 1e-9);
}

TEST(Compare, ManyRoundsMayLoseOne) {
  const std::vector<int> ten(10, 1000);
  std::vector<int> nine_of_ten(10, 1200), eight_of_ten(10, 1200);
  nine_of_ten[4] = eight_of_ten[4] = eight_of_ten[7] = 900;
  EXPECT_EQ(OrderOf(nine_of_ten, ten), Order::kHigher) << "chance 1.1 %";
  EXPECT_EQ(OrderOf(eight_of_ten, ten), Order::kSame) << "chance 5.5 %";
}

TEST(Compare, FewRoundsTellOnlyLargeDifferences) {
  EXPECT_EQ(OrderOf({1500}, {1000}), Order::kSame);
  EXPECT_EQ(OrderOf({2100}, {1000}), Order::kHigher);
  EXPECT_EQ(OrderOf({1900, 1900}, {1000, 1000}), Order::kSame);
}

TEST(Compare, LeavesVoidRunsOut) {
  EXPECT_EQ(OrderOf({1100, 1200, 1100, -1}, {1000, 1000, 1000, 5000}), Order::kHigher);
  EXPECT_EQ(OrderOf({-1, 1000}, {1000, -1}), Order::kUnknown) << "no round in common";
}

TEST(Standings, MarkTheBestAndWhatEqualsIt) {
  const PolicyComparison c = SampleComparison();
  EXPECT_THAT(Standings(c, 0, 0),
              ElementsAre(Standing::kBest, Standing::kBeaten, Standing::kMatched, Standing::kBeaten));
  EXPECT_THAT(Standings(c, 1, 1),
              ElementsAre(Standing::kBest, Standing::kBeaten, Standing::kBeaten, Standing::kBeaten));
  EXPECT_THAT(Standings(Two({-1, -1}, {1000, 1000}), 0, 0), ElementsAre(Standing::kUnknown, Standing::kBest));
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
  const std::string text = VerdictText(SampleComparison());
  EXPECT_THAT(text, HasSubstr("mutune is best, or cannot be told from the best, at 3 of 3 steady loads; "
                              "alone at 1000/s."));
  EXPECT_THAT(text, HasSubstr("Against fm: better at 3 (by up to 30 %), worse at 0, not told apart at 0."));
  EXPECT_THAT(
      text,
      HasSubstr("Against static:SIP1: better at 1 (up to 2.0 times), worse at 0, not told apart at 2."));
  EXPECT_THAT(text, HasSubstr("In the spike the p99 of mutune is 1.01 ms, the lowest."));
  EXPECT_THAT(text, HasSubstr("Over the whole ramp mutune has the lowest p99."));
  EXPECT_THAT(text, Not(HasSubstr("beaten")));
}

TEST(Verdict, SaysWhereTheFirstPolicyLosesAndByHowMuch) {
  const PolicyComparison c = MadeUpComparison(
      {"mutune", "fm", "static:SIP1"}, 3, [](size_t policy, const Phase& phase, int) -> Nanos {
        if (phase.name == "spike") return policy == 0 ? milliseconds(1500) : milliseconds(3);
        if (phase.name == "1000/s") return microseconds(policy == 0 ? 1000 : 1200);
        return microseconds(policy == 0 ? 1120 : policy == 1 ? 1000 : 400);
      });
  const std::string text = VerdictText(c);
  EXPECT_THAT(text, HasSubstr("at 1 of 3 steady loads; alone at 1000/s."));
  EXPECT_THAT(
      text, HasSubstr("mutune is beaten at 2 of them: at 100/s up by static:SIP1 (2.8 times), fm (by 12 %); "
                      "at 100/s down by static:SIP1 (2.8 times), fm (by 12 %)."));
  EXPECT_THAT(text, HasSubstr("Against fm: better at 1 (by up to 20 %), worse at 2 (by up to 12 %)"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "In the spike the p99 of mutune is > 1 s, beaten by static:SIP1 (500 times), fm (500 times)."));
  EXPECT_THAT(text,
              HasSubstr("In the part \"first second after\" of the flash crowd the p99 of mutune is 1.12 ms, "
                        "beaten by static:SIP1 (2.8 times), fm (by 12 %)."));
  EXPECT_THAT(text, HasSubstr("Over the whole ramp mutune is beaten by static:SIP1 (2.8 times)."));
}

TEST(Verdict, IsThereWhateverWasMeasured) {
  PolicyComparison c = SampleComparison();
  c.runs.clear();
  EXPECT_THAT(Verdict(c), ElementsAre("Nothing was measured."));
  EXPECT_THAT(Verdict(PolicyComparison{}), ElementsAre("Nothing was measured."));
  EXPECT_THAT(VerdictText(Two({-1}, {1000})),
              HasSubstr("mutune was not measured at 100/s up, 1000/s, 100/s down."));
  c = Two({1000}, {1000});
  c.policies.pop_back();
  EXPECT_THAT(Verdict(c), ElementsAre("There is nothing to compare mutune with."));
}

TEST(Caveats, SayWhatLimitsTheNumbers) {
  EXPECT_THAT(Caveats(SampleComparison()), IsEmpty());
  PolicyComparison c = Two({-1, 1000}, {1000, 1000});
  c.interrupted = true;
  EXPECT_THAT(
      Caveats(c),
      ElementsAre("Interrupted: some rounds are missing or incomplete.",
                  "3 of 12 runs are void and left out: the generator was <late> (3).",
                  "With 2 rounds little can be told apart: a difference counts from a factor of 2 on."));
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
