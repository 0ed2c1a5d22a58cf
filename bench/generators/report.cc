// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "absl/strings/str_cat.h"
#include "work.h"

namespace curtail::bench {
namespace {

struct Percentile {
  const char* name;  // in JSON
  const char* title;
  double Percentiles::* value;
};
constexpr Percentile kPercentiles[] = {{"p50", "p50", &Percentiles::p50},
                                       {"p90", "p90", &Percentiles::p90},
                                       {"p99", "p99", &Percentiles::p99},
                                       {"p99_9", "p99.9", &Percentiles::p99_9},
                                       {"max", "max", &Percentiles::max}};

std::string MachineLine(const Machine& machine) { return ToString(machine) + " before the run."; }

std::vector<Field> FieldsOf(const TruthRow& one) {
  std::vector<Field> row = {{"generator", "said / true, ms", one.generator}, {"load", "load", one.load}};
  for (const Percentile& p : kPercentiles) {
    const double said = one.said.latency.*p.value, truth = one.truth.*p.value;
    const bool failed = !one.error.empty();
    row.push_back({"", p.title, failed ? "failed" : absl::StrCat(Short(said), " / ", Short(truth))});
    row.push_back({absl::StrCat("said_", p.name, "_ms"), kHidden, said});
    row.push_back({absl::StrCat("true_", p.name, "_ms"), kHidden, truth});
    if (failed) return row;
  }
  row.push_back({"answers_per_s", "answers/s", one.said.rate_per_s});
  row.push_back({"sent_late_p99_ms", "sent late p99", one.late_p99_ms});
  row.push_back({"valid", "", one.said.valid, YesNo("", "void")});
  row.push_back({"answered", kHidden, one.said.answered});
  return row;
}

Table CostTable(const CostResults& results) {
  Table table("cells", 2);
  for (const std::string& load : results.loads) {
    for (const std::string& name : results.generators) {
      const auto cells = results.cells.find(load);
      if (cells == results.cells.end() || cells->second.count(name) == 0) continue;
      const CostCell& cell = cells->second.at(name);
      table.Add({{"load", "load", load},
                 {"generator", "generator", name},
                 {"cpu_us_per_request", "CPU us a request (min-max)", cell.cpu_us, Range(Short)},
                 {"answers_per_s", "answers/s", cell.rate_per_s},
                 {"void_rounds", "void rounds", cell.void_rounds, Median(Grouped)}});
    }
  }
  return table;
}

Table BarTable(const CostResults& results) {
  const auto times = [](double value) { return Fixed(2)(value) + " x"; };
  Table table("bars", 3);
  for (const Bar& bar : BarsOf(results)) {
    table.Add({{"load", "load", bar.load},
               {"generator", "generator", bar.curtail},
               {"beside", "beside", bar.other},
               {"ratio", "its CPU time", bar.ratio, Median(times)},
               {"limit", "at most", bar.limit, Median(times)},
               {"met", "", bar.met(), YesNo("met", "NOT MET")}});
  }
  return table;
}

Table StartTable(const CostResults& results) {
  Table table("starts");
  for (const auto& [name, values] : results.start_ms)
    table.Add({{"generator", "generator", name}, {"cpu_ms", "CPU ms of a start, not counted above", values}});
  return table;
}

}  // namespace

Report ReportOf(const Options& options, const Machine& machine, const std::vector<TruthRow>& rows) {
  Report report("generators", options, machine);
  report.Set("work", "truth").Say(MachineLine(machine));
  for (size_t i = 0; i < rows.size();) {
    const std::string& scenario = rows[i].scenario;
    Table table(scenario, 2);
    for (; i < rows.size() && rows[i].scenario == scenario; ++i) table.Add(FieldsOf(rows[i]));
    report.Say(absl::StrCat("Service: ", scenario)).Add(std::move(table));
  }
  Table errors("errors", 2);
  for (const TruthRow& one : rows) {
    if (one.error.empty()) continue;
    errors.Add({{"generator", "generator", one.generator},
                {"load", "load", one.load},
                {"error", "error", one.error}});
  }
  return report.Add(std::move(errors));
}

Report ReportOf(const Options& options, const Machine& machine, const CostResults& results) {
  Report report("generators", options, machine);
  report.Set("work", "cost").Set("seconds", options.seconds).Say(MachineLine(machine));
  report.Add(CostTable(results)).Add(BarTable(results)).Add(StartTable(results));
  Table errors("errors", 2);
  for (const auto& [load, cells] : results.cells) {
    for (const auto& [name, cell] : cells) {
      if (cell.error.empty()) continue;
      errors.Add({{"generator", "generator", name}, {"load", "load", load}, {"error", "error", cell.error}});
    }
  }
  return report.Add(std::move(errors));
}

}  // namespace curtail::bench
