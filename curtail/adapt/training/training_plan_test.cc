// SPDX-License-Identifier: Apache-2.0
//
// The limits of a plan, and how long the default ones take.
#include <chrono>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "curtail/adapt/profile_testing.h"
#include "curtail/adapt/training.h"
#include "curtail/adapt/training/training_testing.h"
#include "curtail/base/strings.h"
#include "gmock/gmock.h"

namespace curtail {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;

std::vector<std::string> Names(const std::vector<Config>& configs) {
  std::vector<std::string> names;
  for (const Config& config : configs) names.push_back(config.ToString());
  return names;
}

// The fault of the small plan after `edit`.
template <class F>
std::string PlanComplaint(F edit) {
  TrainingPlan plan = SmallPlan(2, 3);
  edit(plan);
  const absl::Status status = CheckPlan(plan);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(Message(status));
}

TEST(TrainingPlan, RefusesWhatCannotBeCarriedOut) {
  EXPECT_TRUE(CheckPlan(SmallPlan(2, 3)).ok());
  EXPECT_THAT(PlanComplaint([](auto& p) { p.service.clear(); }), HasSubstr("no service"));
  EXPECT_THAT(PlanComplaint([](auto& p) { p.configs.clear(); }), HasSubstr("no configs"));
  EXPECT_THAT(PlanComplaint([](auto& p) { p.configs[1] = p.configs[0]; }), HasSubstr("SDB1-1 twice"));
  EXPECT_THAT(PlanComplaint([](auto& p) { p.configs[1].workers = 0; }),
              HasSubstr("SDB1-0, which is not a config"));
  EXPECT_THAT(PlanComplaint([](auto& p) { p.configs[1].response = 3; }), HasSubstr("not a config"));
  EXPECT_THAT(PlanComplaint([](auto& p) { p.loads.clear(); }), HasSubstr("no loads"));
  EXPECT_THAT(PlanComplaint([](auto& p) { p.loads[1] = 50; }),
              HasSubstr("50/s after 50/s; loads must ascend"));
  EXPECT_THAT(PlanComplaint([](auto& p) { p.loads[0] = 0; }), HasSubstr("load of 0/s"));
  EXPECT_THAT(PlanComplaint([](auto& p) { p.loads[2] = std::nan(""); }), HasSubstr("load of nan/s"));
  EXPECT_THAT(PlanComplaint([](auto& p) { p.repeats = 2; }), HasSubstr("2 repeats"));
  EXPECT_THAT(PlanComplaint([](auto& p) { p.repeats = 1001; }), HasSubstr("1001 repeats"));
  EXPECT_THAT(PlanComplaint([](auto& p) { p.cell = Nanos(0); }), HasSubstr("cells"));
  EXPECT_THAT(PlanComplaint([](auto& p) { p.cell = minutes(11); }), HasSubstr("cells"));
  EXPECT_THAT(PlanComplaint([](auto& p) { p.warmup = Nanos(0); }), HasSubstr("warm-up"));
  EXPECT_THAT(PlanComplaint([](auto& p) { p.between = Nanos(-1); }), HasSubstr("between"));
  EXPECT_THAT(PlanComplaint([](auto& p) { p.wanted_requests = -1; }), HasSubstr("wanted_requests"));
  EXPECT_THAT(PlanComplaint([](auto& p) { p.max_stretch = 0.5; }), HasSubstr("max_stretch of 0.5"));
  EXPECT_THAT(PlanComplaint([](auto& p) { p.workload = "\xff"; }), HasSubstr("workload that is not UTF-8"));
  EXPECT_THAT(PlanComplaint([](auto& p) { p.workload.assign(1025, 'x'); }), HasSubstr("1024 bytes"));
}

TEST(TrainingPlan, RefusesMoreCellsThanAProfileHolds) {
  TrainingPlan plan = SmallPlan(200, 1);
  plan.loads.clear();
  for (int i = 1; i <= 500; ++i) plan.loads.push_back(i);
  plan.repeats = 3;
  EXPECT_THAT(Message(CheckPlan(plan)), HasSubstr("300000 cells"));
  plan.configs.resize(60);
  plan.cell = plan.warmup = plan.between = minutes(10);
  plan.max_stretch = 20;
  plan.wanted_requests = 1e12;
  EXPECT_TRUE(CheckPlan(plan).ok());
  EXPECT_EQ(plan.MostTime(), 90'000 * minutes(220)) << "the longest sum does not overflow";
}

TEST(TrainingPlan, LowLoadsGetLongerCells) {
  const TrainingPlan plan{.cell = seconds(1), .wanted_requests = 300, .max_stretch = 4};
  EXPECT_EQ(plan.CellLength(50), seconds(4)) << "6 s would give 300 requests";
  EXPECT_EQ(plan.CellLength(100), seconds(3));
  EXPECT_EQ(plan.CellLength(300), seconds(1));
  EXPECT_EQ(plan.CellLength(10000), seconds(1));
}

TEST(TrainingPlan, AddsUpItsTimes) {
  TrainingPlan plan{.configs = DefaultTrainingConfigs(1, true),
                    .loads = {100, 200, 400, 800},
                    .repeats = 5,
                    .cell = seconds(1),
                    .warmup = milliseconds(300),
                    .between = milliseconds(200),
                    .wanted_requests = 200,
                    .max_stretch = 4};
  ASSERT_EQ(plan.configs.size(), 4u);
  EXPECT_EQ(plan.MostTime(), 20 * (seconds(2) + 3 * seconds(1) + 4 * milliseconds(500)));
  EXPECT_EQ(plan.ExpectedTime(), 20 * (seconds(2) + 2 * seconds(1) + 3 * milliseconds(500)))
      << "one load of four is the upper third, rounded down";
}

TEST(TrainingPlan, DefaultsKeepTheirPromises) {
  for (int cpus : {1, 2, 4, 16, 64, 1000}) {
    TrainingPlan quick = QuickTraining(cpus), full = DefaultTraining(cpus);
    EXPECT_LE(quick.MostTime(), seconds(170)) << cpus;
    EXPECT_LE(full.ExpectedTime(), minutes(30)) << cpus;
    quick.service = full.service = "test.Service";
    EXPECT_TRUE(CheckPlan(quick).ok() && CheckPlan(full).ok()) << CheckPlan(full);
  }
  EXPECT_GE(DefaultTraining(2).ExpectedTime(), minutes(25)) << "the time there is, is used";
  EXPECT_GE(QuickTraining(2).MostTime(), seconds(140));
}

TEST(TrainingPlan, DefaultConfigsFitTheMachine) {
  EXPECT_THAT(Names(DefaultTrainingConfigs(2, true)),
              ElementsAre("SIB1", "SIP1", "SDB1-16", "SDB1-50", "auto", "FIP1"));
  const std::vector<std::string> two = Names(DefaultTrainingConfigs(2, false));
  EXPECT_THAT(two, IsSupersetOf({"SIB1", "SIB16", "SIP1", "SDB1-4", "SDB1-16", "SDB1-50", "SDP1-16", "auto",
                                 "FIP1", "FDB1-2", "AIB1-1", "AIP1-1", "ADB1-2-2"}));
  EXPECT_EQ(two.size(), 14u);
  EXPECT_THAT(two, Not(Contains("FIB1"))) << "auto is FIB1 with stand-ins";
  EXPECT_THAT(Names(DefaultTrainingConfigs(8, false)), IsSupersetOf({"SIB64", "FDB1-8"}));
  for (const std::string& name : Names(DefaultTrainingConfigs(1, false))) EXPECT_NE(name[2], 'P') << name;
}

TEST(TrainingPlan, DefaultLoadsAreOctavesAndHalves) {
  EXPECT_THAT(DefaultLoads(false), ElementsAre(50, 71, 100, 140, 200, 280, 400, 570, 800, 1100, 1600, 2300,
                                               3200, 4500, 6400, 9100, 13000));
  EXPECT_THAT(DefaultLoads(true), ElementsAre(100, 200, 400, 800, 1600, 3200, 6400, 13000));
  EXPECT_THAT(LoadLadder(0.5, 1, 3), ElementsAre(0.5, 1, 2));
  EXPECT_THAT(LoadLadder(50, 2, 0), IsEmpty());
}

TEST(TrainingPlan, SaysWhatIsSaturated) {
  EXPECT_FALSE(IsSaturated(1000, 1000, 0));
  EXPECT_FALSE(IsSaturated(1000, 970, 0.01));
  EXPECT_TRUE(IsSaturated(1000, 969, 0));
  EXPECT_TRUE(IsSaturated(1000, 1000, 0.011));
  EXPECT_TRUE(IsSaturated(1000, std::nan(""), 0));
  EXPECT_TRUE(IsSaturated(1000, 1000, std::nan("")));
}

TEST(TrainingPlan, ArrivalsSeedsDiffer) {
  std::set<uint64_t> seen;
  for (uint64_t i = 0; i < 5000; ++i) seen.insert(ArrivalsSeed(1, i));
  for (uint64_t i = 0; i < 5000; ++i)
    seen.insert(ArrivalsSeed(2, i)), seen.insert(ArrivalsSeed(1, (1ull << 32) + i));
  EXPECT_EQ(seen.size(), 15000u) << "neither neighbouring indices nor neighbouring seeds share one";
}

}  // namespace
}  // namespace curtail
