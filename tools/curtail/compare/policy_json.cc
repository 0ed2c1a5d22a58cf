// SPDX-License-Identifier: Apache-2.0
//
// The JSON half of policy_report.h; comparison.schema.json beside it describes what is written here.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "curtail/base/clock.h"
#include "curtail/base/internal/json_document.h"
#include "curtail/load/report/internal/machine_json.h"
#include "tools/curtail/compare/policy_cost.h"
#include "tools/curtail/compare/policy_judge.h"
#include "tools/curtail/compare/policy_report.h"
#include "tools/curtail/compare/policy_summary.h"
#include "tools/curtail/compare/policy_tables.h"

namespace curtail::tool {
namespace {

using internal::Compact;
using internal::Json;

constexpr size_t kMaxChangesOfRun = 1000;

Json OptionalMs(const std::optional<Nanos>& t) { return t ? Json(InMillis(*t)) : Json(nullptr); }

Json PhaseJson(const Phase& phase) {
  return {{"name", phase.name},
          {"rate_per_s", phase.rate_per_s},
          {"from_s", InSeconds(phase.from)},
          {"to_s", InSeconds(phase.to)},
          {"steady", phase.steady}};
}

// The corners of the load; two at one time make a step.
Json RateJson(const RateCurve& curve) {
  Json at = Json::array(), rate = Json::array();
  const auto add = [&](double seconds, double per_ns) {
    at.push_back(seconds);
    rate.push_back(std::max(0.0, per_ns * 1e9));
  };
  for (const RateCurve::Piece& piece : curve.pieces()) {
    add(InSeconds(piece.start), piece.per_ns);
    add(InSeconds(piece.start) + piece.length_ns / 1e9, piece.per_ns + piece.slope * piece.length_ns);
  }
  return {{"at_s", at}, {"per_s", rate}};
}

Json ScenarioJson(const Scenario& scenario) {
  Json json = {{"name", scenario.name},
               {"text", scenario.text},
               {"warmup_s", InSeconds(scenario.warmup)},
               {"length_s", InSeconds(scenario.curve.length())},
               {"expected_requests", scenario.curve.total()}};
  json["rate"] = RateJson(scenario.curve);
  json["phases"] = Json::array();
  for (const Phase& phase : scenario.phases) json["phases"].push_back(PhaseJson(phase));
  return json;
}

Json ResultJson(const PhaseResult& result) {
  return {{"name", result.phase.name}, {"due", result.due},       {"ok", result.ok},
          {"failed", result.failed},   {"p50_us", result.p50_us}, {"p99_us", result.p99_us},
          {"mean_us", result.mean_us}, {"config", result.config}, {"config_share", result.config_share}};
}

Json ChangeJson(const ConfigChange& change) {
  return {{"at_s", InSeconds(change.at)},
          {"rate_per_s", change.rate_per_s},
          {"from", change.from},
          {"to", change.to},
          {"reason", change.reason}};
}

// Columns, as a run has thousands of these.
Json SeriesJson(const std::vector<Bucket>& series) {
  Json json = {{"bucket_s", InSeconds(kBucketLength)}, {"due", Json::array()}, {"p99_us", Json::array()}};
  for (const Bucket& bucket : series) {
    json["due"].push_back(bucket.due);
    json["p99_us"].push_back(bucket.due == 0 ? Json(nullptr) : Json(std::round(bucket.p99_us * 10) / 10));
  }
  return json;
}

Json RunJson(const PolicyRun& run) {
  Json json = {{"policy", run.policy},
               {"scenario", run.scenario},
               {"round", run.round},
               {"valid", run.valid()},
               {"invalid_reasons", run.invalid},
               {"first_config", run.first_config},
               {"settled_config", run.settled_config},
               {"server_cores", run.server_cores},
               {"server_cpu_s", InSeconds(run.server_cpu)},
               {"switches", run.switches},
               {"most_switches_in_a_second", run.most_switches_in_a_second},
               {"backlog_after_spike_ms", OptionalMs(run.backlog_after_spike)},
               {"reaction_ms", OptionalMs(run.reaction)},
               {"whole", ResultJson(run.whole)}};
  json["phases"] = Json::array();
  for (const PhaseResult& result : run.phases) json["phases"].push_back(ResultJson(result));
  const size_t changes = std::min(run.changes.size(), kMaxChangesOfRun);
  json["changes"] = Json::array();
  for (size_t i = 0; i < changes; ++i) json["changes"].push_back(ChangeJson(run.changes[i]));
  json["earlier_changes_lost"] = run.changes_lost;
  json["changes_left_out"] = run.switches - std::min<uint64_t>(run.switches, changes);
  json["series"] = SeriesJson(run.series);
  return json;
}

// As keys of enumerations are written.
std::string FindingJson(Finding finding) { return absl::StrReplaceAll(NameOf(finding), {{" ", "_"}}); }

Json JudgementJson(const Judgement& judgement) {
  Json json = {{"verdict", FindingJson(judgement.finding)}, {"rounds", judgement.rounds}};
  const bool known = judgement.rounds > 0;
  json["ratio"] = known ? Json(judgement.ratio) : Json(nullptr);
  json["ratio_ci95"] = judgement.interval && std::isfinite(judgement.interval->high)
                           ? Json::array({judgement.interval->low, judgement.interval->high})
                           : Json(nullptr);
  json["p"] = judgement.rounds > 1 ? Json(judgement.p) : Json(nullptr);
  return json;
}

std::string PhaseName(const PolicyComparison& c, size_t scenario, size_t phase) {
  return phase == kWhole ? "whole" : c.scenarios[scenario].phases[phase].name;
}

// The first policy against each other one.
Json JudgementsJson(const PolicyComparison& c) {
  Json json = Json::array();
  for (size_t other = 1; other < c.policies.size(); ++other) {
    const PairJudgement pair = JudgePair(c, 0, other);
    Json one = {{"policy", c.policies[0]},
                {"against", c.policies[other]},
                {"void_rounds", pair.void_rounds},
                {"overall", JudgementJson(pair.overall)},
                {"cells", Json::array()}};
    for (const CellJudgement& cell : pair.cells) {
      one["cells"].push_back({{"scenario", cell.scenario},
                              {"phase", PhaseName(c, cell.scenario, cell.phase)},
                              {"judgement", JudgementJson(cell.judgement)}});
    }
    json.push_back(std::move(one));
  }
  return json;
}

const char* NameOf(Standing standing) {
  switch (standing) {
    case Standing::kBest:
      return "best";
    case Standing::kMatched:
      return "matched";
    case Standing::kBeaten:
      return "beaten";
    case Standing::kUnknown:
      break;
  }
  return "unknown";
}

Json TableJson(const ReportTable& table) {
  Json json = {{"title", table.title},
               {"text", table.text},
               {"corner", table.corner},
               {"columns", table.columns},
               {"rows", Json::array()}};
  for (const ReportRow& row : table.rows) {
    Json cells = Json::array();
    for (const ReportCell& cell : row.cells)
      cells.push_back({{"text", cell.text}, {"range", cell.range}, {"standing", NameOf(cell.standing)}});
    json["rows"].push_back({{"name", row.name}, {"cells", cells}});
  }
  return json;
}

Json SpreadJson(const std::optional<RoundSpread>& spread) {
  if (!spread) return nullptr;
  return {{"median", spread->median},
          {"lowest", spread->low},
          {"highest", spread->high},
          {"rounds", spread->rounds}};
}

// The policies in one phase of a scenario, or in the whole of it.
Json CellsJson(const PolicyComparison& c, size_t scenario, size_t phase) {
  const std::vector<Standing> standings = Standings(c, scenario, phase);
  Json json = {{"scenario", scenario}, {"phase", PhaseName(c, scenario, phase)}, {"policies", Json::array()}};
  for (size_t policy = 0; policy < c.policies.size(); ++policy) {
    json["policies"].push_back({{"policy", c.policies[policy]},
                                {"p99_us", SpreadJson(P99Us(c, scenario, policy, phase))},
                                {"standing", NameOf(standings[policy])},
                                {"config", MainConfig(c, scenario, policy, phase)}});
  }
  return json;
}

Json CostsJson(const PolicyComparison& c) {
  Json json = Json::array();
  const std::vector<std::optional<PolicyCost>> costs = CostsOf(c);
  for (size_t policy = 0; policy < costs.size(); ++policy) {
    if (!costs[policy]) continue;
    json.push_back({{"policy", c.policies[policy]},
                    {"p99_us", costs[policy]->p99_us},
                    {"server_cpu_s", costs[policy]->cpu_s},
                    {"on_front", costs[policy]->on_front}});
  }
  return json;
}

Json SummaryJson(const PolicyComparison& c) {
  Json json = Json::array();
  for (size_t s = 0; s < c.scenarios.size(); ++s) {
    json.push_back(CellsJson(c, s, kWhole));
    for (size_t p = 0; p < c.scenarios[s].phases.size(); ++p) json.push_back(CellsJson(c, s, p));
  }
  return json;
}

// Each key on a line, and each element of a list of objects.
std::string Lines(const Json& json) {
  std::string text = "{";
  for (const auto& [key, value] : json.items()) {
    absl::StrAppend(&text, text == "{" ? "\n" : ",\n", " ", Compact(key), ": ");
    if (!value.is_array() || value.empty() || !value[0].is_object()) {
      text += Compact(value);
      continue;
    }
    const char* separator = "[\n  ";
    for (const Json& element : value) {
      absl::StrAppend(&text, separator, Compact(element));
      separator = ",\n  ";
    }
    text += "]";
  }
  return text + "\n}\n";
}

}  // namespace

std::string PolicyComparisonJson(const PolicyComparison& c) {
  Json json = {{"schema_version", kComparisonSchemaVersion},
               {"kind", "policy_comparison"},
               {"curtail_version", c.curtail_version},
               {"machine", internal::MachineJson(c.machine)},
               {"application", c.application},
               {"data", c.data},
               {"profile", c.profile},
               {"seed", c.seed},
               {"slo_ms", InMillis(c.slo)},
               {"rounds", c.rounds},
               {"looks", c.looks},
               {"interrupted", c.interrupted},
               {"policies", c.policies},
               {"verdict", Verdict(c)},
               {"caveats", Caveats(c)}};
  json["scenarios"] = Json::array();
  for (const Scenario& scenario : c.scenarios) json["scenarios"].push_back(ScenarioJson(scenario));
  json["tables"] = Json::array();
  for (const ReportTable& table : ReportTables(c)) json["tables"].push_back(TableJson(table));
  json["judgements"] = JudgementsJson(c);
  json["costs"] = CostsJson(c);
  json["summary"] = SummaryJson(c);
  json["runs"] = Json::array();
  for (const PolicyRun& run : c.runs) json["runs"].push_back(RunJson(run));
  return Lines(json);
}

}  // namespace curtail::tool
