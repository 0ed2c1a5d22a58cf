// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/compare/policy_tables.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "curtail/adapt/policy_kind.h"
#include "tools/curtail/compare/policy_cost.h"
#include "tools/curtail/compare/policy_judge.h"

namespace curtail::tool {
namespace {

using Runs = std::vector<const PolicyRun*>;
using Text = std::string (*)(double);

std::string CountText(double count) { return absl::StrFormat("%.6g", count); }
std::string CoresText(double cores) { return absl::StrFormat("%.2f", cores); }
std::string PlainMs(double us) {
  return us == 0 ? "0" : us < 99'950 ? MsText(us) : absl::StrFormat("%.0f", us / 1e3);
}

ReportCell SpreadCell(const std::optional<RoundSpread>& spread, Text text) {
  if (!spread) return {"-"};
  const std::string low = text(spread->low), high = text(spread->high);
  return {text(spread->median), low == high ? "" : absl::StrCat(low, "-", high)};
}

// Of a number that each run has.
template <class F>
ReportCell RunsCell(const Runs& runs, Text text, F of) {
  return SpreadCell(SpreadOver(runs, of), text);
}

ReportCell CoresCell(const Runs& runs) {
  return RunsCell(runs, CoresText, [](const PolicyRun& run) { return std::optional(run.server_cores); });
}
ReportCell SwitchesCell(const Runs& runs) {
  return RunsCell(runs, CountText,
                  [](const PolicyRun& run) { return std::optional(static_cast<double>(run.switches)); });
}
ReportCell FailedCell(const Runs& runs) {
  return RunsCell(runs, CountText,
                  [](const PolicyRun& run) { return std::optional(static_cast<double>(run.whole.failed)); });
}
ReportCell RestlessCell(const Runs& runs) {
  return RunsCell(runs, CountText, [](const PolicyRun& run) {
    return std::optional(static_cast<double>(run.most_switches_in_a_second));
  });
}

// A time that only some runs have; "-" where most have none.
ReportCell TimeCell(const Runs& runs, std::optional<Nanos> PolicyRun::* time) {
  std::vector<double> values;
  for (const PolicyRun* run : runs) {
    if (run->*time) values.push_back(static_cast<double>((run->*time)->count()) / 1e3);
  }
  if (values.size() * 2 < runs.size()) return {"-"};
  return SpreadCell(SpreadOfRounds(std::move(values)), PlainMs);
}

ReportCell P99Cell(const PolicyComparison& c, size_t scenario, size_t policy, size_t phase,
                   const std::vector<Standing>& standings) {
  ReportCell cell = SpreadCell(P99Us(c, scenario, policy, phase), MsText);
  if (cell.text != "-") cell.standing = standings[policy];
  return cell;
}

// A row in which each policy has a cell.
template <class F>
ReportRow RowOfPolicies(const PolicyComparison& c, std::string name, F cell) {
  ReportRow row{std::move(name), {}};
  for (size_t policy = 0; policy < c.policies.size(); ++policy) row.cells.push_back(cell(policy));
  return row;
}

ReportTable ForScenario(const PolicyComparison& c, size_t scenario, std::string text) {
  return {absl::StrCat(c.scenarios[scenario].name, ": ", c.scenarios[scenario].text), std::move(text)};
}

// As figure 14 of muTune: loads down, policies across.
ReportTable SteadyTable(const PolicyComparison& c, size_t scenario) {
  ReportTable table = ForScenario(c, scenario, "p99 in ms: median of the rounds (lowest-highest)");
  table.corner = "load";
  for (const std::string& policy : c.policies) table.columns.emplace_back(ShortName(policy));
  const std::vector<Phase>& phases = c.scenarios[scenario].phases;
  for (size_t p = 0; p < phases.size(); ++p) {
    const std::vector<Standing> standings = Standings(c, scenario, p);
    table.rows.push_back(RowOfPolicies(
        c, phases[p].name, [&](size_t policy) { return P99Cell(c, scenario, policy, p, standings); }));
  }
  const auto add = [&](const char* name, ReportCell (*cell)(const Runs&)) {
    table.rows.push_back(
        RowOfPolicies(c, name, [&](size_t policy) { return cell(ValidRuns(c, scenario, policy)); }));
  };
  add("failed", FailedCell);
  add("CPU cores", CoresCell);
  add("switches", SwitchesCell);
  add("most in 1 s", RestlessCell);
  return table;
}

// muTune labels the bars of figure 14 with the config that was chosen; here, for the policies that changed
// theirs.
ReportTable ConfigTable(const PolicyComparison& c, size_t scenario) {
  ReportTable table{"", "config in force the longest at each load, in most rounds", "load"};
  const std::vector<Phase>& phases = c.scenarios[scenario].phases;
  for (const Phase& phase : phases) table.rows.push_back({phase.name, {}});
  for (size_t policy = 0; policy < c.policies.size(); ++policy) {
    const Runs runs = ValidRuns(c, scenario, policy);
    if (std::none_of(runs.begin(), runs.end(), [](const PolicyRun* run) { return run->switches > 0; }))
      continue;
    table.columns.emplace_back(ShortName(c.policies[policy]));
    for (size_t p = 0; p < phases.size(); ++p) {
      const std::string config = MainConfig(c, scenario, policy, p);
      table.rows[p].cells.push_back({config.empty() ? "-" : config});
    }
  }
  return table;
}

std::string SettledConfig(const Runs& runs) {
  std::map<std::string, int> counts;
  for (const PolicyRun* run : runs) ++counts[run->settled_config];
  const auto most = std::max_element(counts.begin(), counts.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() || most->first.empty() ? "-" : most->first;
}

// As table 2 of muTune: policies down, the parts of the flash crowd across.
ReportTable CrowdTable(const PolicyComparison& c, size_t scenario) {
  ReportTable table = ForScenario(c, scenario,
                                  "p99, backlog and reaction in ms: median of the rounds (lowest-highest); "
                                  "config: at the end of the spike");
  table.corner = "policy";
  std::vector<std::vector<Standing>> standings;
  for (size_t p = 0; p < c.scenarios[scenario].phases.size(); ++p) {
    const std::string& phase = c.scenarios[scenario].phases[p].name;
    table.columns.push_back(phase == "first second after" ? "1 s after" : phase);
    standings.push_back(Standings(c, scenario, p));
  }
  for (const char* name : {"failed", "backlog", "reaction", "switches", "cores", "config"})
    table.columns.push_back(name);
  for (size_t policy = 0; policy < c.policies.size(); ++policy) {
    const Runs runs = ValidRuns(c, scenario, policy);
    ReportRow row{std::string(ShortName(c.policies[policy])), {}};
    for (size_t p = 0; p < standings.size(); ++p)
      row.cells.push_back(P99Cell(c, scenario, policy, p, standings[p]));
    row.cells.push_back(FailedCell(runs));
    row.cells.push_back(TimeCell(runs, &PolicyRun::backlog_after_spike));
    row.cells.push_back(TimeCell(runs, &PolicyRun::reaction));
    row.cells.push_back(SwitchesCell(runs));
    row.cells.push_back(CoresCell(runs));
    row.cells.push_back({SettledConfig(runs)});
    table.rows.push_back(std::move(row));
  }
  return table;
}

// Any other scenario: policies down, its phases across.
ReportTable WholeTable(const PolicyComparison& c, size_t scenario) {
  ReportTable table = ForScenario(c, scenario, "p99 in ms: median of the rounds (lowest-highest)");
  table.corner = "policy";
  table.columns.push_back("whole");
  std::vector<std::pair<size_t, std::vector<Standing>>> parts{{kWhole, Standings(c, scenario, kWhole)}};
  for (size_t p = 0; p < c.scenarios[scenario].phases.size(); ++p) {
    table.columns.push_back(c.scenarios[scenario].phases[p].name);
    parts.emplace_back(p, Standings(c, scenario, p));
  }
  for (const char* name : {"failed", "switches", "CPU cores"}) table.columns.push_back(name);
  for (size_t policy = 0; policy < c.policies.size(); ++policy) {
    const Runs runs = ValidRuns(c, scenario, policy);
    ReportRow row{std::string(ShortName(c.policies[policy])), {}};
    for (const auto& [phase, standings] : parts)
      row.cells.push_back(P99Cell(c, scenario, policy, phase, standings));
    for (const ReportCell& cell : {FailedCell(runs), SwitchesCell(runs), CoresCell(runs)})
      row.cells.push_back(cell);
    table.rows.push_back(std::move(row));
  }
  return table;
}

// The first policy against the one of this row.
void AppendJudgement(const PolicyComparison& c, size_t policy, ReportRow& row) {
  const Judgement judgement = policy == 0 ? Judgement() : JudgePair(c, 0, policy).overall;
  if (judgement.rounds == 0) {
    row.cells.insert(row.cells.end(), 2, {"-"});
    return;
  }
  ReportCell ratio{RatioText(judgement.ratio)};
  if (judgement.rounds >= kRoundsToJudge)
    ratio.range = absl::StrCat(RatioText(judgement.interval->low), "-", RatioText(judgement.interval->high));
  row.cells.push_back(std::move(ratio));
  row.cells.push_back({NameOf(judgement.finding)});
}

// The result of each policy over all cells; no rows without a cost.
ReportTable OverallTable(const PolicyComparison& c) {
  ReportTable table{
      "over all loads",
      "p99 in ms, the geometric mean over all cells; CPU of the mid-tier in a round; ratio of the "
      "first policy's p99 (95 %)",
      "policy",
      {"p99", "CPU, s", "front", "ratio", "verdict"}};
  const std::vector<std::optional<PolicyCost>> costs = CostsOf(c);
  for (size_t policy = 0; policy < c.policies.size(); ++policy) {
    if (!costs[policy]) continue;
    ReportRow row{std::string(ShortName(c.policies[policy])), {}};
    row.cells = {{PlainMs(costs[policy]->p99_us)},
                 {absl::StrFormat("%.3g", costs[policy]->cpu_s)},
                 {costs[policy]->on_front ? "yes" : "-"}};
    AppendJudgement(c, policy, row);
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

std::vector<ReportTable> ReportTables(const PolicyComparison& c) {
  std::vector<ReportTable> tables;
  if (ReportTable overall = OverallTable(c); overall.rows.size() > 1) tables.push_back(std::move(overall));
  for (size_t s = 0; s < c.scenarios.size(); ++s) {
    const std::string& name = c.scenarios[s].name;
    tables.push_back(name == "steady"        ? SteadyTable(c, s)
                     : name == "flash-crowd" ? CrowdTable(c, s)
                                             : WholeTable(c, s));
    if (name != "steady") continue;
    if (ReportTable configs = ConfigTable(c, s); !configs.columns.empty())
      tables.push_back(std::move(configs));
  }
  return tables;
}

char MarkOf(Standing standing) {
  return standing == Standing::kBest ? '*' : standing == Standing::kMatched ? '=' : ' ';
}

std::string_view ShortName(std::string_view policy) {
  const absl::StatusOr<PolicySpec> spec = ParsePolicy(policy);
  const bool fixed = spec.ok() && !spec->kind->switches && !spec->argument.empty();
  return fixed ? spec->argument : policy;
}

std::string OriginText(const PolicyComparison& c) {
  std::string text = c.application;
  if (!c.data.empty()) absl::StrAppend(&text, " over ", c.data);
  absl::StrAppend(&text, "; ", c.profile.empty() ? "no profile" : absl::StrCat("profile ", c.profile));
  if (c.slo > Nanos::zero())
    absl::StrAppendFormat(&text, "; SLO %g ms", static_cast<double>(c.slo.count()) / 1e6);
  absl::StrAppendFormat(&text, "; %d round%s, seed %d", c.rounds, c.rounds == 1 ? "" : "s", c.seed);
  return text;
}

}  // namespace curtail::tool
