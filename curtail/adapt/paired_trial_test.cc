// SPDX-License-Identifier: Apache-2.0
//
// Trials between two configs on a machine that slows both down by turns.
#include "curtail/adapt/internal/paired_trial.h"

#include <cmath>
#include <cstdio>

#include "curtail/base/rng.h"
#include "gtest/gtest.h"

namespace curtail::internal {
namespace {

using Verdict = PairedTrial::Verdict;

constexpr uint64_t kSeed = 20180617;

// A machine whose slowness wanders: the factor's logarithm has a deviation of a half, and some seconds of memory. One window
// in twenty takes three times as long.
class Machine {
 public:
  explicit Machine(uint64_t seed) : rng_(seed) {}

  LatencySketch Serve(double mean_us, int requests) {
    mood_ = 0.95 * mood_ + 0.15 * std::sqrt(12) * (rng_.Uniform01() - 0.5);
    const double mean = mean_us * std::exp(mood_) * (rng_.Uniform01() < 0.05 ? 3 : 1);
    LatencySketch latencies;
    for (int i = 0; i < requests; ++i) {
      latencies.Add(Nanos(static_cast<int64_t>(rng_.Exponential(mean) * 1e3)));
    }
    return latencies;
  }

  // A whole trial of a challenger whose latencies are so many times the champion's.
  Verdict Try(double factor, double price = 1, int requests = 325) {
    PairedTrial trial(0, 1, price, 0.1, Serve(1000, requests).QuantileUs(0.99));
    Verdict verdict = Verdict::kOpen;
    for (windows_ = 0; verdict == Verdict::kOpen; ++windows_) {
      verdict = trial.Add(Serve(trial.running() == 1 ? 1000 * factor : 1000, requests));
    }
    return verdict;
  }
  int windows() const { return windows_; }

 private:
  Rng rng_;
  double mood_ = 0;
  int windows_ = 0;
};

// The share of 400 trials with this verdict.
double Share(Verdict verdict, double factor, double price = 1) {
  Machine machine(kSeed);
  int with = 0, windows = 0;
  constexpr int kTrials = 400;
  for (int i = 0; i < kTrials; ++i)
    with += machine.Try(factor, price) == verdict, windows += machine.windows();
  std::printf("%.2f times the p99, price %.1f: %.3f, %.1f windows a trial\n", factor, price,
              static_cast<double>(with) / kTrials, static_cast<double>(windows) / kTrials);
  return static_cast<double>(with) / kTrials;
}

TEST(PairedTrial, TellsConfigsApartThatTheMachineDisturbsMore) {
  std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
  EXPECT_GT(Share(Verdict::kWon, 0.6), 0.8);
  EXPECT_GT(Share(Verdict::kWon, 0.8), 0.5);
  EXPECT_LT(Share(Verdict::kWon, 1), 0.08);
  EXPECT_LT(Share(Verdict::kWon, 1.2), 0.02);
  EXPECT_GT(Share(Verdict::kLost, 1.5), 0.9);
}

TEST(PairedTrial, AChallengerPaysThePriceOfItsCpu) {
  EXPECT_LT(Share(Verdict::kWon, 0.72, 1.4), 0.08);
  EXPECT_GT(Share(Verdict::kWon, 0.5, 1.1), 0.8);
}

TEST(PairedTrial, OneTurnIsEnoughForAFarWorseOne) {
  Machine machine(kSeed);
  EXPECT_EQ(machine.Try(10), Verdict::kLost);
  EXPECT_EQ(machine.windows(), 1);
}

TEST(PairedTrial, ATurnLastsUntilItHasItsSamples) {
  Machine machine(kSeed);
  PairedTrial trial(0, 1, 1, 0.1, 4605);
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(trial.challengers_turn()) << i;
    EXPECT_EQ(trial.Add(machine.Serve(1000, 25)), Verdict::kOpen);
  }
  EXPECT_FALSE(trial.challengers_turn());
  EXPECT_EQ(trial.running(), 0u);
  trial.Add({});
  EXPECT_FALSE(trial.challengers_turn()) << "an empty window decides nothing";
}

TEST(PairedTrial, ItsRatioIsThatOfThePairs) {
  const auto of = [](double p99_us) {
    LatencySketch latencies;
    for (int i = 0; i < 100; ++i) latencies.Add(Nanos(static_cast<int64_t>(p99_us * 1e3)));
    return latencies;
  };
  PairedTrial trial(0, 1, 1.1, 0.1, 1000);
  EXPECT_EQ(trial.ratio(), std::nullopt);
  trial.Add(of(800));
  EXPECT_NEAR(trial.ratio().value(), 0.88, 0.06) << "with the price; of a turn alone";
  trial.Add(of(1000));
  EXPECT_NEAR(trial.ratio().value(), 0.88, 0.06);
  trial.Add(of(600));
  trial.Add(of(1000));
  EXPECT_NEAR(trial.ratio().value(), 1.1 * std::sqrt(0.8 * 0.6), 0.06);
}

}  // namespace
}  // namespace curtail::internal
