// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "bench/common/report.h"
#include "nlohmann/json.hpp"
#include "report.h"

namespace curtail::models {
namespace {

using bench::Json;
using bench::ToJson;

constexpr int kSchemaVersion = 2;

Json RoundJson(const Measurement& m) {
  Json json = {{"offered_per_s", m.offered_per_s},
               {"achieved_per_s", m.achieved_per_s},
               {"requests", m.requests},
               {"failed_requests", m.failed},
               {"p50_us", m.p50_us},
               {"p99_us", m.p99_us},
               {"mid_context_switches_per_request", m.context_switches},
               {"mid_involuntary_switches_per_request", m.involuntary_switches},
               {"mid_cpu_us_per_request", m.cpu_us},
               {"mid_runqueue_delay_us_per_request", m.runqueue_us},
               {"saturated", m.saturated},
               {"generator_bound", m.generator_bound}};
  if (m.generator_bound) json["generator_note"] = m.generator_note;
  return json;
}

Json CellJson(const Load& load, const std::vector<Measurement>& rounds) {
  Json cell = load.closed() ? Json{{"loop", "closed"}, {"outstanding_requests", load.outstanding}}
                            : Json{{"loop", "open"}, {"rate_per_s", load.rate_per_s}};
  if (const std::optional<Summary> s = Summarize(rounds)) {
    cell["p50_us"] = ToJson(s->p50_us);
    cell["p99_us"] = ToJson(s->p99_us);
    cell["achieved_per_s"] = ToJson(s->achieved_per_s);
    cell["mid_context_switches_per_request"] = s->context_switches;
    cell["mid_involuntary_switches_per_request"] = s->involuntary_switches;
    cell["mid_cpu_us_per_request"] = s->cpu_us;
    cell["mid_runqueue_delay_us_per_request"] = s->runqueue_us;
    cell["saturated"] = s->saturated;
    cell["generator_bound"] = s->generator_bound;
  }
  cell["rounds"] = Json::array();
  for (const Measurement& round : rounds) cell["rounds"].push_back(RoundJson(round));
  return cell;
}

Json RowJson(const Results& r, const Row& row) {
  Json json = {{"model", ModelName(row.model)}, {"config", row.config}};
  if (!row.problem.empty()) json["problem"] = row.problem;
  json["cells"] = Json::array();
  for (size_t l = 0; l < row.cells.size(); ++l) json["cells"].push_back(CellJson(r.loads[l], row.cells[l]));
  return json;
}

Json CandidateJson(const Candidate& c, bool chosen) {
  Json json = {{"config", c.config.ToString()},
               {"measured", c.measured},
               {"available", c.available},
               {"chosen", chosen}};
  if (!c.problem.empty()) json["problem"] = c.problem;
  if (c.measured) {
    json["saturation_per_s"] = c.saturation_per_s;
    json["low_load_p99_us"] = c.low_p99_us;
  }
  return json;
}

}  // namespace

std::string ToJson(const Results& r) {
  Json json = bench::ReportHead("models", kSchemaVersion, r.flags, r.machine);
  json["service"] = r.service;
  json["description"] = r.description;
  json["interrupted"] = r.interrupted;
  json["cell_s"] = r.timing.cell_s;
  json["warmup_s"] = r.timing.warmup_s;
  json["pick_outstanding_requests"] = r.pick_outstanding;
  json["pick_rate_per_s"] = r.pick_rate_per_s;
  json["pick_s"] = r.timing.pick_s;
  json["candidates"] = Json::array();
  for (size_t i = 0; i < r.candidates.size(); ++i) {
    const bool chosen = std::find(r.chosen.begin(), r.chosen.end(), i) != r.chosen.end();
    json["candidates"].push_back(CandidateJson(r.candidates[i], chosen));
  }
  json["configs"] = Json::array();
  for (const Row& row : r.rows) json["configs"].push_back(RowJson(r, row));
  return bench::Dump(json);
}

}  // namespace curtail::models
