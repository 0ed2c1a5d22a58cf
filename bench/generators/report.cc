// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/common/report.h"

namespace curtail::bench {
namespace {

std::string Render(const Table& table, bool markdown) {
  return markdown ? table.ToMarkdown() : table.ToText();
}

std::string MachineLine(const Machine& machine) { return ToString(machine) + " before the run.\n\n"; }

// Three significant digits.
std::string Short(double value) {
  return value >= 100 ? absl::StrFormat("%.0f", value) : absl::StrFormat("%.3g", value);
}

std::string SaidAndTrue(double said, double truth) { return absl::StrCat(Short(said), " / ", Short(truth)); }

Row RowOf(const TruthRow& one) {
  if (!one.error.empty()) return {one.generator, one.load, "failed"};
  return {one.generator,
          one.load,
          SaidAndTrue(one.said.latency.p50, one.truth.p50),
          SaidAndTrue(one.said.latency.p90, one.truth.p90),
          SaidAndTrue(one.said.latency.p99, one.truth.p99),
          SaidAndTrue(one.said.latency.p99_9, one.truth.p99_9),
          SaidAndTrue(one.said.latency.max, one.truth.max),
          Grouped(one.said.rate_per_s),
          one.late_p99_ms ? Short(*one.late_p99_ms) : "-",
          one.said.valid ? "" : "void"};
}

std::string TruthTables(const Machine& machine, const std::vector<TruthRow>& rows, bool markdown) {
  std::string out = MachineLine(machine);
  std::string scenario;
  Table table;
  const auto flush = [&] {
    if (!table.rows.empty())
      absl::StrAppend(&out, "Service: ", scenario, "\n\n", Render(table, markdown), "\n");
  };
  for (const TruthRow& one : rows) {
    if (one.scenario != scenario) {
      flush();
      scenario = one.scenario;
      table = {2,
               {{"said / true, ms", "load", "p50", "p90", "p99", "p99.9", "max", "answers/s", "sent late p99",
                 ""}}};
    }
    Row row = RowOf(one);
    row.resize(table.rows[0].size());
    table.rows.push_back(std::move(row));
  }
  flush();
  for (const TruthRow& one : rows) {
    if (!one.error.empty()) absl::StrAppend(&out, one.generator, ": ", one.error, "\n");
  }
  return out;
}

// "12.3 (11.9-13.0)".
std::string Cell(const std::vector<double>& values) {
  if (values.empty()) return "-";
  const Spread spread = SpreadOf(values);
  return absl::StrCat(Short(spread.median), " (", Short(spread.min), "-", Short(spread.max), ")");
}

std::string Rate(const std::vector<double>& values) {
  return values.empty() ? "-" : Grouped(SpreadOf(values).median);
}

Table CostTable(const CostResults& results) {
  Table table{2, {{"load", "generator", "CPU us a request (min-max)", "answers/s", "void rounds"}}};
  for (const std::string& load : results.loads) {
    for (const std::string& name : results.generators) {
      const auto cells = results.cells.find(load);
      if (cells == results.cells.end() || cells->second.count(name) == 0) continue;
      const CostCell& cell = cells->second.at(name);
      table.rows.push_back(
          {load, name, Cell(cell.cpu_us), Rate(cell.rate_per_s), absl::StrCat(cell.void_rounds)});
    }
  }
  return table;
}

Table BarTable(const CostResults& results) {
  Table table{3, {{"load", "generator", "beside", "its CPU time", "at most", ""}}};
  for (const Bar& bar : BarsOf(results)) {
    table.rows.push_back({bar.load, bar.curtail, bar.other, absl::StrFormat("%.2f x", bar.ratio),
                          absl::StrFormat("%.2f x", bar.limit), bar.met() ? "met" : "NOT MET"});
  }
  return table;
}

std::string CostTables(const Machine& machine, const CostResults& results, bool markdown) {
  std::string out =
      absl::StrCat(MachineLine(machine), Render(CostTable(results), markdown), "\n",
                   Render(BarTable(results), markdown), "\nCPU ms of a start, not counted above:");
  for (const auto& [name, values] : results.start_ms) {
    absl::StrAppend(&out, " ", name, " ", Short(SpreadOf(values).median), ";");
  }
  out.back() = '\n';
  for (const auto& [load, cells] : results.cells) {
    for (const auto& [name, cell] : cells) {
      if (!cell.error.empty()) absl::StrAppend(&out, name, ", ", load, ": ", cell.error, "\n");
    }
  }
  return out;
}

}  // namespace

std::string ToText(const Machine& machine, const std::vector<TruthRow>& rows) {
  return TruthTables(machine, rows, false);
}
std::string ToMarkdown(const Machine& machine, const std::vector<TruthRow>& rows) {
  return TruthTables(machine, rows, true);
}
std::string ToText(const Machine& machine, const CostResults& results) {
  return CostTables(machine, results, false);
}
std::string ToMarkdown(const Machine& machine, const CostResults& results) {
  return CostTables(machine, results, true);
}

}  // namespace curtail::bench
