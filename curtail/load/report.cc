// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/report.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace curtail {
namespace {

constexpr int kBarColumns = 40;
constexpr int kHistogramRows = 14;
constexpr int kLabelColumns = 14;

// One unit for all latencies of a report.
struct Unit {
  const char* name;
  double ns;
  std::string operator()(Nanos t) const {
    const double v = static_cast<double>(t.count()) / ns;
    return v < 10    ? absl::StrFormat("%.3f", v)
           : v < 100 ? absl::StrFormat("%.2f", v)
                     : absl::StrFormat("%.1f", v);
  }
};

Unit UnitFor(Nanos typical) {
  if (typical < std::chrono::milliseconds(1)) return {"us", 1e3};
  if (typical < std::chrono::seconds(1)) return {"ms", 1e6};
  return {"s", 1e9};
}

std::string Seconds(Nanos t) { return absl::StrFormat("%g s", static_cast<double>(t.count()) / 1e9); }

std::string Row(absl::string_view label, absl::string_view text) {
  return absl::StrFormat("%-*s%s\n", kLabelColumns, label, text);
}

std::string LatencyRow(absl::string_view label, const Histogram& h, const Unit& unit) {
  if (h.empty()) return {};
  std::string cells = absl::StrFormat("%9d", h.count());
  absl::StrAppendFormat(&cells, "%10s", unit(h.mean()));
  for (double p : {50.0, 90.0, 95.0, 99.0, 99.9})
    absl::StrAppendFormat(&cells, "%10s", unit(h.Percentile(p)));
  absl::StrAppendFormat(&cells, "%10s", unit(h.max()));
  return Row(label, cells);
}

std::string IntervalText(const Histogram& h, double percent, const Unit& unit) {
  const ValueInterval ci = PercentileInterval95(h, percent);
  if (!ci.low || !ci.high) return absl::StrFormat("p%g too few samples", percent);
  return absl::StrFormat("p%g %s to %s", percent, unit(*ci.low), unit(*ci.high));
}

std::string LatencyTable(const LoadResult& r, const Unit& unit) {
  if (r.all.empty()) return {};
  std::string text = Row(absl::StrCat("latency (", unit.name, ")"),
                         absl::StrFormat("%9s%10s%10s%10s%10s%10s%10s%10s", "count", "mean", "p50", "p90",
                                         "p95", "p99", "p99.9", "max"));
  absl::StrAppend(&text, LatencyRow("  every one", r.all, unit));
  if (r.failed > 0) {
    absl::StrAppend(&text, LatencyRow("  ok", r.success, unit), LatencyRow("  failed", r.failure, unit));
  }
  std::vector<std::string> intervals;
  for (double p : {50.0, 99.0, 99.9}) intervals.push_back(IntervalText(r.all, p, unit));
  return absl::StrCat(text, Row("  95 % sure", absl::StrJoin(intervals, ", ")));
}

// Bars over geometric bins from the smallest to the largest latency.
std::string Bars(const Histogram& h, const Unit& unit) {
  if (h.count() < 2 || h.min() == h.max()) return {};
  const double low = std::max(1.0, static_cast<double>(h.min().count()));
  const double ratio = std::pow(static_cast<double>(h.max().count()) / low, 1.0 / kHistogramRows);
  std::vector<uint64_t> rows(kHistogramRows);
  for (const Histogram::Bucket& b : h.Buckets()) {
    const double middle = (static_cast<double>(b.low.count()) + static_cast<double>(b.high.count())) / 2;
    const int row = ratio > 1 ? static_cast<int>(std::log(std::max(middle, low) / low) / std::log(ratio)) : 0;
    rows[static_cast<size_t>(std::clamp(row, 0, kHistogramRows - 1))] += b.count;
  }
  const uint64_t most = *std::max_element(rows.begin(), rows.end());
  std::string text;
  double edge = low;
  for (uint64_t count : rows) {
    edge *= ratio;
    // A row that is not empty shows at least one mark.
    const auto marks = static_cast<size_t>((count * kBarColumns + most - 1) / most);
    absl::StrAppendFormat(&text, "  up to %9s %s %9d %s\n", unit(Nanos(std::llround(edge))), unit.name, count,
                          std::string(marks, '#'));
  }
  return text;
}

std::string Counts(const LoadResult& r) {
  std::string text;
  std::vector<std::string> codes;
  for (const auto& [code, count] : r.codes) codes.push_back(absl::StrCat(code, " ", count));
  if (!codes.empty()) absl::StrAppend(&text, Row("codes", absl::StrJoin(codes, ", ")));
  absl::string_view label = "errors";
  for (const auto& [error, count] : r.errors) {
    absl::StrAppend(&text, Row(label, absl::StrCat(count, " x ", error)));
    label = "";
  }
  return text;
}

std::string GeneratorText(const LoadResult& r) {
  std::string text;
  if (!r.plan.closed()) {
    const auto us = [&](Nanos t) { return static_cast<double>(t.count()) / 1e3; };
    absl::StrAppend(&text, Row("send lag (us)",
                               absl::StrFormat("p50 %.1f, p99 %.1f, max %.1f", us(r.send_lag.Percentile(50)),
                                               us(r.send_lag.Percentile(99)), us(r.send_lag.max()))));
  }
  if (r.sent == 0) return text;
  const double per_request = 1e-3 / static_cast<double>(r.sent);
  absl::StrAppend(
      &text, Row("generator", absl::StrFormat("%.1f us CPU a request, and %.1f us waiting for the clock%s",
                                              static_cast<double>((r.cpu - r.spin).count()) * per_request,
                                              static_cast<double>(r.spin.count()) * per_request,
                                              r.plan.realtime ? "; real-time priority" : "")));
  return text;
}

}  // namespace

