// SPDX-License-Identifier: Apache-2.0
#include "curtail/adapt/training.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "curtail/adapt/envelope.h"
#include "curtail/adapt/profile_testing.h"
#include "curtail/adapt/training/training_testing.h"
#include "curtail/base/strings.h"
#include "gmock/gmock.h"

namespace curtail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using State = TrainingPoint::State;

// True if a config is saturated in a cell.
using Saturates = std::function<bool(const TrainingCell&)>;

std::vector<TrainingCell> RunAll(Training& training, const Saturates& saturates) {
  std::vector<TrainingCell> order;
  while (const std::optional<TrainingCell> next = training.Next()) {
    order.push_back(*next);
    EXPECT_TRUE(training.Tell(Measured(*next, 100 + next->load_per_s, saturates(*next))).ok());
  }
  return order;
}

bool Never(const TrainingCell&) { return false; }

// Stops config 0 in each repeat at the load that `stops` has for it.
Profile ProfileOfStops(const std::vector<size_t>& stops, size_t loads) {
  TrainingPlan plan = SmallPlan(1, static_cast<int>(loads));
  plan.repeats = static_cast<int>(stops.size());
  Training training(plan);
  RunAll(training,
         [&](const TrainingCell& c) { return c.load_index == stops[static_cast<size_t>(c.repeat)]; });
  return training.MakeProfile("0.1.0", TestMachine(), "2026-11-22T08:30:00Z");
}

TEST(Training, MeasuresEachCellOnceInOrder) {
  Training training(SmallPlan(5, 7));
  const std::vector<TrainingCell> order = RunAll(training, Never);
  std::set<std::tuple<int, size_t, size_t>> seen;
  std::pair<int, size_t> before = {0, 0};
  for (const TrainingCell& cell : order) {
    EXPECT_TRUE(seen.insert({cell.repeat, cell.load_index, cell.config_index}).second);
    EXPECT_LE(before, std::pair(cell.repeat, cell.load_index)) << "repeats outermost, loads ascending";
    before = {cell.repeat, cell.load_index};
    EXPECT_EQ(cell.config, training.plan().configs[cell.config_index]);
    EXPECT_EQ(cell.load_per_s, training.plan().loads[cell.load_index]);
    EXPECT_EQ(cell.length, training.plan().CellLength(cell.load_per_s));
  }
  EXPECT_EQ(seen.size(), 3u * 5 * 7);
}

TEST(Training, EachLoadAndRepeatBeginsWithAnotherConfig) {
  Training training(SmallPlan(5, 7));
  const std::vector<TrainingCell> order = RunAll(training, Never);
  std::map<size_t, std::set<size_t>> firsts;  // by load
  std::map<std::pair<size_t, size_t>, int> follows;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i % 5 != 0) {
      ++follows[{order[i - 1].config_index, order[i].config_index}];
      continue;
    }
    EXPECT_TRUE(firsts[order[i].load_index].insert(order[i].config_index).second) << "another in each repeat";
    if (i >= 5 && order[i].repeat == order[i - 5].repeat) {
      EXPECT_NE(order[i].config_index, order[i - 5].config_index);
    }
  }
  EXPECT_GT((follows[{0, 1}]), 3) << "neighbours come in both orders";
  EXPECT_GT((follows[{1, 0}]), 3);
}

TEST(Training, GivesAllConfigsTheSameArrivals) {
  Training training(SmallPlan(4, 6));
  std::map<std::pair<int, size_t>, std::set<uint64_t>> of_round;
  std::set<uint64_t> all;
  for (const TrainingCell& cell : RunAll(training, Never)) {
    of_round[{cell.repeat, cell.load_index}].insert(cell.seed);
    all.insert(cell.seed);
  }
  for (const auto& [round, seeds] : of_round) EXPECT_EQ(seeds.size(), 1u);
  EXPECT_EQ(all.size(), 3u * 6) << "no two rounds share one";
  TrainingPlan other = SmallPlan(4, 6);
  other.seed = 2;
  EXPECT_FALSE(all.contains(Training(other).Next()->seed));
}

TEST(Training, StopsAConfigForTheRestOfTheRepeat) {
  Training training(SmallPlan(3, 8));
  std::map<std::pair<size_t, int>, size_t> highest;
  for (const TrainingCell& c :
       RunAll(training, [](const TrainingCell& c) { return c.config_index == 1 && c.load_index >= 2; })) {
    highest[{c.config_index, c.repeat}] = c.load_index;
  }
  for (int repeat = 0; repeat < 3; ++repeat) {
    EXPECT_EQ((highest[{0, repeat}]), 7u);
    EXPECT_EQ((highest[{1, repeat}]), 2u) << "measured where it gives up, in each repeat anew";
  }
  EXPECT_EQ(training.Progress().skipped, 3u * 5);
  EXPECT_EQ(training.Progress().left_at_most, 0u);
  EXPECT_EQ(training.At(1, 1).state, State::kMeasured);
  EXPECT_EQ(training.At(1, 2).state, State::kSaturated);
  EXPECT_EQ(training.At(1, 3).state, State::kStopped);
}

