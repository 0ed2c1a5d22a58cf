// SPDX-License-Identifier: Apache-2.0
#include "curtail/adapt/verification.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "curtail/adapt/profile_testing.h"
#include "curtail/adapt/training.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "gmock/gmock.h"

namespace curtail {
namespace {

using testing::DoubleEq;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

using Verdict = VerificationVerdict;
using Stage = VerificationStage;

// The result of a cell: p99 in microseconds, infinite when saturated.
using World = std::function<double(const VerificationCell&)>;

Verification Start(const Profile& profile, VerificationOptions options = {},
                   const ConfigFilter& filter = nullptr) {
  absl::StatusOr<Verification> verification = Verification::Make(profile, filter, options);
  EXPECT_TRUE(verification.ok()) << verification.status();
  return *std::move(verification);
}

std::vector<VerificationCell> MeasureAll(Verification& verification, const World& world) {
  std::vector<VerificationCell> order;
  while (const std::optional<VerificationCell> next = verification.Next()) {
    const size_t left = verification.left_at_most();
    order.push_back(*next);
    const double p99_us = world(*next);
    verification.Tell(p99_us == kInfinite ? 5e6 : p99_us, p99_us == kInfinite);
    EXPECT_LT(verification.left_at_most(), left);
    EXPECT_EQ(verification.done(), order.size());
  }
  EXPECT_EQ(verification.left_at_most(), 0u);
  return order;
}

// Two configs that cross at 1000/s: SIP1 is better below, SDB1-8 above.
double TrueP99(const Config& config, double load) {
  return config == ConfigOf("SIP1") ? 400 + 0.6 * load : 900 + 0.1 * load;
}
const std::vector<double> kLoads = {50, 100, 200, 400, 800, 1600, 3200};
Profile RightProfile() {
  return MakeProfile(kLoads, {{"SIP1", 1600, [](double x) { return TrueP99(ConfigOf("SIP1"), x); }},
                              {"SDB1-8", 1e18, [](double x) { return TrueP99(ConfigOf("SDB1-8"), x); }}});
}
// The same with the names changed over.
Profile WrongProfile() {
  return MakeProfile(kLoads, {{"SDB1-8", 1e18, [](double x) { return TrueP99(ConfigOf("SIP1"), x); }},
                              {"SIP1", 1e18, [](double x) { return TrueP99(ConfigOf("SDB1-8"), x); }}});
}

double Exact(const VerificationCell& cell) { return TrueP99(cell.config, cell.load_per_s); }

uint64_t Seed() {
  const char* given = std::getenv("CURTAIL_SEED");
  return given == nullptr ? 20261122 : std::strtoull(given, nullptr, 10);
}

TEST(HeldOutLoads, LieBetweenTrainedOnes) {
  EXPECT_THAT(HeldOutLoads(RightProfile(), 6), ElementsAre(71, 140, 280, 570, 1100, 2300));
  EXPECT_THAT(HeldOutLoads(RightProfile(), 100), ElementsAre(71, 140, 280, 570, 1100, 2300));
  EXPECT_THAT(HeldOutLoads(RightProfile(), 3), ElementsAre(71, 570, 2300)) << "spread over the whole range";
  EXPECT_THAT(HeldOutLoads(RightProfile(), 1), ElementsAre(570));
  EXPECT_THAT(HeldOutLoads(RightProfile(), 0), IsEmpty());
}

TEST(HeldOutLoads, EndWhereNoConfigSustains) {
  const ConfigFilter only_sip = [](const Config& c) { return c.model.reception == Reception::kPoll; };
  EXPECT_THAT(HeldOutLoads(RightProfile(), 6, only_sip), ElementsAre(71, 140, 280, 570, 1100));
  EXPECT_THAT(HeldOutLoads(MakeProfile({100, 200}, {{"SIP1", 100, [](double) { return 1.0; }}}), 6),
              IsEmpty());
  EXPECT_THAT(HeldOutLoads(MakeProfile({100, 200}, {{"SIP1", 0, [](double) { return 1.0; }}}), 6), IsEmpty());
}

TEST(HeldOutLoads, AreNeverTrained) {
  // No number of two digits lies strictly between the first two.
  const Profile profile =
      MakeProfile({1000, 1001, 1100, 1200, 1e6}, {{"SIP1", 1e18, [](double) { return 1.0; }}});
  const std::vector<double> loads = HeldOutLoads(profile, 10);
  ASSERT_EQ(loads.size(), 4u);
  for (size_t i = 0; i < loads.size(); ++i) {
    EXPECT_GT(loads[i], profile.loads[i]);
    EXPECT_LT(loads[i], profile.loads[i + 1]);
  }
  for (bool quick : {false, true}) {
    const Profile full = MakeProfile(DefaultLoads(quick), {{"SIP1", 1e18, [](double) { return 1.0; }}});
    EXPECT_EQ(HeldOutLoads(full, 6).size(), 6u);
  }
}

TEST(Verification, RefusesWhatMakesNoSense) {
  const auto problem = [](VerificationOptions options, const ConfigFilter& filter = nullptr) {
    const absl::Status status = Verification::Make(RightProfile(), filter, options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(Message(status));
  };
  EXPECT_THAT(problem({.loads = {100}}), HasSubstr("was trained at 100/s"));
  EXPECT_THAT(problem({.loads = {90, 90}}), HasSubstr("ascend; 90/s does not"));
  EXPECT_THAT(problem({.loads = {-1}}), HasSubstr("-1/s does not"));
  EXPECT_THAT(problem({.loads = {4000}}), HasSubstr("no config sustains 4000/s"));
  EXPECT_THAT(problem({.count = 0}), HasSubstr("no two neighbouring loads"));
  EXPECT_THAT(problem({.search_repeats = 0}), HasSubstr("not 0"));
  EXPECT_THAT(problem({.duel_rounds = 4}), HasSubstr("odd"));
  EXPECT_THAT(problem({.max_loss = -0.1}), HasSubstr("negative"));
  EXPECT_THAT(problem({}, [](const Config&) { return false; }), HasSubstr("no config"));
}

TEST(Verification, SearchesInTurnsAndDuelsInAlternation) {
  Verification verification = Start(WrongProfile(), {.loads = {300}});
  const std::vector<VerificationCell> order = MeasureAll(verification, Exact);
  ASSERT_EQ(order.size(), 3u * 2 + 11u * 2) << "a search, and a lost duel that is confirmed";
  for (size_t i = 0; i < order.size(); i += 2) {
    EXPECT_EQ(order[i].stage, i < 6 ? Stage::kSearch : Stage::kDuel);
    EXPECT_EQ(order[i].round, static_cast<int>(i < 6 ? i / 2 : (i - 6) / 2));
    EXPECT_EQ(order[i].seed, order[i + 1].seed);
    EXPECT_NE(order[i].config, order[i + 1].config);
    if (i != 0 && i != 6) {
      EXPECT_NE(order[i].config, order[i - 2].config) << "another one begins";
      EXPECT_NE(order[i].seed, order[i - 2].seed);
    }
  }
}

TEST(Verification, SharesNoArrivalsWithTheTraining) {
  const Profile profile = WrongProfile();
  std::set<uint64_t> trained;
  for (uint64_t i = 0; i < 100'000; ++i) trained.insert(ArrivalsSeed(profile.seed, i));
  Verification verification = Start(profile);
  std::map<std::tuple<double, Stage, int>, std::set<uint64_t>> rounds;
  std::set<uint64_t> all;
  for (const VerificationCell& cell : MeasureAll(verification, Exact)) {
    EXPECT_FALSE(trained.contains(cell.seed));
    rounds[{cell.load_per_s, cell.stage, cell.round}].insert(cell.seed);
    all.insert(cell.seed);
  }
  for (const auto& [round, seeds] : rounds) EXPECT_EQ(seeds.size(), 1u);
  EXPECT_EQ(all.size(), rounds.size());
}

TEST(Verification, ARightProfileAgreesWithoutDuels) {
  Verification verification = Start(RightProfile());
  EXPECT_FALSE(verification.passed()) << "not before all is measured";
  for (const VerificationCell& cell : MeasureAll(verification, Exact)) {
    EXPECT_EQ(cell.stage, Stage::kSearch);
    EXPECT_TRUE(cell.load_per_s < 1600 || cell.config != ConfigOf("SIP1")) << "it does not sustain that";
  }
  ASSERT_EQ(verification.rows().size(), 6u);
  for (const VerificationRow& row : verification.rows()) {
    EXPECT_EQ(row.verdict, Verdict::kAgrees);
    EXPECT_EQ(row.chosen, ConfigOf(row.load_per_s < 1000 ? "SIP1" : "SDB1-8"));
    EXPECT_EQ(row.best, row.chosen);
    EXPECT_EQ(row.ratio, 1);
    EXPECT_DOUBLE_EQ(row.chosen_us, TrueP99(row.chosen, row.load_per_s));
    EXPECT_NEAR(row.predicted_us, row.chosen_us, 1);
  }
  EXPECT_TRUE(verification.passed());
}

TEST(Verification, OnlyTheDuelGivesTheRatio) {
  // SDB1-8 looks five times as good in the search, and is 4 % better in the duel.
  Verification verification = Start(RightProfile(), {.loads = {90}});
  MeasureAll(verification, [](const VerificationCell& cell) {
    if (cell.config == ConfigOf("SIP1")) return 500.0;
    return cell.stage == Stage::kSearch ? 100.0 : 480.0;
  });
  ASSERT_EQ(verification.rows().size(), 1u);
  const VerificationRow& row = verification.rows()[0];
  EXPECT_EQ(row.verdict, Verdict::kWithin);
  EXPECT_EQ(row.best, ConfigOf("SDB1-8"));
  EXPECT_DOUBLE_EQ(row.ratio, 500.0 / 480);
  EXPECT_EQ(row.best_us, 480);
  EXPECT_EQ(row.rounds, 5);
  EXPECT_DOUBLE_EQ(row.interval.confidence, 0.9375);
}

// The ratios of the duel's rounds; SDB1-8 is the best in the search.
VerificationRow RowOf(const std::vector<double>& ratios, double max_loss = 0.10) {
  Verification verification = Start(RightProfile(), {.loads = {90}, .max_loss = max_loss});
  MeasureAll(verification, [&](const VerificationCell& cell) {
    if (cell.config == ConfigOf("SDB1-8")) return cell.stage == Stage::kSearch ? 100.0 : 1000.0;
    return cell.stage == Stage::kSearch ? 500.0 : 1000 * ratios.at(static_cast<size_t>(cell.round));
  });
  return verification.rows()[0];
}

TEST(Verification, JudgesByMedianAndInterval) {
  EXPECT_EQ(RowOf({1.3, 1.2, 1.0, 1.09, 0.5}).verdict, Verdict::kWithin);
  EXPECT_EQ(RowOf({1.3, 1.2, 1.11, 1.2, 0.99}).verdict, Verdict::kNoise);
  EXPECT_EQ(RowOf({1.3, 1.2, 1.11, 1.2, 0.99}, 0.25).verdict, Verdict::kWithin);
  const VerificationRow row = RowOf({1.2, 1.3, 1.11, 1.2, 1.05, 2, 3, 1.4, 1.5, 1.6, 1.7});
  EXPECT_EQ(row.verdict, Verdict::kLoses);
  EXPECT_EQ(row.rounds, 11);
  EXPECT_DOUBLE_EQ(row.ratio, 1.4);
  EXPECT_THAT(row.interval.low, DoubleEq(1.11)) << "the second lowest and the second highest of eleven";
  EXPECT_THAT(row.interval.high, DoubleEq(2));
  EXPECT_DOUBLE_EQ(row.interval.confidence, 1 - 2 * 12 / 2048.0);
}

TEST(Verification, ALossHasToBeConfirmed) {
  EXPECT_EQ(RowOf({1.2, 1.2, 1.2, 1.2, 1.2, 1, 1, 1, 1, 1, 1}).verdict, Verdict::kWithin);
  EXPECT_EQ(RowOf({1.2, 1.2, 1.2, 1.2, 1.2, 1.2, 1, 1, 1, 1, 1}).verdict, Verdict::kNoise);
}

TEST(Verification, ChosenConfigThatDoesNotKeepUpLoses) {
  EXPECT_EQ(RowOf({kInfinite, 1, 1, 1, kInfinite}).verdict, Verdict::kWithin);
  const VerificationRow row =
      RowOf({kInfinite, 0.1, kInfinite, 1, kInfinite, 1, kInfinite, 1, kInfinite, 1, kInfinite});
  EXPECT_EQ(row.verdict, Verdict::kLoses);
  EXPECT_EQ(row.chosen_us, kInfinite);
  // Whatever the other one does.
  Verification verification = Start(RightProfile(), {.loads = {90}});
  MeasureAll(verification, [](const VerificationCell& cell) {
    return cell.stage == Stage::kDuel ? kInfinite : cell.config == ConfigOf("SIP1") ? 500.0 : 100.0;
  });
  EXPECT_EQ(verification.rows()[0].verdict, Verdict::kLoses);
  EXPECT_EQ(verification.rows()[0].ratio, 1);
}

TEST(Verification, WhereNoConfigKeepsUpNothingIsJudged) {
  Verification verification = Start(RightProfile(), {.loads = {90, 300}});
  MeasureAll(verification,
             [](const VerificationCell& c) { return c.load_per_s > 100 ? kInfinite : Exact(c); });
  EXPECT_EQ(verification.rows()[0].verdict, Verdict::kAgrees);
  EXPECT_EQ(verification.rows()[1].verdict, Verdict::kBeyond);
  EXPECT_TRUE(verification.passed());
  Verification nothing = Start(RightProfile(), {.loads = {90, 300}});
  MeasureAll(nothing, [](const VerificationCell&) { return std::nan(""); });
  EXPECT_THAT(nothing.rows(), Each(testing::Field(&VerificationRow::verdict, Verdict::kBeyond)));
  EXPECT_FALSE(nothing.passed()) << "nothing was verified";
}

// A world in which each p99 has a deviation of a tenth.
TEST(Verification, NoisyWorldTellsARightProfileFromAWrongOne) {
  const uint64_t seed = Seed();
  std::cout << "CURTAIL_SEED=" << seed << "\n";
  Rng rng(seed);
  const World noisy = [&](const VerificationCell& cell) { return Exact(cell) * std::exp(0.1 * Normal(rng)); };
  int right = 0, wrong = 0;
  for (int i = 0; i < 100; ++i) {
    Verification verification = Start(RightProfile());
    MeasureAll(verification, noisy);
    right += verification.passed();
    Verification against = Start(WrongProfile());
    MeasureAll(against, noisy);
    wrong += against.passed();
  }
  EXPECT_GE(right, 99);
  EXPECT_EQ(wrong, 0);
}

// Twelve configs that are the same. Whichever the profile's own noise made it choose, another one will look
// better in the search.
TEST(Verification, WinnersCurseRefusesNoProfile) {
  const uint64_t seed = Seed();
  std::cout << "CURTAIL_SEED=" << seed << "\n";
  Rng rng(seed);
  const auto sample = [&] { return 1000 * std::exp(0.15 * Normal(rng)); };
  int passed = 0, refused_by_search = 0, duels = 0;
  for (int i = 0; i < 200; ++i) {
    Profile profile = MakeProfile(kLoads, {});
    for (int config = 1; config <= 12; ++config) {
      for (double load : kLoads) {
        for (int repeat = 0; repeat < 3; ++repeat) {
          const double p99_us = sample();
          profile.cells.push_back(
              {ConfigOf(Join("SDB1-", config)), load, repeat, p99_us / 3, p99_us, p99_us, load});
        }
      }
    }
    Summarize(profile);
    Verification verification = Start(profile);
    std::map<double, std::map<std::string, std::vector<double>>> search;
    MeasureAll(verification, [&](const VerificationCell& cell) {
      const double p99_us = sample();
      if (cell.stage == Stage::kSearch) search[cell.load_per_s][cell.config.ToString()].push_back(p99_us);
      return p99_us;
    });
    passed += verification.passed();
    bool lost = false;
    for (const VerificationRow& row : verification.rows()) {
      duels += row.rounds > 0;
      const auto median = [&](const Config& config) {
        std::vector<double>& found = search[row.load_per_s][config.ToString()];
        std::sort(found.begin(), found.end());
        return found[1];
      };
      lost |= median(row.chosen) > 1.1 * median(row.best);
    }
    refused_by_search += lost;
  }
  std::cout << passed << " of 200 passed after " << duels << " duels\n";
  EXPECT_GE(passed, 190);
  EXPECT_GE(refused_by_search, 150) << "without a second stage most would have been refused";
  EXPECT_GE(duels, 200 * 4);
}

TEST(Verification, PrintsATable) {
  Verification verification = Start(WrongProfile(), {.loads = {71, 300}});
  MeasureAll(verification, [](const VerificationCell& c) {
    return c.load_per_s > 100 && c.config == ConfigOf("SDB1-8") ? kInfinite : Exact(c);
  });
  EXPECT_EQ(
      VerificationText(verification.rows()),
      "   load/s  chosen       predicted     p99 ms  best            p99 ms  ratio  between       verdict\n"
      "       71  SDB1-8            0.44       0.91  SIP1              0.44   2.05  2.05 to 2.05  loses\n"
      "      300  SDB1-8            0.58  saturated  SIP1              0.58    inf  inf to inf    loses\n");
}

}  // namespace
}  // namespace curtail
