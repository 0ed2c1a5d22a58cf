// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "bench/common/report.h"
#include "nlohmann/json.hpp"

namespace curtail::study {
namespace {

using bench::Json;
using Line = bench::Row;

constexpr int kSchemaVersion = 2;

// The paper's measurements, and the bar that curtail's fibers are held to at low load.
constexpr double kPaperPeakRatio = 6;
constexpr int kPaperCores = 76;
constexpr double kLowP99Bar = 1.1;

template <class Field>
std::optional<Spread> SpreadOver(const std::vector<Measurement>& rounds, Field Measurement::* field) {
  std::vector<double> values;
  for (const Measurement& round : rounds) values.push_back(static_cast<double>(round.*field));
  return bench::SpreadIfAny(std::move(values));
}

std::string Cell(const std::optional<Spread>& s, int decimals) {
  if (!s) return "-";
  const auto number = [decimals](double value) { return absl::StrFormat("%.*f", decimals, value); };
  if (s->min == s->max) return number(s->median);
  return absl::StrCat(number(s->median), " (", number(s->min), "-", number(s->max), ")");
}

std::string Table(std::vector<Line> lines, size_t text_columns) {
  return bench::Table{text_columns, std::move(lines)}.ToMarkdown();
}

std::string Marks(const std::vector<Measurement>& rounds) {
  const auto any = [&rounds](auto what) { return std::any_of(rounds.begin(), rounds.end(), what); };
  std::string marks;
  if (any([](const Measurement& m) { return m.saturated; })) marks += " sat";
  if (any([](const Measurement& m) { return !m.generator_note.empty(); })) marks += " gen";
  if (any([](const Measurement& m) { return m.failed > 0; })) marks += " err";
  return marks;
}

std::string Head(const Results& r) {
  return absl::StrFormat(
      "# Asynchronous calls on fibers and on threads\n\n"
      "A compose service calls four services beside each other, each through an async, and then a fifth. "
      "std-CONFIG calls std::async, which starts a thread a call; curtail-CONFIG calls curtail::async. "
      "CONFIG is the server's threading model; the five services run %s. Everything shares %d CPUs, the load "
      "generator too.\n\n"
      "%d rounds over all variants in turns, seed %d. Cells are medians (lowest-highest round); latency "
      "counts from the intended send time. Open loads are shares of %.0f/s, the peak of %s before the "
      "rounds.%s\n\n",
      r.part_config, r.machine.cpus, r.rounds, r.seed, r.baseline_peak_per_s, r.rows.front().variant.name(),
      r.interrupted ? " **Interrupted: some rounds are missing.**" : "");
}

std::string MainTable(const Results& r) {
  std::vector<Line> lines = {
      {"load", "variant", "answers/s", "p50 us", "p99 us", "switches/request", "CPU us/request", "marks"}};
  for (size_t l = 0; l < r.loads.size(); ++l) {
    for (const Row& row : r.rows) {
      const std::vector<Measurement>& rounds = row.cells[l];
      if (rounds.empty()) continue;
      lines.push_back({r.loads[l].name(), row.variant.name(),
                       Cell(SpreadOver(rounds, &Measurement::achieved_per_s), 0),
                       Cell(SpreadOver(rounds, &Measurement::p50_us), 0),
                       Cell(SpreadOver(rounds, &Measurement::p99_us), 0),
                       Cell(SpreadOver(rounds, &Measurement::context_switches), 1),
                       Cell(SpreadOver(rounds, &Measurement::cpu_us), 0), Marks(rounds)});
    }
  }
  return absl::StrCat(
      Table(lines, 2),
      "\nMarks: sat, answered less than 97 % of what was offered; gen, the load generator was "
      "late; err, requests failed.\n\n");
}

// Of the fiber variant with the highest peak; both numbers are its own.
std::string Verdict(const std::vector<Comparison>& comparisons, const std::string& baseline) {
  const Comparison* best = nullptr;
  for (const Comparison& c : comparisons) {
    if (!c.fibers || !c.peak_ratio) continue;
    if (best == nullptr || c.peak_ratio->median > best->peak_ratio->median) best = &c;
  }
  if (best == nullptr) return {};
  std::string out =
      absl::StrFormat("Peak of fibers (%s) over %s: %.2f x; the paper: %g x for compose, on %d cores.\n",
                      best->variant, baseline, best->peak_ratio->median, kPaperPeakRatio, kPaperCores);
  if (!best->low_p99_ratio) return out;
  const double ratio = best->low_p99_ratio->median;
  absl::StrAppendFormat(&out,
                        "p99 of fibers (%s) over %s at the lowest load: %.2f x; bar: at most %g x, %s.\n",
                        best->variant, baseline, ratio, kLowP99Bar, ratio <= kLowP99Bar ? "held" : "missed");
  return out;
}

std::string ComparisonTable(const Results& r) {
  const std::vector<Comparison> comparisons = Compare(r);
  if (comparisons.empty()) return {};
  std::vector<Line> lines = {{"variant", "peak ratio", "p99 ratio at the lowest load"}};
  for (const Comparison& c : comparisons) {
    lines.push_back({c.variant, Cell(c.peak_ratio, 2), Cell(c.low_p99_ratio, 2)});
  }
  return absl::StrCat("Over ", r.rows.front().variant.name(), ", ratios taken round by round:\n\n",
                      Table(lines, 1), "\n", Verdict(comparisons, r.rows.front().variant.name()));
}

Json SpreadJson(const std::optional<Spread>& s) { return s ? bench::ToJson(*s) : Json(); }

Json RoundJson(const Measurement& m) {
  return {{"offered_per_s", m.offered_per_s},
          {"achieved_per_s", m.achieved_per_s},
          {"requests", m.requests},
          {"failed_requests", m.failed},
          {"p50_us", m.p50_us},
          {"p99_us", m.p99_us},
          {"compose_context_switches_per_request", m.context_switches},
          {"compose_cpu_us_per_request", m.cpu_us},
          {"saturated", m.saturated},
          {"generator_note", m.generator_note}};
}

Json CellJson(const Load& load, const std::vector<Measurement>& rounds) {
  Json cell =
      load.closed()
          ? Json{{"loop", "closed"}, {"outstanding_requests", load.outstanding}}
          : Json{{"loop", "open"}, {"share_of_baseline_peak", load.share}, {"rate_per_s", load.rate_per_s}};
  cell["achieved_per_s"] = SpreadJson(SpreadOver(rounds, &Measurement::achieved_per_s));
  cell["p50_us"] = SpreadJson(SpreadOver(rounds, &Measurement::p50_us));
  cell["p99_us"] = SpreadJson(SpreadOver(rounds, &Measurement::p99_us));
  cell["compose_context_switches_per_request"] =
      SpreadJson(SpreadOver(rounds, &Measurement::context_switches));
  cell["compose_cpu_us_per_request"] = SpreadJson(SpreadOver(rounds, &Measurement::cpu_us));
  cell["rounds"] = Json::array();
  for (const Measurement& round : rounds) cell["rounds"].push_back(RoundJson(round));
  return cell;
}

}  // namespace

std::string ToMarkdown(const Results& r) { return absl::StrCat(Head(r), MainTable(r), ComparisonTable(r)); }

std::string ToJson(const Results& r) {
  Json json = bench::ReportHead("fiber_study", kSchemaVersion, r, r.machine);
  json["cell_s"] = r.cell_s;
  json["connections"] = r.connections;
  json["spin_us"] = r.spin_us;
  json["part_config"] = r.part_config;
  json["baseline"] = r.rows.front().variant.name();
  json["baseline_peak_per_s"] = r.baseline_peak_per_s;
  json["interrupted"] = r.interrupted;
  json["variants"] = Json::array();
  for (const Row& row : r.rows) {
    Json cells = Json::array();
    for (size_t l = 0; l < row.cells.size(); ++l) {
      if (!row.cells[l].empty()) cells.push_back(CellJson(r.loads[l], row.cells[l]));
    }
    json["variants"].push_back({{"name", row.variant.name()},
                                {"async", row.variant.async == AsyncKind::kStd ? "std" : "curtail"},
                                {"config", row.variant.config.ToString()},
                                {"cells", std::move(cells)}});
  }
  json["comparisons"] = Json::array();
  for (const Comparison& c : Compare(r)) {
    json["comparisons"].push_back({{"variant", c.variant},
                                   {"peak_ratio", SpreadJson(c.peak_ratio)},
                                   {"lowest_load_p99_ratio", SpreadJson(c.low_p99_ratio)}});
  }
  return bench::Dump(json);
}

}  // namespace curtail::study
