// SPDX-License-Identifier: Apache-2.0
#include "curtail/adapt/envelope.h"

#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>

#include "curtail/adapt/profile_testing.h"
#include "curtail/base/rng.h"
#include "gtest/gtest.h"

namespace curtail {
namespace {

Envelope Make(const Profile& profile, ConfigFilter filter = nullptr, bool merge = true) {
  absl::StatusOr<Envelope> envelope = Envelope::Make(profile, filter, {.merge_within_noise = merge});
  EXPECT_TRUE(envelope.ok()) << envelope.status();
  return *std::move(envelope);
}

// "SIP1 500 SDB1-8": configs, and the loads at which one takes over from the other.
std::string Shown(const Envelope& envelope) {
  std::string text;
  for (const Envelope::Piece& piece : envelope.pieces()) {
    char from[32];
    std::snprintf(from, sizeof from, " %.6g ", piece.from_per_s);
    if (!text.empty()) text += from;
    text += envelope.configs()[piece.config].ToString();
  }
  return text;
}

double Flat1000(double) { return 1000; }

std::string ShownAt(double weight, const Profile& profile) {
  return Shown(*Envelope::Make(profile, nullptr, {.cpu_weight = weight}));
}

TEST(Envelope, TheSpreadOfThreeRepeatsIsTakenForHalfAsMuchAgain) {
  const auto shown = [](double other_us) {
    return Shown(
        Make(MakeProfile({100, 1000, 4000}, {{"SIP1", 1e18, [](double) { return 1000.0; }, 0.1, 500},
                                             {"SIB1", 1e18, [=](double) { return other_us; }, 0.1, 300}})));
  };
  // 1.495 x 1.4826 x a tenth: a difference of 22 % is noise, and the p50 decides.
  EXPECT_EQ(shown(1200), "SIB1");
  EXPECT_EQ(shown(1300), "SIP1");
}

TEST(Envelope, ALuckyOrUnluckyCellCountsAsItsNeighboursSay) {
  // Three repeats with a deviation of a third; one of SIB1's loads had luck, one of FIB1's had none.
  const auto shown = [](double lucky, double unlucky) {
    return Shown(
        Make(MakeProfile({100, 200, 400, 800, 1600},
                         {{"FIB1", 1e18, [=](double x) { return x == 400 ? unlucky : 1000.0; }, 0.2},
                          {"SIB1", 1e18, [=](double x) { return x == 800 ? lucky : 1500.0; }, 0.2}})));
  };
  EXPECT_EQ(shown(1000, 1500), "FIB1");
  EXPECT_NE(shown(100, 1500), "FIB1") << "no noise explains a tenth";
  EXPECT_NE(shown(1500, 9000), "FIB1") << "nor nine times as much";
}

TEST(Envelope, AWildConfigIsNotGoodEnoughForBeingWild) {
  Profile profile = MakeProfile({100, 200, 400, 800}, {{"SIB1", 1e18, Flat1000, 0.1, 500, 0.1},
                                                       {"SDB1-50", 1e18, Flat1000, 0.1, 500, 0.1}});
  // At the highest load SIB1 takes 3, 30 and 78 ms.
  double p99_us = 3000;
  for (ProfileCell& cell : profile.cells) {
    if (cell.config != ConfigOf("SIB1") || cell.load_per_s != 800) continue;
    cell.p99_us = std::exchange(p99_us, p99_us == 3000 ? 30000 : 78000);
  }
  Summarize(profile);
  EXPECT_EQ(ShownAt(0.1, profile), "SDB1-50");
}

TEST(Envelope, SmoothingLeavesARisingLineAndItsKneeAsTheyAre) {
  const std::vector<double> loads = {100, 200, 400, 800, 1600, 3200};
  const auto knee = [](double x) { return x < 1000 ? 1000 + x / 10 : x * 5; };
  const Envelope envelope = Make(MakeProfile(loads, {{"SIP1", 1e18, knee, 0.02}}));
  for (size_t i = 1; i < loads.size(); ++i)
    EXPECT_NEAR(*envelope.Predict(ConfigOf("SIP1"), loads[i]), knee(loads[i]), 1e-3 * knee(loads[i]))
        << loads[i];
}

TEST(Envelope, SwitchesExactlyWhereTheLinesCross) {
  const Profile profile =
      MakeProfile({100, 1000}, {{"SIP1", 1e18, [](double x) { return 100 + x; }},
                                {"SDB1-8", 1e18, [](double x) { return 400 + 0.5 * x; }}});
  const Envelope envelope = Make(profile);
  EXPECT_EQ(Shown(envelope), "SIP1 600 SDB1-8");
  EXPECT_EQ(envelope.Best(0).ToString(), "SIP1");
  EXPECT_EQ(envelope.Best(599.9).ToString(), "SIP1");
  EXPECT_EQ(envelope.Best(600.1).ToString(), "SDB1-8");
  EXPECT_EQ(envelope.Best(1e9).ToString(), "SDB1-8");
}

TEST(Envelope, PredictsOnTheLinesBetweenTheLoads) {
  const Profile profile =
      MakeProfile({100, 200, 400}, {{"SIP1", 250, [](double x) { return x == 100 ? 50.0 : 150.0; }},
                                    {"SDB1-8", 1e18, [](double x) { return 300 - x / 4; }}});
  const Envelope envelope = Make(profile);
  const Config sip = ConfigOf("SIP1"), sdb = ConfigOf("SDB1-8");
  EXPECT_DOUBLE_EQ(*envelope.Predict(sip, 10), 50) << "constant below the lowest load";
  EXPECT_DOUBLE_EQ(*envelope.Predict(sip, 100), 50);
  EXPECT_DOUBLE_EQ(*envelope.Predict(sip, 150), 100);
  EXPECT_DOUBLE_EQ(*envelope.Predict(sip, 200), 150);
  EXPECT_EQ(*envelope.Predict(sip, 200.001), INFINITY) << "it sustained 200 and not 400";
  EXPECT_EQ(*envelope.Sustains(sip), 200);
  EXPECT_DOUBLE_EQ(*envelope.Predict(sdb, 400), 200);
  EXPECT_DOUBLE_EQ(*envelope.Predict(sdb, 800), 200) << "a falling line does not go on";
  EXPECT_EQ(*envelope.Sustains(sdb), INFINITY);
  EXPECT_FALSE(envelope.Predict(ConfigOf("FIP1"), 100).has_value());
}

TEST(Envelope, NeverChoosesWhatDoesNotSustainTheLoad) {
  const Profile profile = MakeProfile({100, 200, 400, 800}, {{"SIP1", 250, [](double) { return 10.0; }},
                                                             {"SDB1-4", 500, [](double) { return 20.0; }},
                                                             {"FIB1", 50, [](double) { return 1.0; }}});
  const Envelope envelope = Make(profile);
  EXPECT_EQ(Shown(envelope), "SIP1 200 SDB1-4");
  EXPECT_EQ(envelope.Best(200).ToString(), "SDB1-4") << "the piece begins at its load";
  EXPECT_EQ(envelope.Best(5000).ToString(), "SDB1-4") << "none sustains it: the one that sustained most";
  EXPECT_EQ(*envelope.Sustains(ConfigOf("FIB1")), 0);
}

TEST(Envelope, MatchesAnExhaustiveSearch) {
  constexpr uint64_t kSeed = 7;
  std::printf("seed %d\n", static_cast<int>(kSeed));
  Rng rng(kSeed);
  for (int round = 0; round < 200; ++round) {
    std::vector<TestCurve> curves;
    for (const char* config : {"SIB1", "SIP1", "SDB1-4", "SDB1-8", "SDP1-4", "FIP1"}) {
      std::vector<double> values;
      for (int i = 0; i < 6; ++i) values.push_back(100 + static_cast<double>(rng.Below(100)));
      const double limit = rng.Below(3) == 0 ? 1e18 : static_cast<double>(rng.Below(7)) * 100 + 50;
      curves.push_back(
          {config, limit, [values](double x) { return values[static_cast<size_t>(x / 100) - 1]; }});
    }
    const Envelope envelope = Make(MakeProfile({100, 200, 300, 400, 500, 600}, curves), nullptr, false);
    for (int i = 0; i < 200; ++i) {
      const double load = rng.Uniform01() * 600;
      double best = INFINITY;
      for (const Config& config : envelope.configs()) best = std::min(best, *envelope.Predict(config, load));
      const double chosen = *envelope.Predict(envelope.Best(load), load);
      ASSERT_TRUE(chosen == best || chosen <= best + 1e-3) << "round " << round << " load " << load;
    }
  }
}

TEST(Envelope, AdvantagesWithinTheSpreadMakeNoPieces) {
  // The second is better by 2 % in the middle, and the repeats differ by 5 %.
  const auto curves = [](double noise, double depth) {
    return std::vector<TestCurve>{
        {"SIP1", 1e18, [](double) { return 100.0; }, noise},
        {"SIB1", 1e18, [depth](double x) { return x == 300 ? 100 - depth : 101; }, noise}};
  };
  const std::vector<double> loads = {100, 200, 300, 400, 500};
  EXPECT_EQ(Shown(Make(MakeProfile(loads, curves(0.05, 2)))), "SIP1");
  EXPECT_EQ(Make(MakeProfile(loads, curves(0.05, 2)), nullptr, false).pieces().size(), 3u);
  EXPECT_EQ(Make(MakeProfile(loads, curves(0.001, 2))).pieces().size(), 3u) << "more than the spread";
  EXPECT_EQ(Shown(Make(MakeProfile(loads, curves(0.05, 30)))), "SIB1")
      << "much better once, and never much worse";
}

TEST(Envelope, AmongConfigsThatThePercentileCannotTellApartTheMedianDecides) {
  // SIP1 and SDB1-8 differ by 5 % with a spread of 15 %, up to where SIP1 gives up; SIB1 is as good by its p50, and
  // twice as bad by its p99.
  const auto flat = [](double us) { return [us](double) { return us; }; };
  const Profile profile = MakeProfile({100, 500, 1000, 2000}, {{"SDB1-8", 1e18, flat(1000), 0.1, 800},
                                                               {"SIP1", 1000, flat(1050), 0.1, 600},
                                                               {"SIB1", 1e18, flat(2000), 0.1, 600}});
  const Envelope envelope = *Envelope::Make(profile);
  EXPECT_EQ(envelope.Best(100).ToString(), "SIP1");
  EXPECT_EQ(envelope.Best(999).ToString(), "SIP1");
  EXPECT_EQ(envelope.Best(1500).ToString(), "SDB1-8");
  EXPECT_EQ(envelope.PredictMedian(ConfigOf("SIP1"), 300), 600);
  EXPECT_EQ(envelope.PredictMedian(ConfigOf("SIP1"), 1001), std::numeric_limits<double>::infinity());
  // A p50 that is lower by 4 % only is no reason for another piece.
  const Profile close = MakeProfile(
      {100, 500, 1000, 2000}, {{"SDB1-8", 1e18, flat(1000), 0.1, 800}, {"SIP1", 1000, flat(1050), 0.1, 770}});
  EXPECT_EQ(Envelope::Make(close)->pieces().size(), 1u);
  // The exact envelope knows the p99 alone.
  const Envelope exact = *Envelope::Make(profile, nullptr, {.merge_within_noise = false});
  EXPECT_EQ(exact.Best(100).ToString(), "SDB1-8");
}

TEST(Envelope, AGainThatIsNoneOrSmallerThanTheWeightDoesNotPayForAPoller) {
  const auto with = [](double poller_us, double noise) {
    return MakeProfile({100, 1000}, {{"SIP1", 1e18, [=](double) { return poller_us; }, noise, 500, 0.96},
                                     {"FIB1", 1e18, Flat1000, noise, 700, 0.13}});
  };
  EXPECT_EQ(ShownAt(0.1, with(950, 0)), "FIB1") << "6 % is less than the weight";
  EXPECT_EQ(ShownAt(0.05, with(950, 0)), "SIP1");
  EXPECT_EQ(ShownAt(0, with(950, 0)), "SIP1");
  EXPECT_EQ(ShownAt(0.1, with(800, 0)), "SIP1") << "25 %";
  EXPECT_EQ(ShownAt(0.3, with(800, 0)), "FIB1");
  EXPECT_EQ(ShownAt(0.05, with(800, 0.2)), "FIB1") << "the repeats do not tell the two apart";
  EXPECT_EQ(ShownAt(0, with(800, 0.2)), "SIP1") << "latency alone: the lower p50";
}

TEST(Envelope, ACrossingOfOthersDoesNotPayForAPoller) {
  const auto with = [](double share) {  // of the lower one's p99 at both loads
    return MakeProfile(
        {100, 1000},
        {{"SIP1", 1e18, [=](double x) { return share * (x == 100 ? 1000 : 2200); }, 0, 500, 0.96},
         {"FIB1", 1e18, [](double x) { return x == 100 ? 1000.0 : 5000.0; }, 0, 500, 0.13},
         {"SDB1-16", 1e18, [](double x) { return x == 100 ? 2000.0 : 2200.0; }, 0, 500, 0.13}});
  };
  const auto blocks = [](const Config& config) { return config.model.reception == Reception::kBlock; };
  EXPECT_EQ(Shown(Make(with(0.95), blocks)), "FIB1 336.842 SDB1-16");
  EXPECT_EQ(Shown(Make(with(0.95))), "FIB1 336.842 SDB1-16") << "the poller does not hide the crossing";
  EXPECT_EQ(ShownAt(0.1, with(0.5)), "SIP1") << "which gains at both ends";
}

// However little the CPU weighs; without weight the p50 decides.
TEST(Envelope, OfEqualConfigsTheCheapestRuns) {
  const auto with = [](double sdb_cores, double fib_cores) {
    return MakeProfile({100, 1000}, {{"SDB1-8", 1e18, Flat1000, 0.1, 400, sdb_cores},
                                     {"FIB1", 1e18, Flat1000, 0.1, 700, fib_cores}});
  };
  for (const double weight : {0.01, 0.1, 1.0}) {
    EXPECT_EQ(ShownAt(weight, with(0.6, 0.2)), "FIB1") << weight;
    EXPECT_EQ(ShownAt(weight, with(0.2, 0.6)), "SDB1-8") << weight;
  }
  EXPECT_EQ(ShownAt(0, with(0.6, 0.2)), "SDB1-8");
}

TEST(Envelope, ConfigsOfAboutTheSameCpuAreEquallyCheap) {
  const auto with = [](double low, double high) {
    return MakeProfile({100, 1000}, {{"SDB1-8", 1e18, Flat1000, 0, 500, low},
                                     {"FIB1", 1e18, [](double) { return 950.0; }, 0, 500, high}});
  };
  EXPECT_EQ(ShownAt(0.1, with(0.5, 0.59)), "FIB1") << "a fifth more";
  EXPECT_EQ(ShownAt(0.1, with(0.5, 0.61)), "SDB1-8");
  EXPECT_EQ(ShownAt(0.1, with(0.02, 0.06)), "FIB1") << "a twentieth of a CPU";
  EXPECT_EQ(ShownAt(0.1, with(0.02, 0.08)), "SDB1-8");
}

TEST(Envelope, WithoutTheCpuOfEachCellCostsDoNotCount) {
  const Profile profile = MakeProfile(
      {100, 1000}, {{"SIP1", 1e18, [](double) { return 950.0; }, 0, 500, 0.96}, {"FIB1", 1e18, Flat1000}});
  EXPECT_EQ(ShownAt(10, profile), "SIP1");
  const Envelope envelope = *Envelope::Make(profile);
  EXPECT_FALSE(envelope.PredictCores(ConfigOf("SIP1"), 100).has_value());
}

TEST(Envelope, PredictsTheCpuOnTheLinesUpToTheLimit) {
  Profile profile =
      MakeProfile({100, 300}, {{"SIP1", 200, Flat1000, 0, 1, 0.9}, {"FIB1", 1e18, Flat1000, 0, 1, 0.1}});
  for (ProfileCell& cell : profile.cells) {
    if (cell.load_per_s == 300) *cell.cpu_cores += 0.2;
  }
  const Envelope envelope = *Envelope::Make(profile);
  EXPECT_DOUBLE_EQ(*envelope.PredictCores(ConfigOf("FIB1"), 50), 0.1);
  EXPECT_DOUBLE_EQ(*envelope.PredictCores(ConfigOf("FIB1"), 200), 0.2);
  EXPECT_DOUBLE_EQ(*envelope.PredictCores(ConfigOf("SIP1"), 100), 0.9);
  EXPECT_EQ(*envelope.PredictCores(ConfigOf("SIP1"), 101), INFINITY);
  EXPECT_FALSE(envelope.PredictCores(ConfigOf("FIP1"), 100).has_value());
}

TEST(Envelope, OfEqualsTheMostRobustStands) {
  // All are within the noise of the best at all loads, and equally cheap.
  const auto lucky = [](double x) { return x == 200 ? 900.0 : 1050.0; };  // once the best, else the last
  const auto steady = [](double) { return 1000.0; };
  const std::vector<double> loads = {100, 200, 400, 800, 1600};
  const Profile ranks =
      MakeProfile(loads, {{"SDB1-8", 1e18, lucky, 0.2, 500, 0.1}, {"FIB1", 1e18, steady, 0.2, 500, 0.1}});
  EXPECT_EQ(ShownAt(0.1, ranks), "FIB1") << "one lucky load of five";
  const Profile capable =
      MakeProfile(loads, {{"SDB1-8", 1e18, lucky, 0.2, 500, 0.1}, {"FIB1", 1000, steady, 0.2, 500, 0.1}});
  EXPECT_EQ(ShownAt(0.1, capable), "SDB1-8") << "it sustains most";
  const Profile medians =
      MakeProfile(loads, {{"SDB1-8", 1e18, steady, 0.2, 500, 0.1}, {"FIB1", 1e18, steady, 0.2, 400, 0.1}});
  EXPECT_EQ(ShownAt(0.1, medians), "FIB1") << "the lower p50";
}

TEST(Envelope, NoiseNeverReachesAcrossALimit) {
  const Profile profile = MakeProfile({100, 200, 400}, {{"SIP1", 250, [](double) { return 100.0; }, 0.2},
                                                        {"SDB1-4", 1e18, [](double) { return 101.0; }, 0.2}});
  EXPECT_EQ(Shown(Make(profile)), "SDB1-4") << "one config is good enough everywhere";
  const Profile apart = MakeProfile({100, 200, 400}, {{"SIP1", 250, [](double) { return 100.0; }, 0.01},
                                                      {"SDB1-4", 1e18, [](double) { return 150.0; }, 0.01}});
  EXPECT_EQ(Shown(Make(apart)), "SIP1 200 SDB1-4");
}

TEST(Envelope, AConfigThatIsOnlySometimesGoodIsJudgedByItsBadSide) {
  const Profile profile = MakeProfile({100, 200}, {{"SIP1", 1e18, [](double) { return 100.0; }, 0.5},
                                                   {"SIB1", 1e18, [](double) { return 120.0; }, 0.01}});
  ASSERT_TRUE(profile.configs[0].points[0].unstable);
  EXPECT_EQ(Shown(Make(profile, nullptr, false)), "SIB1");
}

TEST(Envelope, FiltersByTheStyleOfTheService) {
  const Profile profile = SteppedProfile();
  EXPECT_EQ(Make(profile, RunsUnder(ServiceStyle::kStraightLine)).configs().size(), 4u);
  EXPECT_EQ(Make(profile, RunsUnder(ServiceStyle::kContinuation)).configs().size(), 2u);
  EXPECT_EQ(Make(profile, RunsUnder(ServiceStyle::kCoroutine)).configs().size(), 6u);
  EXPECT_TRUE(RunsUnder(ServiceStyle::kStraightLine)(ConfigOf("FIP1")));
  EXPECT_EQ(Shown(Make(profile, RunsUnder(ServiceStyle::kStraightLine))), "SIP1 1000 SDP1-20 7500 SDB1-50");
  const Profile fibers = MakeProfile({100}, {{"FIP1", 1e18, [](double) { return 1.0; }}});
  EXPECT_EQ(Envelope::Make(fibers, RunsUnder(ServiceStyle::kContinuation)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace curtail
