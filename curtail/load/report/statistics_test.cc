// SPDX-License-Identifier: Apache-2.0
//
// Where no other source is named, the expected values were computed with SciPy 1.17.1.
#include "curtail/load/report/statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "curtail/base/rng.h"
#include "gtest/gtest.h"

namespace curtail {
namespace {

using Values = std::vector<double>;

TEST(AndersonDarling, MatchesAnIndependentComputation) {
  EXPECT_NEAR(AndersonDarlingExponential(Values{0.1, 0.5, 0.9, 1.2, 2.5, 0.03, 0.7, 1.9}), 0.2657258069634505,
              1e-12);
  EXPECT_TRUE(std::isfinite(AndersonDarlingExponential(Values{0, 1, 2}))) << "two arrivals within one ns";
  EXPECT_GT(AndersonDarlingExponential(Values(100, 1.0)), 10) << "constant gaps are not exponential";
}

TEST(AndersonDarling, CriticalValuesHoldInSimulation) {
  // The share of 40,000 true samples above each value is off by at most four standard deviations.
  for (const size_t n : {10, 50}) {
    for (uint64_t seed = 1; seed <= 2; ++seed) {
      Rng rng(seed);
      int above5 = 0, above1 = 0;
      constexpr int kSamples = 40'000;
      Values gaps(n);
      for (int i = 0; i < kSamples; ++i) {
        for (double& gap : gaps) gap = rng.Exponential(1);
        const double a2 = AndersonDarlingExponential(gaps);
        above5 += a2 > kAndersonDarling5Percent;
        above1 += a2 > kAndersonDarling1Percent;
      }
      // For 10 numbers the shares are really 5.16 % and 1.05 %.
      EXPECT_NEAR(above5 / double{kSamples}, 0.05, 0.0044 + (n == 10 ? 0.0016 : 0.0005))
          << n << ", seed " << seed;
      EXPECT_NEAR(above1 / double{kSamples}, 0.01, 0.0020 + (n == 10 ? 0.0005 : 0.0003))
          << n << ", seed " << seed;
    }
  }
}

TEST(Spearman, MatchesKnownValues) {
  const Values x{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, y{2, 1, 4, 3, 7, 5, 6, 10, 8, 9};
  const Correlation plain = Spearman(x, y);
  EXPECT_NEAR(plain.r, 0.9030303030303028, 1e-12);
  EXPECT_NEAR(plain.p, 0.0003436121977632824, 1e-12);
  const Correlation ties =
      Spearman(Values{1, 2, 2, 3, 3, 3, 4, 5, 6, 6, 7, 9}, Values{9, 3, 3, 7, 5, 5, 1, 2, 2, 4, 4, 0});
  EXPECT_NEAR(ties.r, -0.5444874336011293, 1e-12);
  EXPECT_NEAR(ties.p, 0.06719320224167818, 1e-12);
}

TEST(Spearman, LooksAtRanksAlone) {
  Values x, y;
  for (int i = 1; i <= 20; ++i) {
    x.push_back(i);
    y.push_back(std::exp(i));
  }
  EXPECT_EQ(Spearman(x, y).r, 1);
  EXPECT_EQ(Spearman(x, y).p, 0);
  std::reverse(y.begin(), y.end());
  EXPECT_EQ(Spearman(x, y).r, -1);
  EXPECT_EQ(Spearman(x, Values(20, 3.0)).r, 0) << "one side is all the same";
  EXPECT_EQ(Spearman(Values{1, 2}, Values{1, 2}).p, 1) << "too few";
}

TEST(Spearman, UnrelatedPairsAreSeldomSignificant) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    Rng rng(seed);
    int found = 0;
    for (int i = 0; i < 2000; ++i) {
      Values x, y;
      for (int k = 0; k < 30; ++k) {
        x.push_back(rng.Uniform01());
        y.push_back(rng.Uniform01());
      }
      found += Spearman(x, y).p < 0.05;
    }
    EXPECT_NEAR(found / 2000.0, 0.05, 0.02) << "seed " << seed;
  }
}

TEST(StudentT, MatchesKnownQuantiles) {
  EXPECT_NEAR(StudentTQuantile(0.975, 1), 12.706204736174694, 1e-9);
  EXPECT_NEAR(StudentTQuantile(0.975, 2), 4.302652729749462, 1e-9);
  EXPECT_NEAR(StudentTQuantile(0.975, 4), 2.7764451051977934, 1e-9);
  EXPECT_NEAR(StudentTQuantile(0.995, 4), 4.604094871349992, 1e-9);
  EXPECT_NEAR(StudentTQuantile(0.9, 30), 1.3104150253913955, 1e-9);
  EXPECT_NEAR(StudentTQuantile(0.975, 1000), 1.9623390808264083, 1e-9);
  EXPECT_NEAR(StudentTQuantile(0.6, 3.5), 0.27326545405577973, 1e-9);
  EXPECT_NEAR(StudentTQuantile(0.9999, 1) / 3183.098757118502, 1, 1e-9);
  EXPECT_NEAR(StudentTQuantile(0.025, 4), -2.7764451051977934, 1e-9);
  EXPECT_NEAR(StudentTQuantile(0.5, 7), 0, 1e-9);
}

TEST(MeanInterval, MatchesKnownValues) {
  const std::optional<Interval> found = MeanInterval(Values{12.1, 11.4, 13.9, 12.8, 12.2}, 0.95);
  ASSERT_TRUE(found.has_value());
  EXPECT_NEAR(found->low, 11.317203045304208, 1e-9);
  EXPECT_NEAR(found->high, 13.642796954695793, 1e-9);
  EXPECT_FALSE(MeanInterval(Values{5}, 0.95).has_value());
  EXPECT_FALSE(MeanInterval({}, 0.95).has_value());
  EXPECT_EQ(MeanInterval(Values{5, 5, 5}, 0.95)->low, 5);
}

TEST(MeanZeroP, IsThatOfStudentsT) {
  // t = 2.776 with four degrees of freedom: two tails of 2.5 %.
  const double values[] = {0.5, 1.5, 2.5, 3.5, 4.5};
  const double t = 2.5 / std::sqrt(2.5 / 5);
  EXPECT_NEAR(MeanZeroP(values), 0.0241, 1e-4) << "t " << t;
  const double negative[] = {-0.5, -1.5, -2.5, -3.5, -4.5};
  EXPECT_DOUBLE_EQ(MeanZeroP(negative), MeanZeroP(values));
  const double centred[] = {-1, 1}, same[] = {2, 2, 2}, zeros[] = {0, 0}, one[] = {7};
  EXPECT_DOUBLE_EQ(MeanZeroP(centred), 1);
  EXPECT_EQ(MeanZeroP(same), 0);
  EXPECT_EQ(MeanZeroP(zeros), 1);
  EXPECT_EQ(MeanZeroP(one), 1);
}

TEST(Median, IsInTheMiddle) {
  EXPECT_EQ(Median(Values{3, 1, 2}), 2);
  EXPECT_EQ(Median(Values{4, 1, 3, 2}), 2.5);
  EXPECT_EQ(Median(Values{7}), 7);
}

TEST(MedianInterval, TakesTheOrderStatisticsOfTheBinomial) {
  const auto ranks = [](int n) {
    Values values;
    for (int i = n; i >= 1; --i) values.push_back(i);
    return MedianInterval(values, 0.95);
  };
  EXPECT_FALSE(ranks(0).has_value());
  EXPECT_FALSE(ranks(5).has_value()) << "0.9375 is not 0.95";
  const struct {
    int n, low, high;
  } known[] = {{6, 1, 6}, {10, 2, 9}, {20, 6, 15}, {25, 8, 18}, {100, 40, 61}, {1000, 469, 532}};
  for (const auto& k : known) {
    const std::optional<Interval> found = ranks(k.n);
    ASSERT_TRUE(found.has_value()) << k.n;
    EXPECT_EQ(found->low, k.low) << k.n;
    EXPECT_EQ(found->high, k.high) << k.n;
  }
}

TEST(MedianInterval, HoldsTheMedianAsOftenAsItSays) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    Rng rng(seed);
    int held = 0;
    for (int i = 0; i < 4000; ++i) {
      Values values;
      for (int k = 0; k < 10; ++k) values.push_back(rng.Exponential(1));
      const Interval found = MedianInterval(values, 0.95).value();
      held += found.low <= std::log(2) && std::log(2) <= found.high;
    }
    EXPECT_NEAR(held / 4000.0, 0.9785, 0.0092) << "seed " << seed;
  }
}

