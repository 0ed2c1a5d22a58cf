// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/rng.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace curtail {
namespace {

TEST(Rng, FollowsThePublishedSequence) {
  // Made with the authors' reference C (prng.di.unimi.it): splitmix64 from seed 42 fills the state of
  // xoshiro256++.
  Rng rng(42);
  EXPECT_EQ(rng.Next(), 0xd0764d4f4476689fu);
  EXPECT_EQ(rng.Next(), 0x519e4174576f3791u);
  EXPECT_EQ(rng.Next(), 0xfbe07cfb0c24ed8cu);
}

TEST(Rng, SameSeedSameSequence) {
  Rng a(7), b(7), c(8);
  int different = 0;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t value = a.Next();
    ASSERT_EQ(value, b.Next());
    different += value != c.Next();
  }
  EXPECT_GT(different, 990);
}

TEST(Rng, Uniform01StaysInRangeAndIsFlat) {
  Rng rng(1);
  std::vector<int> decile(10);
  const int n = 100'000;
  for (int i = 0; i < n; ++i) {
    const double u = rng.Uniform01();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    ++decile[static_cast<int>(u * 10)];
  }
  // Standard deviation of a decile's count is 95; five of them.
  for (int count : decile) EXPECT_NEAR(count, n / 10, 475);
}

TEST(Rng, ExponentialHasTheRightMomentsAndTail) {
  Rng rng(2);
  const int n = 200'000;
  double sum = 0, squares = 0;
  int over_three_means = 0;
  for (int i = 0; i < n; ++i) {
    const double x = rng.Exponential(5.0);
    ASSERT_GE(x, 0);
    ASSERT_TRUE(std::isfinite(x));
    sum += x, squares += x * x;
    over_three_means += x > 15;
  }
  const double mean = sum / n;
  EXPECT_NEAR(mean, 5.0, 0.06);
  EXPECT_NEAR(std::sqrt(squares / n - mean * mean), 5.0, 0.12);
  EXPECT_NEAR(over_three_means, n * std::exp(-3.0), 500);
}

TEST(Rng, BelowIsFlatWithoutModuloBias) {
  Rng rng(3);
  std::vector<int> seen(7);
  const int n = 70'000;
  for (int i = 0; i < n; ++i) {
    const uint64_t x = rng.Below(7);
    ASSERT_LT(x, 7u);
    ++seen[x];
  }
  for (int count : seen) EXPECT_NEAR(count, n / 7, 480);
  EXPECT_EQ(rng.Below(1), 0u);
  // With n = 3 * 2^62, taking Next() % n would give the lower third half of all draws instead of a third.
  const uint64_t big = uint64_t{3} << 62;
  int lower_third = 0;
  for (int i = 0; i < 30'000; ++i) lower_third += rng.Below(big) < big / 3;
  EXPECT_NEAR(lower_third, 10'000, 410);
}

TEST(Rng, ShufflesWithAlgorithms) {
  std::vector<int> order(100);
  for (int i = 0; i < 100; ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), Rng(4));
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  EXPECT_EQ(order.front(), 0);
  EXPECT_EQ(order.back(), 99);
}

}  // namespace
}  // namespace curtail
