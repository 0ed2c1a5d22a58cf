// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/compare/policy_judge.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace curtail::tool {
namespace {

constexpr double kFalseVerdicts = 0.05;

// Both runs of a round under one scenario.
struct RunPair {
  const PolicyRun* policy;
  const PolicyRun* other;
};
using RunPairs = std::map<int, RunPair>;  // by round

RunPairs PairsOf(const PolicyComparison& c, size_t scenario, size_t policy, size_t other) {
  std::map<int, const PolicyRun*> others;
  for (const PolicyRun* run : ValidRuns(c, scenario, other)) others[run->round] = run;
  RunPairs pairs;
  for (const PolicyRun* run : ValidRuns(c, scenario, policy)) {
    if (const auto at = others.find(run->round); at != others.end()) pairs[run->round] = {run, at->second};
  }
  return pairs;
}

double P99Of(const PhaseResult& result) { return result.p99_us; }

// Absent where nothing was due.
std::optional<double> LogRatio(const RunPair& pair, size_t phase, PhaseLatency latency) {
  const double a = latency(ResultOf(*pair.policy, phase)), b = latency(ResultOf(*pair.other, phase));
  if (a <= 0 || b <= 0) return std::nullopt;
  return std::log(a / b);
}

// For how much of the phase, at least, both had the same config in force.
double SharedTime(const RunPair& pair, size_t phase) {
  const PhaseResult& a = ResultOf(*pair.policy, phase);
  const PhaseResult& b = ResultOf(*pair.other, phase);
  if (a.config.empty() || a.config != b.config) return 0;
  return std::max(0.0, a.config_share + b.config_share - 1);
}

bool SameConfig(const RunPairs& pairs, size_t phase) {
  double shared = 0;
  for (const auto& [round, pair] : pairs) shared += SharedTime(pair, phase);
  return !pairs.empty() && shared >= kSameShare * static_cast<double>(pairs.size());
}

// Rules 5 to 8.
Judgement JudgeLogs(std::span<const double> logs, double significance) {
  Judgement judgement{.rounds = logs.size()};
  if (logs.empty()) return judgement;
  double sum = 0;
  for (const double value : logs) sum += value;
  judgement.ratio = std::exp(sum / static_cast<double>(logs.size()));
  judgement.p = MeanZeroP(logs);
  if (const auto interval = MeanInterval(logs, 1 - significance))
    judgement.interval = {std::exp(interval->low), std::exp(interval->high)};
  if (logs.size() < kRoundsToJudge) return judgement;
  const Interval& i = *judgement.interval;
  judgement.finding = i.low > 1                                             ? Finding::kWorse
                      : i.high < 1                                          ? Finding::kBetter
                      : i.low >= 1 / kLevelFactor && i.high <= kLevelFactor ? Finding::kLevel
                                                                            : Finding::kCannotTell;
  return judgement;
}

// Rule 9: takes back the verdicts on cells that may be chance among so many.
void CorrectByHolm(std::vector<CellJudgement>& cells, size_t pairs, double significance) {
  std::vector<Judgement*> tests;
  for (CellJudgement& cell : cells) {
    const Finding finding = cell.judgement.finding;
    if (finding != Finding::kSameConfig && finding != Finding::kTooFew) tests.push_back(&cell.judgement);
  }
  std::sort(tests.begin(), tests.end(), [](const Judgement* a, const Judgement* b) { return a->p < b->p; });
  bool holds = true;
  for (size_t i = 0; i < tests.size(); ++i) {
    holds = holds && tests[i]->p * static_cast<double>((tests.size() - i) * pairs) < significance;
    Finding& finding = tests[i]->finding;
    if (!holds && (finding == Finding::kBetter || finding == Finding::kWorse)) finding = Finding::kCannotTell;
  }
}

// The pair under all scenarios.
class PairJudge {
 public:
  PairJudge(const PolicyComparison& c, size_t policy, size_t other, PhaseLatency latency = P99Of)
      : c_(c), latency_(latency), significance_(LookSignificance(static_cast<size_t>(std::max(1, c.looks)))) {
    for (size_t s = 0; s < c.scenarios.size(); ++s) scenarios_.push_back(PairsOf(c, s, policy, other));
    KeepWholeRounds();
  }

  Judgement Cell(size_t scenario, size_t phase) const {
    std::vector<double> logs;
    for (const auto& [round, pair] : scenarios_[scenario]) {
      if (const std::optional<double> log = LogRatio(pair, phase, latency_)) logs.push_back(*log);
    }
    Judgement judgement = JudgeLogs(logs, significance_);
    if (SameConfig(scenarios_[scenario], phase)) judgement.finding = Finding::kSameConfig;
    return judgement;
  }

