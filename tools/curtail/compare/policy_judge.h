// SPDX-License-Identifier: Apache-2.0
//
// policy_judge.h - which of two policies has the lower p99, and how certain that is.
//
// The rules:
//
//  1. A cell is a phase of a scenario. Two policies are compared by the ratio of their p99 in the same cell
//     and round, as they had the same arrivals. Ratios are averaged as logarithms.
//  2. The unit is the round. Cells of one round share the machine's mood, so they do not count as
//     independent: a round gives one number, the mean over its cells.
//  3. A round counts if both policies ran under every scenario in it, and no such run is void.
//  4. In a cell both may have had the same config in force for nine tenths of the time (kSameShare). Then it
//     gets no verdict, and counts as a ratio of exactly 1: what differs there is noise.
//  5. The mean over the rounds is tested by Student's t. Policies of a round take turns, so between equals
//     the logarithms are symmetric about 0, where heavy tails make the t test careful.
//  6. Rounds are added until the numbers tell, so they are judged several times. With L looks each one tests
//     at 0.05 / L^(2/3), which keeps the chance of a false verdict in any of them below 5 %. The interval of
//     95 % has the same correction.
//  7. "better" and "worse" mean that the interval excludes 1, "level" that it lies within 10 % of 1.
//     Anything else is "cannot tell".
//  8. Fewer than five rounds that count get no verdict, whatever they look like.
//  9. Verdicts on single cells are corrected by the method of Holm (1979) over all cells of the two
//     policies. An interval of a cell is for that cell alone.
//
// Pure functions; any thread. Indices are those of PolicyComparison, REQUIRED to be within.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "curtail/load/report/statistics.h"
#include "tools/curtail/compare/policy_runs.h"

namespace curtail::tool {

inline constexpr size_t kRoundsToJudge = 5;
inline constexpr double kLevelFactor = 1.1;
inline constexpr double kSameShare = 0.9;

enum class Finding { kBetter, kWorse, kLevel, kCannotTell, kSameConfig, kTooFew };
// "better", "worse", "level", "cannot tell", "same config", "too few rounds".
const char* NameOf(Finding finding);
// More rounds are not expected to say anything else.
bool Settled(Finding finding);

// One policy against another.
struct Judgement {
  Finding finding = Finding::kTooFew;
  double ratio = 1;                  // of its p99 to the other's, the geometric mean
  std::optional<Interval> interval;  // of the ratio; absent under two rounds
  double p = 1;
  size_t rounds = 0;  // that count
};

struct CellJudgement {
  size_t scenario = 0;
  size_t phase = 0;  // or kWhole
  Judgement judgement;
};

struct PairJudgement {
  Judgement overall;  // over all phases
  // All phases of all scenarios, and the whole of each, which only ramps, crowds and days are judged by.
  std::vector<CellJudgement> cells;
  size_t void_rounds = 0;  // in which a run of either is void

  // The judgement of that cell.
  const Judgement& At(size_t scenario, size_t phase) const;
};

// Judges `policy` against `other`. The reader may pick these two among `pairs` pairs by their results; then
// the verdicts on cells are corrected for all of them.
PairJudgement JudgePair(const PolicyComparison& comparison, size_t policy, size_t other, size_t pairs = 1);

// The latency of a phase in us, by which two policies are compared; zero leaves the phase out.
using PhaseLatency = double (*)(const PhaseResult&);
// Judges `policy` against `other` over all phases by another latency than the p99.
Judgement JudgeBy(PhaseLatency latency, const PolicyComparison& comparison, size_t policy, size_t other);
// "0.91 (95 %: 0.86 to 0.97) times"; without the interval under five rounds.
std::string TimesText(const Judgement& judgement);

// At which each of `looks` looks tests: rule 6.
double LookSignificance(size_t looks);

// The pairs of the first policy that more rounds may settle: "mutune against fm: 0.92 (0.70 to 1.20), cannot
// tell". Empty when all are settled.
std::string Unsettled(const PolicyComparison& comparison);

}  // namespace curtail::tool
