// SPDX-License-Identifier: Apache-2.0
//
// policy_summary.h - a comparison of policies over its rounds: medians, who is best, and what to say about
// it.
//
// All policies of a round have the same arrivals, so they are compared round by round. Void runs are left
// out. Indices of scenarios, policies and phases are those of PolicyComparison, REQUIRED to be within. Pure
// functions; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/curtail/compare/policy_runs.h"

namespace curtail::tool {

// The middle of the rounds, and the lowest and highest.
struct RoundSpread {
  double median = 0;
  double low = 0;
  double high = 0;
  size_t rounds = 0;
};

// A phase of PolicyRun::phases, or kWhole for everything after the warm-up.
inline constexpr size_t kWhole = ~size_t{0};

// The runs of a policy under a scenario that are not void, by round.
std::vector<const PolicyRun*> ValidRuns(const PolicyComparison& comparison, size_t scenario, size_t policy);
const PhaseResult& ResultOf(const PolicyRun& run, size_t phase);

// Of the values that `of` gives, which returns an optional<double>; absent where it gives none.
template <class F>
std::optional<RoundSpread> SpreadOver(const std::vector<const PolicyRun*>& runs, F of);
std::optional<RoundSpread> SpreadOfRounds(std::vector<double> values);
std::optional<RoundSpread> P99Us(const PolicyComparison& comparison, size_t scenario, size_t policy,
                                 size_t phase);

// The config that the most rounds had the longest in the phase; empty without a valid run, or where it is
// not known.
std::string MainConfig(const PolicyComparison& comparison, size_t scenario, size_t policy, size_t phase);

enum class Order { kSame, kLower, kHigher, kUnknown };

// How the p99 of one policy compares with another's. It is higher if it was so in every round that both
// have, and by over 5 % at the median. With eight rounds and more, as many are enough as have a chance of
// at most 5 % between equals (the sign test); with one or two, which tell little, it must be twice as high.
// kUnknown without a common round.
struct PairedP99 {
  Order order = Order::kUnknown;
  double ratio = 1;  // of this policy's p99 to the other's, the median over rounds
};
PairedP99 Compare(const PolicyComparison& comparison, size_t scenario, size_t phase, size_t policy,
                  size_t other);

enum class Standing {
  kBest,     // the lowest median p99
  kMatched,  // cannot be told from the best
  kBeaten,
  kUnknown,  // no valid run, or none in a round of the best one's
};
// Of each policy.
std::vector<Standing> Standings(const PolicyComparison& comparison, size_t scenario, size_t phase);

// What became of the first policy, in sentences: at how many loads it is best, matched or beaten, where, by
// whom and by how much; the same against each other policy alone; its flash crowd. At least one sentence.
std::vector<std::string> Verdict(const PolicyComparison& comparison);

// "2 of 24 runs are void and left out: the generator was late (2)"; a line for each thing that limits what
// the numbers say, empty when nothing does.
std::vector<std::string> Caveats(const PolicyComparison& comparison);

// "0.98", "12.0", "> 1 s": a latency in ms, three digits.
std::string MsText(double us);

// Implementation details follow.

template <class F>
std::optional<RoundSpread> SpreadOver(const std::vector<const PolicyRun*>& runs, F of) {
  std::vector<double> values;
  for (const PolicyRun* run : runs) {
    if (const std::optional<double> value = of(*run)) values.push_back(*value);
  }
  return SpreadOfRounds(std::move(values));
}

}  // namespace curtail::tool
