// SPDX-License-Identifier: Apache-2.0
#include "bench/common/spread.h"
#include "nlohmann/json.hpp"
#include "report.h"

namespace curtail::bench {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson Head(const char* work, const Options& options, const Machine& machine) {
  return {{"schema_version", 1},
          {"benchmark", "generators"},
          {"work", work},
          {"cpus", machine.cpus},
          {"load_average", machine.load_average},
          {"busy_cpus_before", machine.busy_cpus},
          {"disturbed", machine.Disturbed()},
          {"seed", options.seed}};
}

OrderedJson PercentilesJson(const Percentiles& p) {
  return {{"p50", p.p50}, {"p90", p.p90}, {"p99", p.p99}, {"p99_9", p.p99_9}, {"max", p.max}};
}

OrderedJson SpreadJson(const std::vector<double>& values) {
  if (values.empty()) return nullptr;
  const Spread spread = SpreadOf(values);
  return {{"median", spread.median}, {"min", spread.min}, {"max", spread.max}};
}

OrderedJson ErrorJson(const std::string& error) {
  return error.empty() ? OrderedJson(nullptr) : OrderedJson(error);
}

std::string Dump(const OrderedJson& json) {
  // Errors quote what a program has printed, which may be no UTF-8.
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace

std::string ToJson(const Options& options, const Machine& machine, const std::vector<TruthRow>& rows) {
  OrderedJson json = Head("truth", options, machine);
  json["rows"] = OrderedJson::array();
  for (const TruthRow& row : rows) {
    json["rows"].push_back(
        {{"scenario", row.scenario},
         {"generator", row.generator},
         {"load", row.load},
         {"error", ErrorJson(row.error)},
         {"answered", row.said.answered},
         {"answers_per_s", row.said.rate_per_s},
         {"valid", row.said.valid},
         {"said_ms", PercentilesJson(row.said.latency)},
         {"true_ms", PercentilesJson(row.truth)},
         {"sent_late_p99_ms", row.late_p99_ms ? OrderedJson(*row.late_p99_ms) : OrderedJson(nullptr)}});
  }
  return Dump(json);
}

std::string ToJson(const Options& options, const Machine& machine, const CostResults& results) {
  OrderedJson json = Head("cost", options, machine);
  json["rounds"] = options.rounds;
  json["seconds"] = options.seconds;
  json["start_cpu_ms"] = OrderedJson::object();
  for (const auto& [name, values] : results.start_ms) json["start_cpu_ms"][name] = SpreadJson(values);
  json["cells"] = OrderedJson::array();
  for (const auto& [load, cells] : results.cells) {
    for (const auto& [name, cell] : cells) {
      json["cells"].push_back({{"load", load},
                               {"generator", name},
                               {"error", ErrorJson(cell.error)},
                               {"rounds", cell.cpu_us.size()},
                               {"cpu_us_per_request", SpreadJson(cell.cpu_us)},
                               {"answers_per_s", SpreadJson(cell.rate_per_s)},
                               {"void_rounds", cell.void_rounds}});
    }
  }
  json["bars"] = OrderedJson::array();
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
