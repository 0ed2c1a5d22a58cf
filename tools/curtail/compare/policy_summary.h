// SPDX-License-Identifier: Apache-2.0
//
// policy_summary.h - a comparison of policies over its rounds: medians, standings, and the verdict in words.
//
// The rules of the verdict are in policy_judge.h. Void runs are left out. Indices of scenarios, policies and phases are those of PolicyComparison, REQUIRED to be within. Pure
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

// Of the values that `of` gives, which returns an optional<double>; absent where it gives none.
template <class F>
std::optional<RoundSpread> SpreadOver(const std::vector<const PolicyRun*>& runs, F of);
std::optional<RoundSpread> SpreadOfRounds(std::vector<double> values);
std::optional<RoundSpread> P99Us(const PolicyComparison& comparison, size_t scenario, size_t policy,
                                 size_t phase);

// The config that the most rounds had the longest in the phase; empty without a valid run, or where it is
// not known.
std::string MainConfig(const PolicyComparison& comparison, size_t scenario, size_t policy, size_t phase);

enum class Standing {
  kBest,     // the lowest median p99 of two policies or more
  kMatched,  // not told from the best
  kBeaten,   // higher, by the rules of policy_judge.h for all pairs of policies
  kUnknown,  // no valid run, none in a round of the best one's, or no other policy to stand beside
};
// Of each policy.
std::vector<Standing> Standings(const PolicyComparison& comparison, size_t scenario, size_t phase);

// The first policy against the others, in sentences: over all cells, against each one alone with the ratio
// and its interval, in the spike, over each whole ramp and day, and by p99 and CPU. Says nothing about a policy that did not
// run. At least one sentence.
std::vector<std::string> Verdict(const PolicyComparison& comparison);

// "2 of 24 runs are void and left out: the generator was late (2)"; a line for each thing that limits what
// the numbers say, empty when nothing does.
std::vector<std::string> Caveats(const PolicyComparison& comparison);

// "0.98", "12.0", "> 1 s": a latency in ms, three digits.
std::string MsText(double us);
// "0.53", "12.5", "192".
std::string RatioText(double ratio);

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
