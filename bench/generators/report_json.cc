// SPDX-License-Identifier: Apache-2.0
#include "bench/common/report.h"
#include "nlohmann/json.hpp"
#include "report.h"

namespace curtail::bench {
namespace {

constexpr int kSchemaVersion = 2;

Json Head(const char* work, const Options& options, const Machine& machine) {
  Json json = ReportHead("generators", kSchemaVersion, options, machine);
  json["work"] = work;
  return json;
}

Json PercentilesJson(const Percentiles& p) {
  return {{"p50", p.p50}, {"p90", p.p90}, {"p99", p.p99}, {"p99_9", p.p99_9}, {"max", p.max}};
}

Json SpreadJson(const std::vector<double>& values) {
  return values.empty() ? Json() : ToJson(SpreadOf(values));
}

}  // namespace

std::string ToJson(const Options& options, const Machine& machine, const std::vector<TruthRow>& rows) {
  Json json = Head("truth", options, machine);
  json["rows"] = Json::array();
  for (const TruthRow& row : rows) {
    json["rows"].push_back({{"scenario", row.scenario},
                            {"generator", row.generator},
                            {"load", row.load},
                            {"error", OrNull(row.error)},
                            {"answered", row.said.answered},
                            {"answers_per_s", row.said.rate_per_s},
                            {"valid", row.said.valid},
                            {"said_ms", PercentilesJson(row.said.latency)},
                            {"true_ms", PercentilesJson(row.truth)},
                            {"sent_late_p99_ms", OrNull(row.late_p99_ms)}});
  }
  return Dump(json);
}

std::string ToJson(const Options& options, const Machine& machine, const CostResults& results) {
  Json json = Head("cost", options, machine);
  json["seconds"] = options.seconds;
  json["start_cpu_ms"] = Json::object();
  for (const auto& [name, values] : results.start_ms) json["start_cpu_ms"][name] = SpreadJson(values);
  json["cells"] = Json::array();
  for (const auto& [load, cells] : results.cells) {
    for (const auto& [name, cell] : cells) {
      json["cells"].push_back({{"load", load},
                               {"generator", name},
                               {"error", OrNull(cell.error)},
                               {"rounds", cell.cpu_us.size()},
                               {"cpu_us_per_request", SpreadJson(cell.cpu_us)},
                               {"answers_per_s", SpreadJson(cell.rate_per_s)},
                               {"void_rounds", cell.void_rounds}});
    }
  }
  json["bars"] = Json::array();
  for (const Bar& bar : BarsOf(results)) {
    json["bars"].push_back({{"load", bar.load},
                            {"generator", bar.curtail},
                            {"beside", bar.other},
                            {"ratio", bar.ratio},
                            {"limit", bar.limit},
                            {"met", bar.met()}});
  }
  return Dump(json);
}

}  // namespace curtail::bench