TEST(Training, EndsTheRepeatWhenAllHaveStopped) {
  Training training(SmallPlan(3, 8));
  const std::vector<TrainingCell> order =
      RunAll(training, [](const TrainingCell& c) { return c.load_index == 3; });
  EXPECT_EQ(order.size(), 3u * 3 * 4);
  const Profile profile = training.MakeProfile("0.1.0", TestMachine(), "2026-11-22T08:30:00Z");
  EXPECT_THAT(profile.loads, ElementsAre(50, 71, 100, 140)) << "no load at which nothing was measured";
}

TEST(Training, OneHiccupHidesNothing) {
  const Profile profile = ProfileOfStops({2, 8, 8}, 8);
  ASSERT_EQ(profile.configs.size(), 1u);
  const ConfigSummary& summary = profile.configs[0];
  EXPECT_FALSE(summary.saturation_per_s.has_value());
  ASSERT_EQ(summary.points.size(), 8u);
  EXPECT_TRUE(summary.points[2].unstable && !summary.points[2].saturated);
  for (size_t load = 3; load < 8; ++load) {
    EXPECT_FALSE(summary.points[load].unstable);
    EXPECT_EQ(summary.points[load].p99_us, 100 + profile.loads[load]) << "from two repeats";
  }
}

// The load at which most repeats have given up, by the profile and by counting, for all ways in which
// repeats may give up.
TEST(Training, ThreeRepeatsDecideSaturationByMajority) {
  constexpr size_t kLoads = 5;
  for (size_t a = 0; a <= kLoads; ++a) {
    for (size_t b = 0; b <= kLoads; ++b) {
      for (size_t c = 0; c <= kLoads; ++c) {
        std::vector<size_t> stops = {a, b, c};
        const Profile profile = ProfileOfStops(stops, kLoads);
        std::sort(stops.begin(), stops.end());
        const std::optional<double> found = profile.configs[0].saturation_per_s;
        ASSERT_EQ(found.has_value(), stops[1] < kLoads) << a << b << c;
        if (found) {
          EXPECT_EQ(*found, stops[1] == 0 ? 0 : profile.loads[stops[1] - 1]) << a << b << c;
        }
      }
    }
  }
}

// As the class says: a hiccup in one of more repeats, while the others give up at one load or its neighbour.
TEST(Training, MoreRepeatsDecideByMajorityBesideOneHiccup) {
  constexpr size_t kLoads = 7, kLimit = 4;
  for (size_t repeats : {4u, 5u, 6u, 7u}) {
    for (size_t hiccup = 0; hiccup < kLimit; ++hiccup) {
      for (size_t early = 0; early < repeats; ++early) {
        std::vector<size_t> stops = {hiccup};
        for (size_t i = 1; i < repeats; ++i) stops.push_back(i <= early ? kLimit : kLimit + 1);
        const Profile profile = ProfileOfStops(stops, kLoads);
        const bool at_limit = 2 * (1 + early) > repeats;
        const size_t expected = at_limit ? kLimit - 1 : kLimit;
        EXPECT_EQ(profile.configs[0].saturation_per_s, profile.loads[expected])
            << repeats << " repeats, " << early << " early, hiccup at " << hiccup;
      }
    }
  }
}

TEST(Training, RefusesCellsThatItDidNotAskFor) {
  Training training(SmallPlan(2, 2));
  const ProfileCell right = Measured(*training.Next(), 100, false);
  const auto refused = [&](auto edit) {
    ProfileCell cell = right;
    edit(cell);
    const absl::Status status = training.Tell(cell);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(training.Next()->config, right.config);
    return std::string(Message(status));
  };
  EXPECT_EQ(refused([](ProfileCell& c) { c.config = ConfigOf("FIB2"); }),
            "FIB2 at 50/s in repeat 0 was not asked for: SDB1-1 at 50/s in repeat 0 is next");
  EXPECT_THAT(refused([](ProfileCell& c) { c.load_per_s = 71; }), HasSubstr("at 71/s"));
  EXPECT_THAT(refused([](ProfileCell& c) { c.repeat = 1; }), HasSubstr("in repeat 1 was not"));
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(refused([](ProfileCell& c) { c.p99_us = kNan; }), HasSubstr("p99_us"));
  EXPECT_THAT(refused([](ProfileCell& c) { c.p50_us = c.p99_us + 1; }), HasSubstr("p99_us"));
  EXPECT_THAT(refused([](ProfileCell& c) { c.mean_us = -1; }), HasSubstr("mean_us"));
  EXPECT_THAT(refused([](ProfileCell& c) { c.achieved_per_s = 1e13; }), HasSubstr("achieved_per_s"));
  EXPECT_THAT(refused([](ProfileCell& c) { c.failed_share = 1.1; }), HasSubstr("failed_share"));
  EXPECT_THAT(refused([](ProfileCell& c) { c.cpu_cores = -0.1; }), HasSubstr("cpu_cores"));
  EXPECT_TRUE(training.Tell(right).ok());
  RunAll(training, Never);
  EXPECT_THAT(Message(training.Tell(right)), HasSubstr("all cells are measured"));
}