  // Over all phases: rules 2 to 4.
  Judgement Overall() const {
    std::vector<double> logs;
    bool all_same = true;
    for (const int round : rounds_) {
      double sum = 0, cells = 0;
      for (size_t s = 0; s < scenarios_.size(); ++s) {
        for (size_t p = 0; p < c_.scenarios[s].phases.size(); ++p) {
          const std::optional<double> log = LogRatio(scenarios_[s].at(round), p, latency_);
          if (!log) continue;
          ++cells;
          if (SameConfig(scenarios_[s], p)) continue;
          sum += *log;
          all_same = false;
        }
      }
      if (cells > 0) logs.push_back(sum / cells);
    }
    Judgement judgement = JudgeLogs(logs, significance_);
    if (!logs.empty() && all_same) judgement.finding = Finding::kSameConfig;
    return judgement;
  }

  double significance() const { return significance_; }

 private:
  // Rule 3.
  void KeepWholeRounds() {
    if (scenarios_.empty()) return;
    for (const auto& [round, pair] : scenarios_.front()) {
      if (std::all_of(scenarios_.begin(), scenarios_.end(),
                      [&, r = round](const RunPairs& pairs) { return pairs.contains(r); }))
        rounds_.push_back(round);
    }
  }

  const PolicyComparison& c_;
  const PhaseLatency latency_;
  const double significance_;
  std::vector<RunPairs> scenarios_;
  std::vector<int> rounds_;  // that count for all scenarios
};

size_t VoidRounds(const PolicyComparison& c, size_t policy, size_t other) {
  std::map<int, bool> rounds;
  for (const PolicyRun& run : c.runs) {
    if (!run.valid() && (run.policy == c.policies[policy] || run.policy == c.policies[other]))
      rounds[run.round] = true;
  }
  return rounds.size();
}

}  // namespace

const char* NameOf(Finding finding) {
  switch (finding) {
    case Finding::kBetter:
      return "better";
    case Finding::kWorse:
      return "worse";
    case Finding::kLevel:
      return "level";
    case Finding::kCannotTell:
      return "cannot tell";
    case Finding::kSameConfig:
      return "same config";
    case Finding::kTooFew:
      break;
  }
  return "too few rounds";
}

bool Settled(Finding finding) { return finding != Finding::kCannotTell && finding != Finding::kTooFew; }

double LookSignificance(size_t looks) {
  return kFalseVerdicts / std::pow(static_cast<double>(looks), 2.0 / 3);
}

const Judgement& PairJudgement::At(size_t scenario, size_t phase) const {
  return std::find_if(
             cells.begin(), cells.end(),
             [&](const CellJudgement& cell) { return cell.scenario == scenario && cell.phase == phase; })
      ->judgement;
}

PairJudgement JudgePair(const PolicyComparison& c, size_t policy, size_t other, size_t pairs) {
  const PairJudge judge(c, policy, other);
  PairJudgement result{.overall = judge.Overall(), .void_rounds = VoidRounds(c, policy, other)};
  for (size_t s = 0; s < c.scenarios.size(); ++s) {
    for (size_t p = 0; p < c.scenarios[s].phases.size(); ++p)
      result.cells.push_back({s, p, judge.Cell(s, p)});
    result.cells.push_back({s, kWhole, judge.Cell(s, kWhole)});
  }
  CorrectByHolm(result.cells, pairs, judge.significance());
  return result;
}

Judgement JudgeBy(PhaseLatency latency, const PolicyComparison& c, size_t policy, size_t other) {
  return PairJudge(c, policy, other, latency).Overall();
}

std::string TimesText(const Judgement& judgement) {
  std::string text = absl::StrFormat("%.2f", judgement.ratio);
  if (judgement.rounds >= kRoundsToJudge && judgement.interval)
    absl::StrAppendFormat(&text, " (95 %%: %.2f to %.2f)", judgement.interval->low, judgement.interval->high);
  return text + " times";
}

std::string Unsettled(const PolicyComparison& c) {
  constexpr size_t kShown = 3;
  std::vector<std::string> texts;
  size_t more = 0;
  for (size_t other = 1; other < c.policies.size(); ++other) {
    const PairJudgement pair = JudgePair(c, 0, other);
    const Judgement& overall = pair.overall;
    if (Settled(overall.finding)) continue;
    if (texts.size() == kShown) {
      ++more;
      continue;
    }
    std::string text = absl::StrCat(c.policies[0], " against ", c.policies[other], ": ");
    if (overall.finding == Finding::kTooFew) {
      absl::StrAppendFormat(&text, "%d of the %d rounds that a verdict takes", overall.rounds,
                            kRoundsToJudge);
    } else {
      absl::StrAppendFormat(&text, "%.2f times (%.2f to %.2f), cannot tell", overall.ratio,
                            overall.interval->low, overall.interval->high);
    }
    if (pair.void_rounds > 0) absl::StrAppend(&text, ", ", pair.void_rounds, " void");
    texts.push_back(std::move(text));
  }
  if (more > 0) texts.push_back(absl::StrCat(more, " more"));
  return absl::StrJoin(texts, "; ");
}

}  // namespace curtail::tool
