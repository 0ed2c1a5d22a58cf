// SPDX-License-Identifier: Apache-2.0
//
// The rules of the judge on made-up rounds, and how often it errs, by simulation.
#include "tools/curtail/compare/policy_judge.h"

#include <cmath>
#include <functional>

#include "curtail/base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/curtail/compare/policy_testing.h"

namespace curtail::tool {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// Two policies with one cell, of these p99 by round.
PolicyComparison OneCell(const std::vector<double>& first_us, const std::vector<double>& second_us) {
  return BareComparison(2, static_cast<int>(first_us.size()), 1, [&](size_t policy, int round, size_t) {
    return (policy == 0 ? first_us : second_us)[static_cast<size_t>(round)];
  });
}

Finding FindingOf(const std::vector<double>& first_us, const std::vector<double>& second_us) {
  const PolicyComparison c = OneCell(first_us, second_us);
  const Finding finding = JudgePair(c, 0, 1).overall.finding, reverse = JudgePair(c, 1, 0).overall.finding;
  EXPECT_EQ(finding == Finding::kWorse, reverse == Finding::kBetter);
  EXPECT_EQ(finding == Finding::kBetter, reverse == Finding::kWorse);
  EXPECT_EQ(finding == Finding::kLevel, reverse == Finding::kLevel);
  return finding;
}

TEST(Judge, TellsWhatLastsOverTheRounds) {
  const std::vector<double> thousands(5, 1000);
  EXPECT_EQ(FindingOf({1100, 1200, 1100, 1200, 1100}, thousands), Finding::kWorse);
  EXPECT_EQ(FindingOf(thousands, {1100, 1200, 1100, 1200, 1100}), Finding::kBetter);
  EXPECT_EQ(FindingOf({1100, 1900, 700, 1200, 1000}, thousands), Finding::kCannotTell);
  EXPECT_EQ(FindingOf({1010, 990, 1020, 980, 1000}, thousands), Finding::kLevel);
  EXPECT_EQ(FindingOf(thousands, thousands), Finding::kLevel);
}

TEST(Judge, GivesNoVerdictFromFewRounds) {
  EXPECT_EQ(FindingOf({9000, 9100, 9200, 9100}, {10, 10, 10, 10}), Finding::kTooFew);
  EXPECT_EQ(FindingOf({9000}, {10}), Finding::kTooFew);
  const Judgement none = JudgePair(OneCell({}, {}), 0, 1).overall;
  EXPECT_EQ(none.finding, Finding::kTooFew);
  EXPECT_EQ(none.rounds, 0u);
  EXPECT_FALSE(none.interval);
}

TEST(Judge, IsPairedByRound) {
  // Rounds differ by far more than policies do.
  const PolicyComparison c = OneCell({1100, 11'000, 110, 1.1, 1100}, {1000, 10'000, 100, 1, 1000});
  const Judgement overall = JudgePair(c, 0, 1).overall;
  EXPECT_EQ(overall.finding, Finding::kWorse);
  EXPECT_NEAR(overall.ratio, 1.1, 1e-9);
  EXPECT_NEAR(overall.interval->low, 1.1, 1e-9);
}

TEST(Judge, HasTheGeometricMeanAndItsInterval) {
  const Judgement overall =
      JudgePair(OneCell({2000, 1000, 4000, 2000, 2000}, {1000, 1000, 1000, 1000, 1000}), 0, 1).overall;
  EXPECT_NEAR(overall.ratio, 2, 1e-9);
  // Logarithms of mean ln 2 and standard deviation ln 2 / sqrt 2; t is 2.776 for four degrees of freedom.
  const double half = 2.776 * std::log(2) / std::sqrt(10);
  EXPECT_NEAR(std::log(overall.interval->high / 2), half, 1e-3);
  EXPECT_NEAR(std::log(2 / overall.interval->low), half, 1e-3);
}

TEST(Judge, MayGoByAnotherLatency) {
  PolicyComparison c = OneCell({1000, 1000, 1000, 1000, 1000}, {1000, 1000, 1000, 1000, 1000});
  for (PolicyRun& run : c.runs) run.phases[0].p50_us = run.policy == c.policies[0] ? 500 : 1000;
  const Judgement judgement = JudgeBy([](const PhaseResult& result) { return result.p50_us; }, c, 0, 1);
  EXPECT_EQ(judgement.finding, Finding::kBetter);
  EXPECT_EQ(TimesText(judgement), "0.50 (95 %: 0.50 to 0.50) times");
  EXPECT_EQ(TimesText({.ratio = 0.5, .rounds = 4}), "0.50 times");
  EXPECT_EQ(JudgeBy([](const PhaseResult&) { return 0.0; }, c, 0, 1).finding, Finding::kTooFew);
}

TEST(Judge, LeavesVoidRoundsOut) {
  const PolicyComparison c = OneCell({1100, 1200, 1100, -1, 1100, 1200}, {1000, 1000, 1000, 5, 1000, 1000});
  const PairJudgement pair = JudgePair(c, 0, 1);
  EXPECT_EQ(pair.overall.finding, Finding::kWorse);
  EXPECT_EQ(pair.overall.rounds, 5u);
  EXPECT_EQ(pair.void_rounds, 1u);
  EXPECT_EQ(FindingOf({1100, 1200, 1100, -1, 1100}, {1000, 1000, 1000, 5, 1000}), Finding::kTooFew);
}

TEST(Judge, ARoundCountsOverallIfItIsValidUnderEveryScenario) {
  PolicyComparison c =
      BareComparison(2, 6, 1, [](size_t policy, int, size_t) { return policy == 0 ? 2 : 1; });
  c.scenarios.push_back(c.scenarios.front());
  for (const PolicyRun& run : std::vector<PolicyRun>(c.runs)) {
    if (run.round == 3) continue;
    c.runs.push_back(run);
    c.runs.back().scenario = 1;
  }
  const PairJudgement pair = JudgePair(c, 0, 1);
  EXPECT_EQ(pair.overall.rounds, 5u);
  EXPECT_EQ(pair.At(0, 0).rounds, 6u);
  EXPECT_EQ(pair.At(1, 0).rounds, 5u);
}

TEST(Judge, TheSameConfigGetsNoVerdictAndCountsAsEqual) {
  PolicyComparison c =
      BareComparison(2, 5, 4, [](size_t policy, int, size_t) { return policy == 0 ? 16 : 1; });
  for (PolicyRun& run : c.runs) {
    for (const size_t phase : {1, 2, 3}) run.phases[phase].config = "FIB1";
  }
  PairJudgement pair = JudgePair(c, 0, 1);
  EXPECT_EQ(pair.At(0, 0).finding, Finding::kWorse);
  EXPECT_EQ(pair.At(0, 1).finding, Finding::kSameConfig);
  EXPECT_EQ(pair.overall.finding, Finding::kWorse);
  EXPECT_NEAR(pair.overall.ratio, 2, 1e-9) << "the fourth root";
  for (PolicyRun& run : c.runs) run.phases[0].config = "FIB1";
  pair = JudgePair(c, 0, 1);
  EXPECT_EQ(pair.overall.finding, Finding::kSameConfig);
  EXPECT_THAT(Unsettled(c), IsEmpty());
  for (PolicyRun& run : c.runs) run.phases[0].config_share = run.policy == "policy-0" ? 0.7 : 1;
  EXPECT_EQ(JudgePair(c, 0, 1).overall.finding, Finding::kWorse) << "seven tenths of the time only";
  for (PolicyRun& run : c.runs) run.phases[0].config = "";
  EXPECT_EQ(JudgePair(c, 0, 1).At(0, 0).finding, Finding::kWorse) << "the configs are not known";
}

TEST(Judge, CellsAreCorrectedForTheirNumber) {
  const auto first_cell = [](size_t phases, size_t pairs = 1) {
    const PolicyComparison c = BareComparison(2, 5, phases, [](size_t policy, int round, size_t phase) {
      if (policy == 1) return 1000.0;
      if (phase > 0) return round % 2 == 0 ? 1100.0 : 900.0;
      return 1100.0 + 200 * (round % 3);
    });
    return JudgePair(c, 0, 1, pairs).At(0, 0);
  };
  EXPECT_EQ(first_cell(1).finding, Finding::kWorse);
  EXPECT_LT(first_cell(1).p, 0.05);
  EXPECT_EQ(first_cell(1, 20).finding, Finding::kCannotTell) << "picked among 20 pairs";
  EXPECT_EQ(first_cell(20).finding, Finding::kCannotTell) << "p is below 0.05, but not below 0.05 / 20";
  EXPECT_GT(first_cell(20).interval->low, 1) << "an interval is for its cell alone";
}

TEST(Judge, UnsettledSaysWhyMoreRoundsAreNeeded) {
  EXPECT_THAT(Unsettled(OneCell({2000, -1, 2000}, {1000, 1, 1000})),
              testing::StrEq("policy-0 against policy-1: 2 of the 5 rounds that a verdict takes, 1 void"));
  EXPECT_THAT(
      Unsettled(OneCell({1100, 1900, 700, 1200, 1000}, std::vector<double>(5, 1000))),
      testing::ContainsRegex("policy-0 against policy-1: 1\\.12 times \\(0\\.7. to 1\\..*\\), cannot tell"));
  EXPECT_THAT(Unsettled(OneCell({1100, 1100, 1100, 1100, 1101}, std::vector<double>(5, 1000))), IsEmpty());
  const PolicyComparison many = BareComparison(8, 1, 1, [](size_t, int, size_t) { return 1; });
  EXPECT_THAT(Unsettled(many), HasSubstr("; 4 more"));
}

TEST(Judge, LooksShareTheChanceOfAFalseVerdict) {
  EXPECT_DOUBLE_EQ(LookSignificance(1), 0.05);
  EXPECT_NEAR(LookSignificance(8), 0.0125, 1e-9);
}

// --- How often it errs: `curtail compare` with its defaults, round after round.
// ---------------------------------------------------------------------------------------------------------

constexpr uint64_t kSeed = 20'261'123;
constexpr int kFirstRounds = 5, kMostRounds = 12;
constexpr size_t kLoads = 11;

// Noise with tails as heavy as those of single rounds on a shared machine: a p99 is ten times as high now and then.
class Noise {
 public:
  explicit Noise(uint64_t seed) : rng_(seed) {}