// How long the rest of a training takes.
Nanos TimeOfRest(Training training, const Saturates& saturates) {
  Nanos time{0};
  for (const TrainingCell& cell : RunAll(training, saturates)) {
    time += cell.length + training.plan().warmup + training.plan().between;
  }
  return time;
}

TEST(Training, CountsWhatIsLeft) {
  const Saturates gives_up = [](const TrainingCell& c) { return c.config_index < 2 && c.load_index == 3; };
  Training training(SmallPlan(4, 9));
  const TrainingPlan& plan = training.plan();
  EXPECT_EQ(training.Progress().left_at_most, 3u * 4 * 9);
  EXPECT_EQ(training.Progress().time_left_at_most, plan.MostTime());
  EXPECT_EQ(training.Progress().time_left_expected, plan.ExpectedTime());
  size_t told = 0;
  Nanos before = plan.MostTime();
  while (const std::optional<TrainingCell> next = training.Next()) {
    ASSERT_TRUE(training.Tell(Measured(*next, 100, gives_up(*next))).ok());
    const TrainingProgress progress = training.Progress();
    EXPECT_EQ(progress.done, ++told);
    EXPECT_EQ(progress.done + progress.skipped + progress.left_at_most, 3u * 4 * 9);
    EXPECT_LT(progress.time_left_at_most, before);
    EXPECT_LE(progress.time_left_expected, progress.time_left_at_most);
    before = progress.time_left_at_most;
    // The next repeats are expected to be like the first, and here they are.
    if (next->repeat > 0) {
      EXPECT_EQ(progress.time_left_expected, TimeOfRest(training, gives_up));
    }
  }
  EXPECT_EQ(before, Nanos::zero());
}

TEST(Training, ShowsEachPoint) {
  Training training(SmallPlan(2, 3));
  for (double p99_us = 100; const std::optional<TrainingCell> next = training.Next();) {
    // The first repeat ends at the first load.
    EXPECT_EQ(training.At(next->config_index, next->load_index).measured,
              next->load_index == 0 ? next->repeat : next->repeat - 1);
    if (next->repeat == 0) {
      EXPECT_EQ(training.At(next->config_index, next->load_index).state, State::kUntouched);
    }
    ASSERT_TRUE(training.Tell(Measured(*next, p99_us * (3 - next->repeat), next->repeat == 0)).ok());
    EXPECT_EQ(training.At(next->config_index, next->load_index).state,
              next->repeat < 2 && next->load_index == 0 ? State::kSaturated : State::kMeasured);
    if (next->load_index == 0 && next->repeat == 0) {
      EXPECT_EQ(training.At(next->config_index, 1).state, State::kStopped);
    }
  }
  EXPECT_EQ(training.At(1, 0).p99_us, 200) << "the median of 300, 200 and 100";
  EXPECT_EQ(training.At(1, 1).p99_us, 150) << "of 200 and 100";
}

TEST(Training, MakesAProfileThatCanBeStored) {
  Training training(SmallPlan(3, 6));
  const auto check = [&] {
    const Profile profile = training.MakeProfile("0.1.0", TestMachine(), "2026-11-22T08:30:00Z");
    const absl::StatusOr<std::string> text = ProfileJson(profile);
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_TRUE(ParseProfile(*text).value() == profile);
    EXPECT_TRUE(Envelope::Make(profile).ok());
  };
  while (const std::optional<TrainingCell> next = training.Next()) {
    ProfileCell cell = Measured(*next, 1e13, next->load_index > next->config_index);
    cell.p50_us = cell.mean_us = 1e13;  // the most that is accepted
    cell.achieved_per_s = 1e12;
    ASSERT_TRUE(training.Tell(cell).ok());
    check();
  }
  const Profile profile = training.MakeProfile("0.1.0", TestMachine(), "2026-11-22T08:30:00Z");
  EXPECT_EQ(profile.service, "test.Service");
  EXPECT_EQ(profile.seed, 7u);
  EXPECT_EQ(profile.loads.size(), 4u);
  EXPECT_EQ(profile.configs[0].saturation_per_s, 50);
}

}  // namespace
}  // namespace curtail
