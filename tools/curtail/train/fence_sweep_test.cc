// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/train/fence_sweep.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "curtail/base/rng.h"
#include "curtail/fence/limiter/limiter.h"
#include "gmock/gmock.h"

namespace curtail::tool {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

// Points of a server whose throughput at each concurrency is `curve`, with two percent of noise.
std::vector<LoadPoint> Measured(int concurrency, const std::function<double(double)>& curve, Rng& rng) {
  std::vector<LoadPoint> points;
  for (int i = 0; i < 20; ++i) {
    const double noise = 1 + 0.04 * (rng.Uniform01() - 0.5);
    points.push_back({static_cast<double>(concurrency), curve(concurrency) * noise});
  }
  return points;
}

// Runs `sweep` to its end; returns what it measured.
std::vector<int> Sweep(FenceSweep& sweep, const std::function<double(double)>& curve) {
  Rng rng(7);
  std::vector<int> steps;
  while (const std::optional<int> step = sweep.Next()) {
    EXPECT_GE(sweep.left_at_most(), 1u);
    steps.push_back(*step);
    sweep.Tell(Measured(*step, curve, rng));
  }
  EXPECT_EQ(sweep.left_at_most(), 0u);
  EXPECT_EQ(sweep.done(), steps.size());
  return steps;
}

TEST(FenceSweep, EndsSoonAfterTheKneeAndLooksBetweenTheSteps) {
  FenceSweep sweep(256, 2);
  const std::vector<int> steps = Sweep(sweep, [](double n) { return 100 * std::min(n, 12.0); });
  EXPECT_THAT(steps, ElementsAre(1, 2, 4, 8, 16, 32, 64, 1, 2, 4, 8, 16, 32, 64, 10, 12, 14, 10, 12, 14));
  ASSERT_TRUE(sweep.knee().has_value());
  EXPECT_TRUE(sweep.knee()->saturated);
  EXPECT_EQ(std::lround(sweep.knee()->lower), 12);
  EXPECT_NEAR(sweep.knee()->max_throughput, 1200, 30);
  EXPECT_EQ(sweep.tried(), 64);
}

TEST(FenceSweep, GoesToTheMostWhereTheThroughputRises) {
  FenceSweep sweep(24, 1);
  const std::vector<int> steps = Sweep(sweep, [](double n) { return 100 * n; });
  EXPECT_EQ(std::vector<int>(steps.begin(), steps.begin() + 6), (std::vector<int>{1, 2, 4, 8, 16, 24}));
  EXPECT_FALSE(sweep.knee()->saturated);
  EXPECT_EQ(std::lround(sweep.knee()->lower), 24);
}

TEST(FenceSweep, FindsThatOneRequestIsEnough) {
  FenceSweep sweep(64, 1);
  EXPECT_THAT(Sweep(sweep, [](double) { return 100; }), ElementsAre(1, 2, 4));
  EXPECT_TRUE(sweep.knee()->saturated);
  EXPECT_EQ(std::lround(sweep.knee()->lower), 1);
}

TEST(FenceSweep, ADescentLeavesTheKneeAtTheTop) {
  FenceSweep sweep(256, 1);
  Sweep(sweep, [](double n) { return n <= 8 ? 100 * n : 800 / (1 + 0.05 * (n - 8)); });
  EXPECT_TRUE(sweep.knee()->saturated);
  EXPECT_EQ(std::lround(sweep.knee()->lower), 8);
}

TEST(FenceSweep, LeavesOutWhatTheServerCannotTake) {
  FenceSweep sweep(256, 2);
  Rng rng(7);
  const auto curve = [](double n) { return 100 * n; };
  while (sweep.Next() != 8) sweep.Tell(Measured(*sweep.Next(), curve, rng));
  sweep.GiveUp();
  std::vector<int> rest;
  while (sweep.Next()) {
    rest.push_back(*sweep.Next());
    sweep.Tell(Measured(*sweep.Next(), curve, rng));
  }
  EXPECT_THAT(rest, ElementsAre(1, 2, 4, 3, 3));
  EXPECT_EQ(sweep.tried(), 4);
}

TEST(FenceSweep, OneRequestThatFailsEndsIt) {
  FenceSweep sweep(256, 2);
  sweep.GiveUp();
  EXPECT_FALSE(sweep.Next());
  EXPECT_FALSE(sweep.knee().has_value());
}

// Two requests at all times, of 10 ms each.
TEST(LoadBins, SumsRequestsUp) {
  LoadBins bins(milliseconds(102), milliseconds(302));
  for (int i = 0; i < 40; ++i) {
    bins.Ended(milliseconds(10 * i), milliseconds(10), true);
    bins.Ended(milliseconds(10 * i + 5), milliseconds(10), true);
    bins.Ended(milliseconds(10 * i), std::chrono::seconds(1),
               false);  // failed at once, and counts as the timeout
  }
  const std::vector<LoadPoint> points = bins.Points();
  ASSERT_EQ(points.size(), 4u) << "ten answers a bin, four bins";
  for (const LoadPoint& point : points) {
    EXPECT_NEAR(point.concurrency, 2, 1e-9);
    EXPECT_NEAR(point.throughput, 200, 1e-9);
  }
}

TEST(LoadBins, AddsBinsUpWhereAnswersAreFew) {
  LoadBins bins(Nanos(0), milliseconds(1000));
  for (int i = 0; i < 25; ++i) bins.Ended(milliseconds(40 * i), milliseconds(40), true);
  const std::vector<LoadPoint> points = bins.Points();
  ASSERT_EQ(points.size(), 2u) << "each of ten answers or more";
  EXPECT_NEAR(points[0].concurrency, 1, 1e-9);
  EXPECT_NEAR(points[0].throughput, 25, 3);
}

TEST(LoadBins, FailuresAreNoAnswers) {
  LoadBins bins(Nanos(0), milliseconds(200));
  for (int i = 0; i < 200; ++i) bins.Ended(milliseconds(i), milliseconds(1), false);
  EXPECT_TRUE(bins.Points().empty());
  bins.Ended(milliseconds(150), std::chrono::hours(1), true);  // far beyond the bins
  bins.Ended(milliseconds(500), milliseconds(1), true);
  EXPECT_TRUE(bins.Points().empty());
}

}  // namespace
}  // namespace curtail::tool
