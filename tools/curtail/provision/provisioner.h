// SPDX-License-Identifier: Apache-2.0
//
// provisioner.h - decides how an application's services share a machine, turn by turn.
//
// The procedure is that of DeathStarBench (section 3.8): all services begin with equal shares, and the service that
// saturates first gets more, until all saturate at about the same load. The rules:
//
//  1. A search (rate_search.h) finds the highest load within the QoS under the shares that were kept so far, and the lowest
//     load that was refused.
//  2. The services that were saturated at the refused load are candidates, see tier_load.h. The first one gets a step: its
//     CPU time, or its threads, times `factor`.
//  3. The shares with and without the step take turns at a load above the refused one by `bound`, which the step is to
//     make possible, with the same arrivals in a pair of turns. The share of requests answered within the QoS is compared
//     in pairs by Student's t. The step is kept if the interval of the
//     mean difference, corrected for the number of looks, is above 0.
//  4. A step that helps too little to be told may be one of several that only help together. So the next service that is
//     saturated with the step gets one, too, up to kJointSteps. If they cannot be told together, none is kept.
//  5. It ends when no step can be told to help, when kPatience kept steps in a row have not raised the load by `bound`, when
//     all services that work use their CPU time alike, up to the factor of a step, or when the CPU time is spent.
//  6. At the end, where CPU time was shared out, a search under equal shares of the same sum shows what the ratio is worth.
//
// Use it as: while (auto turn = p.Next()) p.Tell(Run(*turn)). Pure and deterministic: no clock, no randomness.
// Thread-compatible.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "curtail/load/drive/rate_search.h"
#include "curtail/load/report/statistics.h"
#include "tools/curtail/provision/tier_load.h"

namespace curtail::tool {

// Of each instance of a service.
struct TierShare {
  double cpu = 0;      // CPUs; 0: no limit
  std::string config;  // empty: it is no curtail service
  friend bool operator==(const TierShare&, const TierShare&) = default;
};
using Allocation = std::map<std::string, TierShare>;

struct ProvisionOptions {
  std::vector<Lever> levers = {Lever::kCpu, Lever::kThreads};
  std::map<std::string, int> instances;  // of each service
  TierCalls calls;
  double cpus = 1;   // that all instances may have together
  int threads = 32;  // that a pool may have
  double factor = 2;
  double start_per_s = 50;
  double bound = 0.1;  // a share of the load
  int max_rounds = 60;
};

inline constexpr int kPairsToJudge = 4;
inline constexpr int kMaxPairs = 8;
inline constexpr int kJointSteps = 3;
inline constexpr int kPatience = 3;
inline constexpr int kMaxVoidPairs = 4;  // of one judgement

enum class ProvisionEnd {
  kRunning,
  kBalanced,          // all that work saturate at about one load
  kNoStepHelps,       // or it cannot be told
  kNoGain,            // steps help, but do not raise the load by the bound
  kNothingSaturated,  // no lever would give what is short
  kCpusSpent,
  kThreadsSpent,
  kGenerator,  // void turns end it
  kRounds,
  kTime,  // by Finish()
  kInterrupted,
};

struct ProvisionStep {
  std::string tier;
  Lever lever = Lever::kCpu;
  TierShare from, to;
  std::string evidence;
};

enum class StepVerdict { kNone, kHelps, kNoHelp, kCannotTell };
// "-", "helps", "does not help", "cannot tell".
const char* NameOf(StepVerdict verdict);

// A search, and what was tried at the load that it refused.
struct ProvisionRound {
  std::optional<double> highest_per_s;  // within the QoS
  double refused_per_s = 0;
  double cpus = 0;                    // shared out in the search
  std::vector<Saturation> saturated;  // at the refused load
  std::vector<ProvisionStep> steps;   // together
  StepVerdict verdict = StepVerdict::kNone;
  int pairs = 0;
  double good_before = 0, good_after = 0;  // the shares of requests within the QoS, means over the pairs
  std::optional<Interval> gain;            // of their difference
};

struct ProvisionTurn {
  enum class Purpose { kSearch, kWithout, kWith, kFinal, kEqual };
  Purpose purpose = Purpose::kSearch;
  double rate_per_s = 0;
  const Allocation* shares = nullptr;  // valid until Tell()
  uint64_t arrivals = 0;               // turns with the same number have the same arrivals
};

struct TurnResult {
  TrialOutcome outcome = TrialOutcome::kVoid;
  double good_share = 0;  // of the requests that were due, those answered within the QoS
  std::vector<TierLoad> tiers;
};

class Provisioner {
 public:
  // REQUIRES: `start` has every service of `options.instances`; factor > 1; bound > 0.
  Provisioner(ProvisionOptions options, Allocation start);

  std::optional<ProvisionTurn> Next() const;
  // REQUIRES: Next() is not empty.
  void Tell(const TurnResult& result);
  // Ends the rounds now; what rule 6 says, and a search that the last kept step has made due, are still done unless it is
  // interrupted.
  void Finish(ProvisionEnd why);

  // The shares to take: those at the start and every step that was kept.
  const Allocation& kept() const { return kept_; }
  const Allocation& equal() const { return equal_; }
  const std::vector<ProvisionRound>& rounds() const { return rounds_; }
  ProvisionEnd end() const { return end_; }
  // Within the QoS, under kept() and equal(); absent: not known, or none.
  std::optional<double> highest_per_s() const { return highest_; }
  std::optional<double> equal_per_s() const { return equal_highest_; }
  // One sentence: the reason for the end.
  std::string Describe() const;

 private:
  enum class Phase { kSearch, kJudge, kFinal, kEqual, kDone };
  struct Pair {
    std::optional<double> without, with;
  };

  void Search(double start_per_s, double growth);
  void TellSearch(const TurnResult& result);
  void EndSearch();
  bool Balanced(const std::vector<TierLoad>& tiers) const;
  // The first of these that can have a step goes into pending_. False: none.
  bool AddStep(const std::vector<Saturation>& saturated);
  std::optional<TierShare> Grown(const Saturation& of);
  void TellJudge(const TurnResult& result);
  // The verdict of the pairs so far; kNone: more are needed.
  StepVerdict Judge();
  void EndJudge(StepVerdict verdict);
  void BeginEqual();
  // The load of rule 3, in this round.
  double JudgedPerSecond() const;
  double CpusOf(const Allocation& shares) const;

  const ProvisionOptions options_;
  const Allocation start_;
  Allocation kept_;
  Allocation pending_;
  Allocation equal_;
  Phase phase_ = Phase::kSearch;
  ProvisionEnd end_ = ProvisionEnd::kRunning;
  ProvisionEnd no_step_ = ProvisionEnd::kNoStepHelps;  // why the last candidate could not have a step
  std::optional<RateSearch> search_;                   // always there but at the end
  uint64_t arrivals_ = 0;
  std::map<double, std::vector<TierLoad>> failed_;  // at loads that were not met, the latest
  std::vector<ProvisionRound> rounds_;
  std::optional<double> highest_;
  bool highest_is_kept_ = false;  // it is of kept_
  std::optional<double> equal_highest_;
  int without_gain_ = 0;
  // Of the judgement.
  std::vector<double> differences_;
  std::vector<bool> met_with_;
  Pair pair_;
  int turns_ = 0, void_pairs_ = 0;
  double sum_without_ = 0, sum_with_ = 0;
  std::vector<TierLoad> latest_with_;
};

}  // namespace curtail::tool