TEST(MannWhitney, IsExactForSmallSamples) {
  const Difference apart = MannWhitney(Values{1, 2, 3}, Values{4, 5, 6});
  EXPECT_EQ(apart.u, 0);
  EXPECT_NEAR(apart.p, 0.1, 1e-12);
  const Difference five = MannWhitney(Values{5.1, 4.8, 6.2, 5.9, 5.5}, Values{5.0, 4.1, 4.4, 4.9, 4.7});
  EXPECT_EQ(five.u, 23);
  EXPECT_NEAR(five.p, 0.031746031746031744, 1e-12);
  const Difference uneven = MannWhitney(Values{1.1, 2.2, 3.3, 4.4}, Values{0.5, 2.0, 5.5, 6.6, 7.7, 8.8});
  EXPECT_NEAR(uneven.p, 0.3523809523809524, 1e-12);
  Values a, b;
  for (int i = 0; i < 20; ++i) a.push_back(i * 7 % 31);
  for (int i = 0; i < 25; ++i) b.push_back(i * 11 % 37 + 0.5);
  EXPECT_EQ(MannWhitney(a, b).u, 189);
  EXPECT_NEAR(MannWhitney(a, b).p, 0.1686252643356931, 1e-12);
}

TEST(MannWhitney, CountsTiesExactly) {
  // 24 of the 462 ways to choose five of the eleven ranks are as far out, by a count of all of them.
  const Difference ties = MannWhitney(Values{5, 5, 6, 7, 7}, Values{4, 5, 5, 6, 3, 4});
  EXPECT_EQ(ties.u, 25.5);
  EXPECT_NEAR(ties.p, 24.0 / 462, 1e-12);
  EXPECT_NEAR(MannWhitney(Values{2, 2, 2}, Values{2, 2}).p, 1, 1e-12);
}