  double Normal() {
    return std::sqrt(-2 * std::log(1 - rng_.Uniform01())) * std::cos(6.283185307179586 * rng_.Uniform01());
  }
  // Student's t of three degrees of freedom.
  double Heavy() {
    double squares = 0;
    for (int i = 0; i < 3; ++i) squares += std::pow(Normal(), 2);
    return Normal() / std::sqrt(squares / 3);
  }
  // Little noise, and in one of ten cells a disturbance of exp(1.5) times on average.
  double Outliers() {
    return 0.15 * Normal() + (rng_.Uniform01() < 0.1 ? -1.5 * std::log(1 - rng_.Uniform01()) : 0.0);
  }

 private:
  Rng rng_;
};

struct Outcome {
  Finding overall = Finding::kTooFew;
  bool told_a_cell = false;
};

// One comparison of two policies whose true ratio is `ratio`.
Outcome Simulate(Noise& noise, double ratio, const std::function<double(Noise&)>& of_cell) {
  std::vector<double> logs;  // a round, a policy and a load each
  for (int round = 0; round < kMostRounds; ++round) {
    const double machine = noise.Normal();
    for (size_t i = 0; i < 2 * kLoads; ++i) logs.push_back(machine + of_cell(noise));
  }
  Outcome outcome;
  for (int rounds = kFirstRounds; rounds <= kMostRounds; ++rounds) {
    PolicyComparison c = BareComparison(2, rounds, kLoads, [&](size_t policy, int round, size_t phase) {
      const size_t at = (static_cast<size_t>(round) * 2 + policy) * kLoads + phase;
      return (policy == 0 ? ratio : 1) * 1000 * std::exp(logs[at]);
    });
    c.looks = kMostRounds - kFirstRounds + 1;
    const PairJudgement pair = JudgePair(c, 0, 1);
    outcome.overall = pair.overall.finding;
    for (const CellJudgement& cell : pair.cells) {
      outcome.told_a_cell = outcome.told_a_cell || cell.judgement.finding == Finding::kBetter ||
                            cell.judgement.finding == Finding::kWorse;
    }
    if (Settled(outcome.overall)) break;
  }
  return outcome;
}

TEST(JudgeSimulation, EqualPoliciesAreToldApartInOneOfTwentyAtMost) {
  constexpr int kRuns = 1000;
  for (const auto& of_cell :
       {+[](Noise& n) { return 0.3 * n.Heavy(); }, +[](Noise& n) { return n.Outliers(); }}) {
    Noise noise(kSeed);
    int told = 0, cells = 0;
    for (int i = 0; i < kRuns; ++i) {
      const Outcome outcome = Simulate(noise, 1, of_cell);
      told += outcome.overall == Finding::kBetter || outcome.overall == Finding::kWorse ? 1 : 0;
      cells += outcome.told_a_cell ? 1 : 0;
    }
    EXPECT_LE(told, kRuns / 20) << "seed " << kSeed;
    EXPECT_LE(cells, kRuns / 20) << "of any cell; seed " << kSeed;
  }
}

TEST(JudgeSimulation, HalfAsMuchAgainIsFoundInNineOfTenAtLeast) {
  constexpr int kRuns = 200;
  for (const auto& of_cell :
       {+[](Noise& n) { return 0.3 * n.Heavy(); }, +[](Noise& n) { return n.Outliers(); }}) {
    Noise noise(kSeed);
    int found = 0;
    for (int i = 0; i < kRuns; ++i) found += Simulate(noise, 1.5, of_cell).overall == Finding::kWorse ? 1 : 0;
    EXPECT_GE(found, kRuns * 9 / 10) << "seed " << kSeed;
  }
}

}  // namespace
}  // namespace curtail::tool
