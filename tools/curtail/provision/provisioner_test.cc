// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/provision/provisioner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "curtail/base/rng.h"

namespace curtail::tool {
namespace {

using testing::ElementsAre;
using testing::Gt;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using Purpose = ProvisionTurn::Purpose;

constexpr int kMaxTurns = 2000;  // a provisioner that takes more does not end

// An application by its arithmetic: a request takes so many CPU seconds of each service. A service that has less than it
// needs is throttled, and makes requests late.
struct Model {
  std::map<std::string, double> cpu_s;
  double noise = 0.01;
  Rng rng{3};

  TurnResult Run(const ProvisionTurn& turn) {
    TurnResult result;
    double good = 1;
    for (const auto& [name, cost] : cpu_s) {
      const double used = turn.rate_per_s * cost / turn.shares->at(name).cpu;
      TierLoad& tier = result.tiers.emplace_back();
      tier.name = name;
      tier.cpus = std::min(turn.rate_per_s * cost, turn.shares->at(name).cpu);
      tier.throttled = std::clamp(2 * (used - 0.8), 0.0, 1.0);
      good *= 1 - std::clamp(2 * (used - 0.9), 0.0, 1.0);
    }
    result.good_share = std::clamp(good + noise * (rng.Uniform01() - 0.5), 0.0, 1.0);
    result.outcome = good >= 0.99 ? TrialOutcome::kMet : TrialOutcome::kNotMet;
    return result;
  }
};

ProvisionOptions Options(const Allocation& start) {
  ProvisionOptions options{.levers = {Lever::kCpu}, .cpus = 2, .start_per_s = 50};
  for (const auto& [name, share] : start) options.instances[name] = 1;
  return options;
}

Allocation Equal(const std::vector<std::string>& names, double cpu = 0.04) {
  Allocation start;
  for (const std::string& name : names) start[name] = {.cpu = cpu, .config = "FIB1"};
  return start;
}

// Runs it to its end; returns the turns.
std::vector<Purpose> RunAll(Provisioner& p, const std::function<TurnResult(const ProvisionTurn&)>& run) {
  std::vector<Purpose> turns;
  while (const auto turn = p.Next()) {
    turns.push_back(turn->purpose);
    if (turns.size() > kMaxTurns) ADD_FAILURE() << "it does not end";
    if (turns.size() > kMaxTurns) break;
    p.Tell(run(*turn));
  }
  return turns;
}

TEST(Provisioner, SharesGoWhereTheWorkIs) {
  Model model{.cpu_s = {{"front", 0.001}, {"text", 0.0001}, {"store", 0.0005}}};
  const Allocation start = Equal({"front", "text", "store"});
  Provisioner p(Options(start), start);
  RunAll(p, [&](const ProvisionTurn& turn) { return model.Run(turn); });
  EXPECT_EQ(p.end(), ProvisionEnd::kBalanced) << p.Describe();
  EXPECT_EQ(p.kept().at("text").cpu, 0.04) << "it has enough from the start";
  EXPECT_NEAR(p.kept().at("front").cpu / p.kept().at("store").cpu, 2, 0.01);
  ASSERT_THAT(p.rounds(), testing::SizeIs(Gt(2u)));
  EXPECT_EQ(p.rounds()[0].saturated.front().tier, "front");
  EXPECT_EQ(p.rounds()[0].verdict, StepVerdict::kHelps);
  EXPECT_GT(p.rounds()[0].gain->low, 0);
  ASSERT_TRUE(p.highest_per_s() && p.equal_per_s());
  EXPECT_GT(*p.highest_per_s(), 1.5 * *p.rounds()[0].highest_per_s);
  EXPECT_GT(*p.highest_per_s(), 1.1 * *p.equal_per_s()) << "equal shares give some to those that need none";
}

TEST(Provisioner, EndsWhenAllThatThereIsIsSharedOut) {
  Model model{.cpu_s = {{"front", 0.001}, {"text", 0.00001}}};
  const Allocation start = Equal({"front", "text"});
  ProvisionOptions options = Options(start);
  options.cpus = 0.3;
  Provisioner p(options, start);
  RunAll(p, [&](const ProvisionTurn& turn) { return model.Run(turn); });
  EXPECT_EQ(p.end(), ProvisionEnd::kCpusSpent) << p.Describe();
  EXPECT_NEAR(p.kept().at("front").cpu, 0.26, 1e-9) << "the last step takes what is left";
  EXPECT_THAT(p.Describe(), HasSubstr("front needs more, and all 0.3 CPUs"));
}

// Neither helps alone: requests are good only if both services have enough.
TEST(Provisioner, TriesStepsTogetherThatDoNotHelpAlone) {
  const Allocation start = Equal({"a", "b"});
  ProvisionOptions options = Options(start);
  options.cpus = 0.16;
  Provisioner p(options, start);
  RunAll(p, [&](const ProvisionTurn& turn) {
    TurnResult result;
    bool enough = true;
    for (const auto& [name, share] : *turn.shares) {
      const bool short_of = turn.rate_per_s > 2500 * share.cpu;
      TierLoad& tier = result.tiers.emplace_back();
      tier.name = name;
      tier.throttled = short_of ? (name == "a" ? 0.9 : 0.8) : 0.0;
      enough = enough && !short_of;
    }
    result.good_share = enough ? 1 : 0.1;
    result.outcome = enough ? TrialOutcome::kMet : TrialOutcome::kNotMet;
    return result;
  });
  ASSERT_FALSE(p.rounds().empty());
  const ProvisionRound& first = p.rounds().front();
  EXPECT_EQ(first.verdict, StepVerdict::kHelps);
  ASSERT_EQ(first.steps.size(), 2u);
  EXPECT_EQ(first.steps[0].tier, "a");
  EXPECT_EQ(first.steps[1].tier, "b");
  EXPECT_EQ(p.kept().at("a").cpu, 0.08);
  EXPECT_EQ(p.kept().at("b").cpu, 0.08);
}

// A service says that it is short, but more does not help: the machine is the limit.
TEST(Provisioner, KeepsNoStepThatDoesNotHelp) {
  const Allocation start = Equal({"a", "b"});
  Provisioner p(Options(start), start);
  Rng rng(5);
  RunAll(p, [&](const ProvisionTurn& turn) {
    TurnResult result;
    result.tiers = {{.name = "a", .throttled = 0.5}, {.name = "b", .throttled = 0}};
    result.outcome = turn.rate_per_s < 200 ? TrialOutcome::kMet : TrialOutcome::kNotMet;
    result.good_share = 0.8 + 0.002 * rng.Uniform01();
    return result;
  });
  EXPECT_EQ(p.end(), ProvisionEnd::kNoStepHelps);
  EXPECT_EQ(p.kept(), start);
  EXPECT_EQ(p.rounds().back().verdict, StepVerdict::kNoHelp);
  EXPECT_THAT(p.Describe(), HasSubstr("does not help"));
  EXPECT_FALSE(p.equal_per_s()) << "nothing was shared out";
}

TEST(Provisioner, NoiseCannotBeTold) {
  const Allocation start = Equal({"a"});
  Provisioner p(Options(start), start);
  int turns = 0;
  RunAll(p, [&](const ProvisionTurn& turn) {
    TurnResult result;
    result.tiers = {{.name = "a", .throttled = 0.5}};
    result.outcome = turn.rate_per_s < 200 ? TrialOutcome::kMet : TrialOutcome::kNotMet;
    const bool judged = turn.purpose == Purpose::kWith || turn.purpose == Purpose::kWithout;
    if (judged) result.good_share = turns++ % 3 == 0 ? 0.9 : 0.2;
    return result;
  });
  EXPECT_EQ(p.end(), ProvisionEnd::kNoStepHelps);
  EXPECT_EQ(p.rounds().back().verdict, StepVerdict::kCannotTell);
  EXPECT_EQ(p.rounds().back().pairs, kMaxPairs);
  EXPECT_EQ(p.kept(), start);
  EXPECT_THAT(p.Describe(), HasSubstr("cannot be told"));
}

TEST(Provisioner, TurnsOfAPairHaveTheSameArrivalsAndChangeTheirOrder) {
  Model model{.cpu_s = {{"a", 0.001}}};
  const Allocation start = Equal({"a"});
  Provisioner p(Options(start), start);
  std::vector<ProvisionTurn> judged;
  while (const auto turn = p.Next()) {
    const bool of_pair = turn->purpose == Purpose::kWith || turn->purpose == Purpose::kWithout;
    if (of_pair) judged.push_back(*turn);
    if (!of_pair && !judged.empty()) break;
    p.Tell(model.Run(*turn));
  }
  ASSERT_GE(judged.size(), 8u);
  std::vector<Purpose> order;
  for (const ProvisionTurn& turn : judged) order.push_back(turn.purpose);
  order.resize(4);
  EXPECT_THAT(order, ElementsAre(Purpose::kWithout, Purpose::kWith, Purpose::kWith, Purpose::kWithout));
  for (size_t i = 0; i + 1 < judged.size(); i += 2) {
    EXPECT_EQ(judged[i].arrivals, judged[i + 1].arrivals);
    if (i > 0) {
      EXPECT_NE(judged[i].arrivals, judged[i - 1].arrivals);
    }
    EXPECT_DOUBLE_EQ(judged[i].rate_per_s, 1.1 * p.rounds().front().refused_per_s) << "above it by the bound";
  }
}

TEST(Provisioner, GivesThreadsToAPoolThatHasTooFew) {
  Allocation start = Equal({"front", "work"}, 0);
  start.at("work").config = "SDB1-1";
  ProvisionOptions options = Options(start);
  options.levers = {Lever::kThreads};
  options.calls = {{"front", {"work"}}};
  options.threads = 4;
  Provisioner p(options, start);
  // A request holds a thread of work for 10 ms.
  RunAll(p, [&](const ProvisionTurn& turn) {
    const std::string& config = turn.shares->at("work").config;
    const int threads = std::stoi(config.substr(config.find('-') + 1));
    const double busy = turn.rate_per_s * 0.01 / threads;
    TurnResult result;
    result.tiers = {{.name = "front", .wait_share = 0.1},
                    {.name = "work", .queue_wait_s = 0.1, .wait_share = std::min(0.99, busy)}};
    result.good_share = busy < 0.9 ? 1 : 0.3;
    result.outcome = busy < 0.9 ? TrialOutcome::kMet : TrialOutcome::kNotMet;
    return result;
  });
  EXPECT_EQ(p.end(), ProvisionEnd::kThreadsSpent) << p.Describe();
  EXPECT_EQ(p.kept().at("work").config, "SDB1-4");
  EXPECT_EQ(p.kept().at("front").config, "FIB1");
  EXPECT_GT(*p.highest_per_s(), 3.3 * *p.rounds().front().highest_per_s);
  EXPECT_THAT(p.Describe(), HasSubstr("work has 4 threads"));
}

TEST(Provisioner, WithoutAShortServiceTheLimitIsElsewhere) {
  const Allocation start = Equal({"a"});
  Provisioner p(Options(start), start);
  RunAll(p, [&](const ProvisionTurn& turn) {
    TurnResult result;
    result.tiers = {{.name = "a", .throttled = 0}};
    result.outcome = turn.rate_per_s < 200 ? TrialOutcome::kMet : TrialOutcome::kNotMet;
    return result;
  });
  EXPECT_EQ(p.end(), ProvisionEnd::kNothingSaturated);
  EXPECT_NEAR(*p.highest_per_s(), 190, 20);
}

TEST(Provisioner, VoidTurnsEndIt) {
  const Allocation start = Equal({"a"});
  Provisioner searching(Options(start), start);
  RunAll(searching, [](const ProvisionTurn&) { return TurnResult{.outcome = TrialOutcome::kVoid}; });
  EXPECT_EQ(searching.end(), ProvisionEnd::kGenerator);
  EXPECT_FALSE(searching.highest_per_s());

  Model model{.cpu_s = {{"a", 0.001}}};
  Provisioner judging(Options(start), start);
  const std::vector<Purpose> turns = RunAll(judging, [&](const ProvisionTurn& turn) {
    TurnResult result = model.Run(turn);
    if (turn.purpose == Purpose::kWith) result.outcome = TrialOutcome::kVoid;
    return result;
  });
  EXPECT_EQ(judging.end(), ProvisionEnd::kGenerator);
  EXPECT_EQ(std::count(turns.begin(), turns.end(), Purpose::kWith), kMaxVoidPairs + 1);
  EXPECT_EQ(judging.kept(), start);
}

TEST(Provisioner, AnInterruptionLeavesWhatWasKept) {
  Model model{.cpu_s = {{"front", 0.001}, {"store", 0.0002}}};
  const Allocation start = Equal({"front", "store"});
  Provisioner p(Options(start), start);
  while (p.rounds().size() < 2) {
    ASSERT_TRUE(p.Next());
    p.Tell(model.Run(*p.Next()));
  }
  p.Finish(ProvisionEnd::kInterrupted);
  EXPECT_FALSE(p.Next());
  EXPECT_EQ(p.kept().at("front").cpu, 0.08);
  EXPECT_EQ(p.kept().at("store").cpu, 0.04);
}

TEST(Provisioner, WhenTheTimeIsOverItSaysWhatWasReached) {
  Model model{.cpu_s = {{"front", 0.001}, {"store", 0.0001}}};
  const Allocation start = Equal({"front", "store"});
  Provisioner p(Options(start), start);
  while (p.rounds().size() < 2 || p.Next()->purpose != Purpose::kWith) {
    p.Tell(model.Run(*p.Next()));
    ASSERT_TRUE(p.Next());
  }
  p.Finish(ProvisionEnd::kTime);
  const std::vector<Purpose> rest = RunAll(p, [&](const ProvisionTurn& turn) { return model.Run(turn); });
  EXPECT_EQ(p.end(), ProvisionEnd::kTime);
  EXPECT_TRUE(p.highest_per_s() && p.equal_per_s());
  EXPECT_EQ(std::count(rest.begin(), rest.end(), Purpose::kWith), 0);
  EXPECT_EQ(std::count(rest.begin(), rest.end(), Purpose::kFinal), 0) << "the search of the round says it";
}

}  // namespace
}  // namespace curtail::tool
