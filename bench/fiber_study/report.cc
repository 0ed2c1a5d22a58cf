// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "results.h"

namespace curtail::study {
namespace {

using bench::Fixed;
using bench::kHidden;
using bench::Range;
using bench::Table;
using bench::Values;

// The paper's measurements, and the bar that curtail's fibers are held to at low load.
constexpr double kPaperPeakRatio = 6;
constexpr int kPaperCores = 76;
constexpr double kLowP99Bar = 1.1;

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
      "A compose service calls four services beside each other, each through an async, and then a fifth. "
      "std-CONFIG calls std::async, which starts a thread a call; curtail-CONFIG calls curtail::async. "
      "CONFIG is the server's threading model; the five services run %s. Everything shares %d CPUs, the load "
      "generator too.\n\n"
      "%d rounds over all variants in turns, seed %d. Cells are medians (lowest-highest round); latency "
      "counts from the intended send time. Open loads are shares of %.0f/s, the peak of %s before the "
      "rounds.%s",
      r.part_config, r.machine.cpus, r.rounds, r.seed, r.baseline_peak_per_s, r.rows.front().variant.name(),
      r.interrupted ? " **Interrupted: some rounds are missing.**" : "");
}

Table MainTable(const Results& r) {
  Table table("cells", 2);
  for (size_t l = 0; l < r.loads.size(); ++l) {
    const Load& load = r.loads[l];
    for (const Row& row : r.rows) {
      const std::vector<Measurement>& rounds = row.cells[l];
      if (rounds.empty()) continue;
      const auto of = [&rounds](auto field) { return Values(rounds, field); };
      table.Add({{"load", "load", load.name()},
                 {"variant", "variant", row.variant.name()},
                 {"outstanding_requests", kHidden, load.outstanding},
                 {"share_of_baseline_peak", kHidden, load.share},
                 {"rate_per_s", kHidden, load.rate_per_s},
                 {"offered_per_s", kHidden, of(&Measurement::offered_per_s)},
                 {"achieved_per_s", "answers/s", of(&Measurement::achieved_per_s), Range(Fixed(0))},
                 {"p50_us", "p50 us", of(&Measurement::p50_us), Range(Fixed(0))},
                 {"p99_us", "p99 us", of(&Measurement::p99_us), Range(Fixed(0))},
                 {"compose_context_switches_per_request", "switches/request",
                  of(&Measurement::context_switches), Range(Fixed(1))},
                 {"compose_cpu_us_per_request", "CPU us/request", of(&Measurement::cpu_us), Range(Fixed(0))},
                 {"requests", kHidden, of(&Measurement::requests)},
                 {"failed_requests", kHidden, of(&Measurement::failed)},
                 {"marks", "marks", Marks(rounds)}});
    }
  }
  return table;
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

void AddComparisons(const Results& r, bench::Report* report) {
  const std::vector<Comparison> comparisons = Compare(r);
  if (comparisons.empty()) return;
  const std::string baseline = r.rows.front().variant.name();
  Table table("comparisons");
  for (const Comparison& c : comparisons) {
    table.Add({{"variant", "variant", c.variant},
               {"peak_ratio", "peak ratio", c.peak_ratio, Range(Fixed(2))},
               {"lowest_load_p99_ratio", "p99 ratio at the lowest load", c.low_p99_ratio, Range(Fixed(2))}});
  }
  report->Say(absl::StrCat("Over ", baseline, ", ratios taken round by round:"));
  report->Add(std::move(table)).Say(Verdict(comparisons, baseline));
}

}  // namespace

bench::Report ReportOf(const Results& r) {
  bench::Report report("fiber_study", r, r.machine);
  report.Set("cell_s", r.cell_s).Set("connections", r.connections).Set("spin_us", r.spin_us);
  report.Set("part_config", r.part_config).Set("baseline", r.rows.front().variant.name());
  report.Set("baseline_peak_per_s", r.baseline_peak_per_s).Set("interrupted", r.interrupted);
  report.Say("# Asynchronous calls on fibers and on threads").Say(Head(r)).Add(MainTable(r));
  report.Say(
      "Marks: sat, answered less than 97 % of what was offered; gen, the load generator was late; err, "
      "requests "
      "failed.");
  AddComparisons(r, &report);
  return report;
}

}  // namespace curtail::study
