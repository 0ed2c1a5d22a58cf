// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/compare/policy_summary.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "curtail/load/report/statistics.h"

namespace curtail::tool {
namespace {

constexpr double kMargin = 1.05;       // smaller differences are none
constexpr double kFewFactor = 2;       // what is one where rounds are too few
constexpr size_t kFewRounds = 3;       // fewer are too few
constexpr size_t kSignTestRounds = 8;  // from here on a round may be lost
constexpr double kChance = 0.05;
constexpr double kTooSlowUs = 1e6;

// How many of `rounds` one must have lost to be worse.
size_t LossesNeeded(size_t rounds) {
  if (rounds < kSignTestRounds) return rounds;
  // The chance of exactly k losses between equals is n over k times 2^-n; summed up from the top.
  double chance = std::pow(0.5, static_cast<double>(rounds)), tail = 0;
  for (size_t k = rounds; k > 0; --k) {
    tail += chance;
    if (tail > kChance) return k + 1;
    chance *= static_cast<double>(k) / static_cast<double>(rounds - k + 1);
  }
  return rounds;
}

// "by 12 %", "2.3 times", "500 times".
std::string FactorText(double ratio, const char* bound = "") {
  return ratio < 2 ? absl::StrFormat("by %s%.0f %%", bound, 100 * (ratio - 1))
                   : absl::StrFormat("%s%.*f times", bound, ratio < 9.95 ? 1 : 0, ratio);
}

std::string Plural(size_t n, const char* what) { return absl::StrCat(n, " ", what, n == 1 ? "" : "s"); }

// Where the first policy stands in the phases of steady scenarios.
struct Tally {
  size_t phases = 0;
  std::vector<std::string> best, matched, beaten, unknown;
};

// Who has a lower p99 than the first policy: "SIP1 (2.3 times), fm (by 7 %)".
std::string WinnersText(const PolicyComparison& c, size_t scenario, size_t phase) {
  std::vector<std::pair<double, std::string>> winners;
  for (size_t other = 1; other < c.policies.size(); ++other) {
    const PairedP99 paired = Compare(c, scenario, phase, 0, other);
    if (paired.order == Order::kHigher) winners.emplace_back(paired.ratio, c.policies[other]);
  }
  std::sort(winners.rbegin(), winners.rend());
  std::vector<std::string> names;
  for (const auto& [ratio, name] : winners) names.push_back(absl::StrCat(name, " (", FactorText(ratio), ")"));
  return absl::StrJoin(names, ", ");
}

Tally TallyOf(const PolicyComparison& c) {
  Tally tally;
  for (size_t s = 0; s < c.scenarios.size(); ++s) {
    if (c.scenarios[s].name != "steady") continue;
    for (size_t p = 0; p < c.scenarios[s].phases.size(); ++p) {
      ++tally.phases;
      const std::string& name = c.scenarios[s].phases[p].name;
      const std::vector<Standing> standings = Standings(c, s, p);
      const size_t equals = std::count_if(standings.begin(), standings.end(), [](Standing standing) {
        return standing == Standing::kBest || standing == Standing::kMatched;
      });
      if (standings[0] == Standing::kUnknown) tally.unknown.push_back(name);
      else if (standings[0] == Standing::kBeaten)
        tally.beaten.push_back(absl::StrCat("at ", name, " by ", WinnersText(c, s, p)));
      else (equals == 1 ? tally.best : tally.matched).push_back(name);
    }
  }
  return tally;
}

void AddSteady(const PolicyComparison& c, std::vector<std::string>& lines) {
  const Tally tally = TallyOf(c);
  if (tally.phases == 0) return;
  const auto list = [](const std::vector<std::string>& names) { return absl::StrJoin(names, ", "); };
  std::string line =
      absl::StrFormat("%s is best, or cannot be told from the best, at %d of %s", c.policies[0],
                      tally.best.size() + tally.matched.size(), Plural(tally.phases, "steady load"));
  if (!tally.best.empty()) absl::StrAppend(&line, "; alone at ", list(tally.best));
  lines.push_back(line + ".");
  if (!tally.beaten.empty()) {
    lines.push_back(absl::StrFormat("%s is beaten at %d of them: %s.", c.policies[0], tally.beaten.size(),
                                    absl::StrJoin(tally.beaten, "; ")));
  }
  if (!tally.unknown.empty()) {
    lines.push_back(absl::StrCat(c.policies[0], " was not measured at ", list(tally.unknown), "."));
  }
}

// The first policy against one other: at how many loads better and worse, and by how much at most.
std::string AgainstText(const PolicyComparison& c, size_t other) {
  size_t better = 0, worse = 0, same = 0;
  double gain = 1, loss = 1;
  for (size_t s = 0; s < c.scenarios.size(); ++s) {
    if (c.scenarios[s].name != "steady") continue;
    for (size_t p = 0; p < c.scenarios[s].phases.size(); ++p) {
      const PairedP99 paired = Compare(c, s, p, 0, other);
      if (paired.order == Order::kSame) ++same;
      if (paired.order == Order::kLower) ++better, gain = std::max(gain, 1 / paired.ratio);
      if (paired.order == Order::kHigher) ++worse, loss = std::max(loss, paired.ratio);
    }
  }
  if (better + worse + same == 0) return {};
  const auto up_to = [](double factor) { return absl::StrCat(" (", FactorText(factor, "up to "), ")"); };
  return absl::StrFormat("Against %s: better at %d%s, worse at %d%s, not told apart at %d.",
                         c.policies[other], better, better > 0 ? up_to(gain) : "", worse,
                         worse > 0 ? up_to(loss) : "", same);
}

// The spike, and where else in the flash crowd the first policy loses.
void AddCrowd(const PolicyComparison& c, size_t scenario, std::vector<std::string>& lines) {
  const std::vector<Phase>& phases = c.scenarios[scenario].phases;
  for (size_t p = 0; p < phases.size(); ++p) {
    const std::optional<RoundSpread> own = P99Us(c, scenario, 0, p);
    if (!own) continue;
    const Standing standing = Standings(c, scenario, p)[0];
    const bool beaten = standing == Standing::kBeaten, spike = phases[p].name == "spike";
    if (!beaten && !spike) continue;
    const std::string where =
        spike ? "In the spike" : absl::StrCat("In the part \"", phases[p].name, "\" of the flash crowd");
    lines.push_back(absl::StrCat(where, " the p99 of ", c.policies[0], " is ", MsText(own->median),
                                 own->median < kTooSlowUs ? " ms" : "",
                                 beaten                        ? ", beaten by " + WinnersText(c, scenario, p)
                                 : standing == Standing::kBest ? ", the lowest"
                                                               : ", not told from the lowest",
                                 "."));
  }
}

// Any other scenario: its p99 as a whole.
void AddWhole(const PolicyComparison& c, size_t scenario, std::vector<std::string>& lines) {
  const std::vector<Standing> standings = Standings(c, scenario, kWhole);
  if (standings[0] == Standing::kUnknown) return;
  const size_t best = std::find(standings.begin(), standings.end(), Standing::kBest) - standings.begin();
  std::string line = absl::StrFormat("Over the whole %s %s ", c.scenarios[scenario].name, c.policies[0]);
  if (standings[0] == Standing::kBest) {
    line += "has the lowest p99.";
  } else if (standings[0] == Standing::kMatched) {
    absl::StrAppend(&line, "cannot be told from the best, ", c.policies[best], ".");
  } else {
    absl::StrAppend(&line, "is beaten by ", c.policies[best], " (",
                    FactorText(Compare(c, scenario, kWhole, 0, best).ratio), ").");
  }
  lines.push_back(line);
}

}  // namespace

std::vector<const PolicyRun*> ValidRuns(const PolicyComparison& c, size_t scenario, size_t policy) {
  std::vector<const PolicyRun*> runs;
  for (const PolicyRun& run : c.runs) {
    if (run.scenario == scenario && run.policy == c.policies[policy] && run.valid()) runs.push_back(&run);
  }
  std::sort(runs.begin(), runs.end(),
            [](const PolicyRun* a, const PolicyRun* b) { return a->round < b->round; });
  return runs;
}

const PhaseResult& ResultOf(const PolicyRun& run, size_t phase) {
  return phase == kWhole ? run.whole : run.phases[phase];
}

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

PairedP99 Compare(const PolicyComparison& c, size_t scenario, size_t phase, size_t policy, size_t other) {
  std::map<int, double> p99_of_other;
  for (const PolicyRun* run : ValidRuns(c, scenario, other)) {
    const PhaseResult& result = ResultOf(*run, phase);
    if (result.due > 0 && result.p99_us > 0) p99_of_other[run->round] = result.p99_us;
  }
  std::vector<double> ratios;
  for (const PolicyRun* run : ValidRuns(c, scenario, policy)) {
    const PhaseResult& result = ResultOf(*run, phase);
    const auto same_round = p99_of_other.find(run->round);
    if (result.due > 0 && result.p99_us > 0 && same_round != p99_of_other.end())
      ratios.push_back(result.p99_us / same_round->second);
  }
  if (ratios.empty()) return {};
  PairedP99 paired{Order::kSame, Median(ratios)};
  const double margin = ratios.size() < kFewRounds ? kFewFactor : kMargin;
  const size_t needed = LossesNeeded(ratios.size());
  const size_t above = std::count_if(ratios.begin(), ratios.end(), [](double r) { return r > 1; });
  const size_t below = std::count_if(ratios.begin(), ratios.end(), [](double r) { return r < 1; });
  if (above >= needed && paired.ratio > margin) paired.order = Order::kHigher;
  if (below >= needed && paired.ratio < 1 / margin) paired.order = Order::kLower;
  return paired;
}

std::vector<Standing> Standings(const PolicyComparison& c, size_t scenario, size_t phase) {
  std::vector<Standing> standings(c.policies.size(), Standing::kUnknown);
  std::optional<size_t> best;
  double lowest = 0;
  for (size_t policy = 0; policy < c.policies.size(); ++policy) {
    const std::optional<RoundSpread> p99 = P99Us(c, scenario, policy, phase);
    if (!p99 || (best && p99->median >= lowest)) continue;
    best = policy;
    lowest = p99->median;
  }
  for (size_t policy = 0; best && policy < c.policies.size(); ++policy) {
    const Order order = Compare(c, scenario, phase, policy, *best).order;
    if (order != Order::kUnknown)
      standings[policy] = order == Order::kHigher ? Standing::kBeaten : Standing::kMatched;
  }
  if (best) standings[*best] = Standing::kBest;
  return standings;
}

std::vector<std::string> Verdict(const PolicyComparison& c) {
  std::vector<std::string> lines;
  if (c.policies.empty() || c.runs.empty()) return {"Nothing was measured."};
  if (c.policies.size() == 1) return {absl::StrCat("There is nothing to compare ", c.policies[0], " with.")};
  AddSteady(c, lines);
  for (size_t other = 1; other < c.policies.size(); ++other) {
    if (std::string line = AgainstText(c, other); !line.empty()) lines.push_back(std::move(line));
  }
  for (size_t s = 0; s < c.scenarios.size(); ++s) {
    if (c.scenarios[s].name == "flash-crowd") AddCrowd(c, s, lines);
    else if (c.scenarios[s].name != "steady") AddWhole(c, s, lines);
  }
  if (lines.empty()) lines.push_back("No run can be believed.");
  return lines;
}

std::vector<std::string> Caveats(const PolicyComparison& c) {
  std::vector<std::string> lines;
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
  if (c.rounds < static_cast<int>(kFewRounds)) {
    lines.push_back(
        absl::StrFormat("With %s little can be told apart: a difference counts from a factor of %g on.",
                        Plural(c.rounds, "round"), kFewFactor));
  }
  return lines;
}

std::string MsText(double us) {
  if (us >= kTooSlowUs) return "> 1 s";
  const double ms = us / 1e3;
  return absl::StrFormat("%.*f", ms >= 99.95 ? 0 : ms >= 9.995 ? 1 : 2, ms);
}

}  // namespace curtail::tool