std::string PlanText(const LoadPlan& plan) {
  std::string how;
  if (plan.closed()) {
    how = absl::StrFormat("CLOSED LOOP of %d (latency hides stalls)", plan.outstanding);
  } else {
    how = absl::StrFormat("open loop, %s, %g a second, seed %d", plan.schedule, plan.rate_per_s, plan.seed);
  }
  return absl::StrFormat("%s%s at %s: %s; %d connection%s, 1 thread; %s warm-up, then %s; timeout %s",
                         plan.method, plan.workload.empty() ? "" : absl::StrCat(" (", plan.workload, ")"),
                         plan.target, how, plan.connections, plan.connections == 1 ? "" : "s",
                         Seconds(plan.warmup), Seconds(plan.duration), Seconds(plan.timeout));
}

std::string SummaryText(const LoadResult& r) {
  const Unit unit = UnitFor(r.all.Percentile(50));
  std::string text;
  if (r.interrupted) {
    absl::StrAppend(&text,
                    Row("INTERRUPTED", absl::StrCat("after ", Seconds(r.measured), " of ",
                                                    Seconds(r.plan.duration), "; the numbers are partial")));
  }
  absl::StrAppend(&text,
                  Row("requests", absl::StrFormat("%d due (%.1f/s), %d sent (%.1f/s), %d ok (%.1f/s), %d "
                                                  "failed (%.3g %%)",
                                                  r.scheduled, r.scheduled_per_s, r.sent, r.sent_per_s, r.ok,
                                                  r.good_per_s, r.failed, 100 * r.failed_fraction())));
  if (r.dropped > 0)
    absl::StrAppend(&text, Row("", absl::StrCat(r.dropped, " not sent: too many in flight")));
  absl::StrAppend(&text, LatencyTable(r, unit), Bars(r.all, unit), GeneratorText(r));
  if (r.score.count > 0) {
    absl::StrAppend(&text, Row(r.score.name, absl::StrFormat("mean %.4f, lowest %.4f, of %d replies",
                                                             r.score.mean(), r.score.min, r.score.count)));
  }
  absl::StrAppend(&text, Counts(r));
  for (const std::string& reason : r.invalid) absl::StrAppend(&text, Row("VOID", reason));
  return text;
}

}  // namespace curtail
