// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/compare/policy_summary.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "curtail/load/report/statistics.h"
#include "tools/curtail/compare/policy_cost.h"
#include "tools/curtail/compare/policy_judge.h"

namespace curtail::tool {
namespace {

constexpr double kTooSlowUs = 1e6;

std::string Plural(size_t n, const char* what) { return absl::StrCat(n, " ", what, n == 1 ? "" : "s"); }

bool Measured(const PolicyComparison& c, size_t policy) {
  for (size_t s = 0; s < c.scenarios.size(); ++s) {
    if (!ValidRuns(c, s, policy).empty()) return true;
  }
  return false;
}

// The first policy against each other one that was measured.
struct Rival {
  std::string name;
  PairJudgement pair;
};
std::vector<Rival> Rivals(const PolicyComparison& c) {
  std::vector<Rival> rivals;
  for (size_t other = 1; other < c.policies.size(); ++other) {
    if (Measured(c, other)) rivals.push_back({c.policies[other], JudgePair(c, 0, other)});
  }
  return rivals;
}

// "better than fm (0.77), ipi (0.60); level with tbd"; empty where none was judged.
template <class F>
std::string GroupsText(const std::vector<Rival>& rivals, F judgement_of) {
  constexpr std::pair<Finding, const char*> kGroups[] = {{Finding::kBetter, "better than"},
                                                         {Finding::kWorse, "worse than"},
                                                         {Finding::kLevel, "level with"},
                                                         {Finding::kSameConfig, "in the same config as"},
                                                         {Finding::kCannotTell, "not told apart from"}};
  std::vector<std::string> groups;
  for (const auto& [finding, words] : kGroups) {
    std::vector<std::string> names;
    for (const Rival& rival : rivals) {
      const Judgement& judgement = judgement_of(rival);
      if (judgement.finding != finding) continue;
      const bool told = finding == Finding::kBetter || finding == Finding::kWorse;
      names.push_back(told ? absl::StrCat(rival.name, " (", RatioText(judgement.ratio), ")") : rival.name);
    }
    if (!names.empty()) groups.push_back(absl::StrCat(words, " ", absl::StrJoin(names, ", ")));
  }
  return absl::StrJoin(groups, "; ");
}

// "1.01 ms under mutune, > 1 s under fm": the medians.
std::string MediansText(const PolicyComparison& c, size_t scenario, size_t phase) {
  std::vector<std::string> texts;
  for (size_t policy = 0; policy < c.policies.size(); ++policy) {
    const std::optional<RoundSpread> p99 = P99Us(c, scenario, policy, phase);
    if (!p99) continue;
    texts.push_back(absl::StrCat(MsText(p99->median), p99->median < kTooSlowUs ? " ms" : "", " under ",
                                 c.policies[policy]));
  }
  return absl::StrJoin(texts, ", ");
}

size_t CellsOf(const PolicyComparison& c) {
  size_t cells = 0;
  for (const Scenario& scenario : c.scenarios) cells += scenario.phases.size();
  return cells;
}

std::string LeadText(const PolicyComparison& c, const std::vector<Rival>& rivals) {
  const std::string groups =
      GroupsText(rivals, [](const Rival& rival) -> const Judgement& { return rival.pair.overall; });
  if (!groups.empty())
    return absl::StrFormat("Over all %s %s is %s.", Plural(CellsOf(c), "cell"), c.policies[0], groups);
  size_t rounds = 0;
  for (const Rival& rival : rivals) rounds = std::max(rounds, rival.pair.overall.rounds);
  return absl::StrFormat("No verdict: it takes %d rounds that count, and there %s %d.", kRoundsToJudge,
                         rounds == 1 ? "is" : "are", rounds);
}

// "100/s up", "flash-crowd spike".
std::string CellName(const PolicyComparison& c, const CellJudgement& cell) {
  const Scenario& scenario = c.scenarios[cell.scenario];
  const std::string& phase = scenario.phases[cell.phase].name;
  return scenario.name == "steady" ? phase : absl::StrCat(scenario.name, " ", phase);
}

// "better at 1 cell (100/s up 0.77), level at 2": empty where none was judged.
std::string CellsText(const PolicyComparison& c, const PairJudgement& pair) {
  std::vector<std::string> parts;
  for (const Finding finding :
       {Finding::kBetter, Finding::kWorse, Finding::kLevel, Finding::kSameConfig, Finding::kCannotTell}) {
    std::vector<std::string> cells;
    for (const CellJudgement& cell : pair.cells) {
      if (cell.phase == kWhole || cell.judgement.finding != finding) continue;
      cells.push_back(absl::StrCat(CellName(c, cell), " ", RatioText(cell.judgement.ratio)));
    }
    if (cells.empty()) continue;
    const bool told = finding == Finding::kBetter || finding == Finding::kWorse;
    parts.push_back(absl::StrCat(NameOf(finding), " at ", cells.size(),
                                 told ? absl::StrCat(" (", absl::StrJoin(cells, ", "), ")") : ""));
  }
  return absl::StrJoin(parts, ", ");
}

std::string AgainstText(const PolicyComparison& c, const Rival& rival) {
  const Judgement& overall = rival.pair.overall;
  std::string text = absl::StrCat("Against ", rival.name, ": ", NameOf(overall.finding));
  if (overall.rounds > 0) absl::StrAppend(&text, ", with ", RatioText(overall.ratio), " times the p99");
  if (overall.rounds >= kRoundsToJudge) {
    absl::StrAppend(&text, " (95 %: ", RatioText(overall.interval->low), " to ",
                    RatioText(overall.interval->high), ")");
  }
  absl::StrAppend(&text, ", ", Plural(overall.rounds, "round"));
  if (const std::string cells = CellsText(c, rival.pair); !cells.empty())
    absl::StrAppend(&text, ". By cell: ", cells);
  return text + ".";
}

// The spike of each crowd, and each ramp and day as a whole.
void AddScenarios(const PolicyComparison& c, const std::vector<Rival>& rivals,
                  std::vector<std::string>& lines) {
  for (size_t s = 0; s < c.scenarios.size(); ++s) {
    const Scenario& scenario = c.scenarios[s];
    if (scenario.name == "steady") continue;
    const Phase* spike = FindPhase(scenario, "spike");
    const size_t phase = spike == nullptr ? kWhole : static_cast<size_t>(spike - scenario.phases.data());
    const std::string medians = MediansText(c, s, phase);
    if (medians.empty()) continue;
    const std::string where =
        spike == nullptr ? absl::StrCat("Over the whole ", scenario.name) : "In the spike";
    std::string line = absl::StrCat(where, " the p99 is ", medians);
    const std::string groups =
        GroupsText(rivals, [&](const Rival& rival) -> const Judgement& { return rival.pair.At(s, phase); });
    if (!groups.empty()) absl::StrAppend(&line, "; ", c.policies[0], " is ", groups);
    lines.push_back(line + ".");
  }
}

// "mutune, fm": those of which no run is valid.
std::vector<std::string> Unmeasured(const PolicyComparison& c) {
  std::vector<std::string> names;
  for (size_t policy = 0; policy < c.policies.size(); ++policy) {
    if (!Measured(c, policy)) names.push_back(c.policies[policy]);
  }
  return names;
}

}  // namespace

std::optional<RoundSpread> SpreadOfRounds(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return RoundSpread{Median(values), *low, *high, values.size()};
}

std::optional<RoundSpread> P99Us(const PolicyComparison& c, size_t scenario, size_t policy, size_t phase) {
  return SpreadOver(ValidRuns(c, scenario, policy), [&](const PolicyRun& run) -> std::optional<double> {
    const PhaseResult& result = ResultOf(run, phase);
    if (result.due == 0) return std::nullopt;
    return result.p99_us;
  });
}

std::string MainConfig(const PolicyComparison& c, size_t scenario, size_t policy, size_t phase) {
  std::map<std::string, int> counts;
  for (const PolicyRun* run : ValidRuns(c, scenario, policy)) ++counts[ResultOf(*run, phase).config];
  const auto most = std::max_element(counts.begin(), counts.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? "" : most->first;
}

std::vector<Standing> Standings(const PolicyComparison& c, size_t scenario, size_t phase) {
  std::vector<Standing> standings(c.policies.size(), Standing::kUnknown);
  std::optional<size_t> best;
  double lowest = 0;
  size_t measured = 0;
  for (size_t policy = 0; policy < c.policies.size(); ++policy) {
    const std::optional<RoundSpread> p99 = P99Us(c, scenario, policy, phase);
    if (!p99) continue;
    ++measured;
    if (best && p99->median >= lowest) continue;
    best = policy;
    lowest = p99->median;
  }
  if (measured < 2) return standings;
  for (size_t policy = 0; policy < c.policies.size(); ++policy) {
    if (policy == *best) continue;
    // The best one was picked by the result: any pair might have been this one.
    const PairJudgement pair = JudgePair(c, policy, *best, measured * (measured - 1) / 2);
    const Judgement& judgement = pair.At(scenario, phase);
    if (judgement.rounds == 0) continue;
    standings[policy] = judgement.finding == Finding::kWorse ? Standing::kBeaten : Standing::kMatched;
  }
  standings[*best] = Standing::kBest;
  return standings;
}

std::vector<std::string> Verdict(const PolicyComparison& c) {
  if (c.policies.empty() || c.runs.empty()) return {"Nothing was measured."};
  if (c.policies.size() == 1) return {absl::StrCat("There is nothing to compare ", c.policies[0], " with.")};
  const std::vector<std::string> unmeasured = Unmeasured(c);
  std::vector<std::string> lines;
  const std::vector<Rival> rivals = Rivals(c);
  if (unmeasured.size() == c.policies.size()) {
    lines.push_back("No verdict: no run can be believed.");
  } else if (!Measured(c, 0) || rivals.empty()) {
    lines.push_back("No verdict: there are not two policies that were measured.");
  } else {
    lines.push_back(LeadText(c, rivals));
    for (const Rival& rival : rivals) lines.push_back(AgainstText(c, rival));
  }
  if (!unmeasured.empty()) {
    lines.push_back(
        absl::StrCat("Not measured, so nothing is said about: ", absl::StrJoin(unmeasured, ", "), "."));
  }
  AddScenarios(c, rivals, lines);
  for (std::string text : {FrontText(c), ReachText(c)}) {
    if (!text.empty()) lines.push_back(std::move(text));
  }
  if (c.interrupted) lines.front() = absl::StrCat("PARTIAL. ", lines.front());
  return lines;
}

std::vector<std::string> Caveats(const PolicyComparison& c) {
  std::vector<std::string> lines = c.notes;
  std::map<std::string, size_t> reasons;
  size_t runs_void = 0;
  for (const PolicyRun& run : c.runs) {
    if (run.valid()) continue;
    ++runs_void;
    for (const std::string& reason : run.invalid) ++reasons[reason];
  }
  if (c.interrupted) lines.push_back("Interrupted: some rounds are missing or incomplete.");
  if (runs_void > 0) {
    std::vector<std::string> texts;
    for (const auto& [reason, count] : reasons) texts.push_back(absl::StrFormat("%s (%d)", reason, count));
    lines.push_back(
        absl::StrFormat("%d of %s void and left out: %s.", runs_void,
                        c.runs.size() == 1 ? "1 run is" : absl::StrCat(c.runs.size(), " runs are"),
                        absl::StrJoin(texts, "; ")));
  }
  std::vector<std::string> close;
  for (const Rival& rival : Rivals(c)) {
    if (rival.pair.overall.finding == Finding::kCannotTell) close.push_back(rival.name);
  }
  if (!close.empty()) {
    lines.push_back(absl::StrCat("It takes more rounds to tell ", c.policies[0], " from ",
                                 absl::StrJoin(close, ", "), "."));
  }
  return lines;
}

std::string MsText(double us) {
  if (us >= kTooSlowUs) return "> 1 s";
  const double ms = us / 1e3;
  return absl::StrFormat("%.*f", ms >= 99.95 ? 0 : ms >= 9.995 ? 1 : 2, ms);
}

std::string RatioText(double ratio) {
  return absl::StrFormat("%.*f", ratio < 9.95 ? 2 : ratio < 99.5 ? 1 : 0, ratio);
}

}  // namespace curtail::tool