TEST(MannWhitney, ApproximatesLargeSamples) {
  Values a, b;
  for (int i = 0; i < 40; ++i) a.push_back(i * 37 % 11);
  for (int i = 0; i < 35; ++i) b.push_back(i * 53 % 7 + 3);
  const Difference found = MannWhitney(a, b);
  EXPECT_EQ(found.u, 552.5);
  EXPECT_NEAR(found.p, 0.11648530702971273, 1e-12);
  EXPECT_EQ(MannWhitney(Values(100, 1.0), Values(100, 1.0)).p, 1);
  Values c(1000), d(1000);
  for (int i = 0; i < 1000; ++i) c[static_cast<size_t>(i)] = i, d[static_cast<size_t>(i)] = i + 500;
  EXPECT_LT(MannWhitney(c, d).p, 1e-30);
}

TEST(MannWhitney, DoesNotDependOnTheOrderOfTheSides) {
  Rng rng(3);
  for (int i = 0; i < 200; ++i) {
    Values a(1 + rng.Below(9)), b(1 + rng.Below(9));
    for (double& v : a) v = static_cast<double>(rng.Below(8));
    for (double& v : b) v = static_cast<double>(rng.Below(8));
    const Difference ab = MannWhitney(a, b), ba = MannWhitney(b, a);
    EXPECT_NEAR(ab.p, ba.p, 1e-12) << "seed 3, " << i;
    EXPECT_EQ(ab.u + ba.u, static_cast<double>(a.size() * b.size()));
    EXPECT_GT(ab.p, 0);
    EXPECT_LE(ab.p, 1);
  }
  EXPECT_EQ(MannWhitney({}, Values{1}).p, 1);
  EXPECT_EQ(MannWhitney(Values{1}, {}).p, 1);
}

}  // namespace
}  // namespace curtail
