// SPDX-License-Identifier: Apache-2.0
#include "curtail/fence/limiter/knee.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "curtail/base/rng.h"

namespace curtail {
namespace {

using Curve = std::function<double(double)>;

// Normally distributed, nearly: the sum of twelve uniform numbers.
double Normal(Rng& rng) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += rng.Uniform01();
  return sum;
}

// `each` points around each concurrency up to `most`, whose throughput is off by `noise` of the curve, in random order.
std::vector<LoadPoint> Scatter(const Curve& curve, int most, int each, double noise, uint64_t seed) {
  Rng rng(seed);
  std::vector<LoadPoint> points;
  for (int i = 0; i < most * each; ++i) {
    const double concurrency = 0.6 + rng.Uniform01() * (most - 0.6);
    points.push_back({concurrency, std::max(0.0, curve(concurrency) * (1 + noise * Normal(rng)))});
  }
  return points;
}

// The universal scalability law (N. J. Gunther).
struct Usl {
  double alpha, beta;
  double operator()(double n) const { return 1000 * n / (1 + alpha * (n - 1) + beta * n * (n - 1)); }
  double best() const { return std::sqrt((1 - alpha) / beta); }
};

// Threads of a service with so many CPUs.
Curve Cpus(double cpus) {
  return [cpus](double n) { return 100 * std::min(n, cpus); };
}

TEST(Knee, NothingIsKnownOfTooFewPoints) {
  EXPECT_FALSE(EstimateKnee({}));
  const std::vector<LoadPoint> few(kKneePoints - 1, {3, 100});
  EXPECT_FALSE(EstimateKnee(few));
  const std::vector<LoadPoint> idle(100, {0, 0});
  EXPECT_FALSE(EstimateKnee(idle));
  const std::vector<LoadPoint> enough(kKneePoints, {3, 100});
  ASSERT_TRUE(EstimateKnee(enough));
  EXPECT_FALSE(EstimateKnee(enough)->saturated) << "one concurrency tells nothing of others";
}

TEST(Knee, PointsThatAreNoNumbersAreLeftOut) {
  std::vector<LoadPoint> points = Scatter(Cpus(8), 24, 40, 0, 1);
  points.insert(points.end(), 50, {std::nan(""), 1e9});
  points.insert(points.end(), 50, {INFINITY, 1e9});
  points.insert(points.end(), 50, {5, INFINITY});
  points.insert(points.end(), 50, {-5, 1e9});
  const auto knee = EstimateKnee(points);
  ASSERT_TRUE(knee);
  EXPECT_NEAR(knee->lower, 8, 1);
}

TEST(Knee, TheFullThroughputOfAServiceWithCpusIsAtTheirNumber) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    for (const double cpus : {4.0, 8.0, 16.0, 50.0}) {
      const auto knee = EstimateKnee(Scatter(Cpus(cpus), static_cast<int>(cpus) * 3, 60, 0.1, seed));
      ASSERT_TRUE(knee);
      EXPECT_TRUE(knee->saturated) << cpus << " CPUs, seed " << seed;
      EXPECT_FALSE(knee->descending) << cpus << " CPUs, seed " << seed;
      EXPECT_NEAR(knee->lower, cpus, 1 + 0.12 * cpus) << "seed " << seed;
      EXPECT_GT(knee->upper, cpus * 2) << "seed " << seed;
      EXPECT_NEAR(knee->max_throughput, 100 * cpus, 12 * cpus) << "seed " << seed;
    }
  }
}

TEST(Knee, LessConcurrencyThanTheBestReachesNineTenthsOfTheThroughput) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    for (const Usl& curve : {Usl{0.02, 0.002}, Usl{0.05, 0.005}, Usl{0.1, 0.0005}}) {
      const int most = static_cast<int>(curve.best() * 3);
      const auto knee = EstimateKnee(Scatter(curve, most, 60, 0.1, seed));
      ASSERT_TRUE(knee);
      const std::string where = "alpha " + std::to_string(curve.alpha) + ", seed " + std::to_string(seed);
      EXPECT_TRUE(knee->saturated) << where;
      EXPECT_LE(knee->lower, curve.best() * 1.05) << where;
      EXPECT_GE(knee->upper, curve.best() * 0.8) << where;
      EXPECT_GE(curve(knee->lower), 0.86 * curve(curve.best())) << where;
      EXPECT_GE(curve(knee->upper), 0.8 * curve(curve.best())) << where;
    }
  }
}

TEST(Knee, AThroughputThatFallsIsDescending) {
  const Usl curve{0.05, 0.01};  // at three times the best concurrency it has lost two fifths
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const auto knee = EstimateKnee(Scatter(curve, static_cast<int>(curve.best() * 4), 60, 0.1, seed));
    ASSERT_TRUE(knee);
    EXPECT_TRUE(knee->descending) << "seed " << seed;
    EXPECT_TRUE(knee->saturated) << "seed " << seed;
  }
}

TEST(Knee, AThroughputThatStillRisesIsNotSaturated) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    for (const double noise : {0.0, 0.05, 0.2}) {
      const auto knee = EstimateKnee(Scatter(Cpus(1000), 40, 60, noise, seed));
      ASSERT_TRUE(knee);
      EXPECT_FALSE(knee->saturated) << "noise " << noise << ", seed " << seed;
      EXPECT_FALSE(knee->descending) << "noise " << noise << ", seed " << seed;
    }
  }
}

TEST(Knee, AFlatThroughputIsSaturatedFromTheFirst) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const auto knee = EstimateKnee(Scatter([](double) { return 500.0; }, 20, 60, 0.1, seed));
    ASSERT_TRUE(knee);
    EXPECT_TRUE(knee->saturated) << "seed " << seed;
    EXPECT_LT(knee->lower, 2.1) << "seed " << seed;
    EXPECT_GT(knee->upper, 18) << "seed " << seed;
  }
}

TEST(Knee, TheUnitOfThroughputDoesNotMatter) {
  std::vector<LoadPoint> points = Scatter(Usl{0.05, 0.005}, 40, 60, 0.2, 7);
  const auto before = EstimateKnee(points);
  for (LoadPoint& point : points) point.throughput *= 1024;  // exactly
  const auto after = EstimateKnee(points);
  ASSERT_TRUE(before && after);
  EXPECT_EQ(before->lower, after->lower);
  EXPECT_EQ(before->upper, after->upper);
  EXPECT_EQ(before->saturated, after->saturated);
  EXPECT_EQ(before->max_throughput * 1024, after->max_throughput);
}

}  // namespace
}  // namespace curtail
