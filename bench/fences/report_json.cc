// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "bench/common/report.h"
#include "bench/fences/report.h"
#include "nlohmann/json.hpp"

namespace curtail::fences {
namespace {

using bench::Json;

constexpr int kSchemaVersion = 1;

Json SpreadJson(const std::optional<Spread>& s) { return s ? bench::ToJson(*s) : Json(); }

Json PhaseJson(const Row& row, size_t of_class, size_t phase, const std::string& name) {
  Json rounds = Json::array();
  for (const Cell& cell : row.rounds) {
    const PhaseResult& r = cell.classes[of_class][phase];
    rounds.push_back({{"requests", r.due},
                      {"dropped_requests", r.dropped},
                      {"answered_per_s", r.answered_per_s},
                      {"good_per_s", r.good_per_s},
                      {"mean_answered_ms", r.mean_ms},
                      {"p99_answered_ms", r.answered_p99_ms},
                      {"p99_ms", r.p99_ms}});
  }
  return {{"name", name},
          {"p99_ms", SpreadJson(SpreadOf(row, of_class, phase, &PhaseResult::p99_ms))},
          {"mean_answered_ms", SpreadJson(SpreadOf(row, of_class, phase, &PhaseResult::mean_ms))},
          {"answered_per_s", SpreadJson(SpreadOf(row, of_class, phase, &PhaseResult::answered_per_s))},
          {"p99_answered_ms", SpreadJson(SpreadOf(row, of_class, phase, &PhaseResult::answered_p99_ms))},
          {"good_per_s", SpreadJson(SpreadOf(row, of_class, phase, &PhaseResult::good_per_s))},
          {"dropped_requests", SpreadJson(SpreadOf(row, of_class, phase, &PhaseResult::dropped))},
          {"rounds", std::move(rounds)}};
}

Json RowJson(const Part& part, const Row& row) {
  Json classes = Json::array();
  for (size_t c = 0; !row.rounds.empty() && c < part.classes.size(); ++c) {
    Json phases = Json::array();
    for (size_t p = 0; p < part.phases.size(); ++p) phases.push_back(PhaseJson(row, c, p, part.phases[p]));
    classes.push_back({{"name", part.classes[c]}, {"phases", std::move(phases)}});
  }
  Json rounds = Json::array();
  for (const Cell& cell : row.rounds) {
    rounds.push_back({{"refused_requests", cell.refused},
                      {"late_requests", cell.late},
                      {"busy_cpus", cell.cpus},
                      {"generator_note", cell.generator_note}});
  }
  Json json = {{"name", row.variant.name()}, {"classes", std::move(classes)}, {"rounds", std::move(rounds)}};
  if (part.kind == Part::Kind::kStall) {
    json["guarded_p99_during_over_alone"] = SpreadJson(P99Ratio(row, 0, kDuring, kAlone));
  } else if (const auto parity = JudgeTrace(part, row); part.kind == Part::Kind::kTrace && parity) {
    json["answered_over_async"] = bench::ToJson(parity->throughput);
    json["p99_over_async"] = bench::ToJson(parity->p99);
  } else if (const auto goodput = JudgeOverload(part, row, part.slo_ms);
             part.kind == Part::Kind::kOverload && goodput) {
    json["goodput_at_highest_load_over_peak"] = bench::ToJson(goodput->ratio);
  }
  return json;
}

}  // namespace

std::string ToJson(const Results& r) {
  Json json = bench::ReportHead("fences", kSchemaVersion, r, r.machine);
  json["phase_s"] = r.phase_s;
  json["interrupted"] = r.interrupted;
  json["parts"] = Json::array();
  for (const Part& part : r.parts) {
    Json rows = Json::array();
    for (const Row& row : part.rows) rows.push_back(RowJson(part, row));
    json["parts"].push_back({{"name", part.name},
                             {"title", part.title},
                             {"classes", part.classes},
                             {"rates_per_s", part.rates_per_s},
                             {"variants", std::move(rows)}});
  }
  return bench::Dump(json);
}

}  // namespace curtail::fences
