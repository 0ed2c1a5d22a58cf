// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/report/report.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "curtail/load/report/run_metrics.h"

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

std::string Seconds(Nanos t) {
  const auto ns = static_cast<double>(t.count());
  return ns > 0 && ns < 1e6 ? absl::StrFormat("%g us", ns / 1e3) : absl::StrFormat("%g s", ns / 1e9);
}

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

std::string IntervalText(const LoadResult& r, double percent, const Unit& unit) {
  const ValueInterval ci = PercentileInterval95(r.all, percent, r.neighbours());
  if (!ci.low || !ci.high) {
    return absl::StrFormat("p%g too few samples (%d of %d)", percent, r.all.count(),
                           SamplesForInterval95(percent, r.neighbours()));
  }
  return absl::StrFormat("p%g %s to %s", percent, unit(*ci.low), unit(*ci.high));
}

std::string LatencyTable(const LoadResult& r, const Unit& unit) {
  if (r.all.empty()) return {};
  std::string text = Row(absl::StrCat("latency (", unit.name, ")"),
                         absl::StrFormat("%9s%10s%10s%10s%10s%10s%10s%10s", "count", "mean", "p50", "p90",
                                         "p95", "p99", "p99.9", "max"));
  absl::StrAppend(&text, LatencyRow("  every one", r.all, unit));
  if (r.with_pauses.mean() > r.success.mean())
    absl::StrAppend(&text, LatencyRow("  with pauses", r.with_pauses, unit));
  // Where it says something else.
  if (!LaggedPercentiles(r).empty()) absl::StrAppend(&text, LatencyRow("  since sent", r.since_sent, unit));
  if (r.failed > 0) {
    absl::StrAppend(&text, LatencyRow("  ok", r.success, unit), LatencyRow("  failed", r.failure, unit),
                    Row("", absl::StrCat("of every one a failed request counts as at least ",
                                         Seconds(r.plan.failure_latency()))));
  }
  std::vector<std::string> intervals;
  for (double p : {50.0, 99.0, 99.9}) intervals.push_back(IntervalText(r, p, unit));
  return absl::StrCat(text, Row("  95 % sure", absl::StrJoin(intervals, ", ")));
}

// A line a step of a journey, or a method.
std::string PartTable(const char* what, const std::vector<PartResult>& parts, const Unit& unit) {
  if (parts.empty()) return {};
  size_t width = kLabelColumns;
  for (const PartResult& part : parts) width = std::max(width, part.name.size() + 3);
  const auto row = [width](absl::string_view label, absl::string_view cells) {
    return absl::StrFormat("%-*s%s\n", static_cast<int>(width), label, cells);
  };
  std::string text = row(absl::StrCat(what, " (", unit.name, ")"),
                         absl::StrFormat("%9s%10s%10s%10s%10s", "count", "failed", "p50", "p99", "max"));
  for (const PartResult& part : parts) {
    const Histogram& h = part.latency;
    text += row(absl::StrCat("  ", part.name),
                h.empty() ? absl::StrFormat("%9d", 0)
                          : absl::StrFormat("%9d%10d%10s%10s%10s", h.count(), part.failed,
                                            unit(h.Percentile(50)), unit(h.Percentile(99)), unit(h.max())));
  }
  return text;
}

// A line a bin, whose edges lie `ratio` apart above `low`. Bins with the same edge in print are one line.
std::string BarRows(const std::vector<uint64_t>& bins, double low, double ratio, const Unit& unit) {
  std::vector<std::pair<std::string, uint64_t>> rows;
  double edge = low;
  for (uint64_t count : bins) {
    edge *= ratio;
    const std::string label = unit(Nanos(std::llround(edge)));
    if (rows.empty() || rows.back().first != label) rows.emplace_back(label, 0);
    rows.back().second += count;
  }
  uint64_t most = 1;
  for (const auto& [label, count] : rows) most = std::max(most, count);
  std::string text;
  for (const auto& [label, count] : rows) {
    // A row that is not empty shows at least one mark.
    const auto marks = static_cast<size_t>((count * kBarColumns + most - 1) / most);
    absl::StrAppendFormat(&text, "  up to %9s %s %9d %s\n", label, unit.name, count, std::string(marks, '#'));
  }
  return text;
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
  return BarRows(rows, low, ratio, unit);
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

std::string ChecksText(const LoadChecks& checks) {
  std::vector<std::string> parts;
  if (checks.gaps_a2)
    parts.push_back(absl::StrFormat("Anderson-Darling A2 of the gaps %.2f", *checks.gaps_a2));
  if (checks.neighbours)
    parts.push_back(absl::StrFormat("correlation of neighbours %+.2f", *checks.neighbours));
  if (checks.trend) parts.push_back(absl::StrFormat("with time %+.2f", *checks.trend));
  return parts.empty() ? "" : Row("checks", absl::StrJoin(parts, ", "));
}

// The replies that failed checks, and a line a check that some failed.
std::string ReplyChecksText(const LoadResult& r) {
  const ReplyCheckSummary& all = r.reply_checks;
  if (all.checks.empty()) return {};
  std::string text = Row("replies", absl::StrFormat("%d checked, %d failed a check (%.3g %%)", all.replies,
                                                    all.failed, 100 * all.failed_fraction()));
  for (size_t i = 0; i < all.checks.size(); ++i) {
    const CheckResult& check = all.checks[i];
    if (check.failed == 0) continue;
    absl::StrAppend(&text, Row("", absl::StrCat(check.failed, " x ", r.plan.checks[i], ": ", check.example)));
  }
  return text;
}

}  // namespace

std::string PlanText(const LoadPlan& plan) {
  std::string how;
  if (plan.closed()) {
    how = absl::StrFormat("CLOSED LOOP of %d (latency hides stalls), seed %d", plan.outstanding, plan.seed);
  } else {
    const bool level = plan.peak_per_s < 1.001 * plan.rate_per_s;
    how = absl::StrFormat("open loop, %s, %s, seed %d", plan.arrivals,
                          level ? absl::StrFormat("%g a second", plan.rate_per_s)
                                : absl::StrFormat("%s (mean %.4g, peak %.4g a second)", plan.schedule,
                                                  plan.rate_per_s, plan.peak_per_s),
                          plan.seed);
  }
  const std::string length = plan.requests == 0
                                 ? Seconds(plan.duration)
                                 : absl::StrCat(plan.requests, plan.steps.empty() ? " request" : " journey",
                                                plan.requests == 1 ? "" : "s");
  const std::string retries =
      plan.retries == 0 ? ""
                        : absl::StrCat("; up to ", plan.retries, plan.retries == 1 ? " retry" : " retries");
  const std::string checks =
      plan.checks.empty() ? ""
                          : absl::StrCat("; ", plan.checks.size(),
                                         plan.checks.size() == 1 ? " check" : " checks", " of each reply");
  const std::string what =
      plan.steps.empty() ? plan.workload : absl::StrCat("journey: ", absl::StrJoin(plan.steps, ", "));
  const std::string methods =
      plan.methods.empty() ? plan.method : absl::StrCat(plan.methods.size(), " methods");
  const std::string shares = plan.shares == 1  ? ""
                             : plan.share == 0 ? absl::StrCat(", on each of ", plan.shares, " generators")
                                               : absl::StrCat(", share ", plan.share, " of ", plan.shares);
  return absl::StrFormat(
      "%s%s at %s%s: %s; %d connection%s, %d thread%s%s; %s warm-up, then %s; timeout %s%s%s", methods,
      what.empty() ? "" : absl::StrCat(" (", what, ")"), plan.target, plan.tls ? " over TLS" : "", how,
      plan.connections, plan.connections == 1 ? "" : "s", plan.threads, plan.threads == 1 ? "" : "s", shares,
      Seconds(plan.warmup), length, Seconds(plan.timeout), retries, checks);
}

std::string SummaryText(const LoadResult& r) {
  const Unit unit = UnitFor(r.all.Percentile(50));
  std::string text;
  if (r.interrupted) {
    absl::StrAppend(&text,
                    Row("INTERRUPTED", absl::StrFormat("after %.3g s of %s; the numbers are partial",
                                                       InSeconds(r.measured), Seconds(r.plan.duration))));
  }
  absl::StrAppend(&text, Row(r.steps.empty() ? "requests" : "journeys",
                             absl::StrFormat("%d due (%.1f/s), %d sent (%.1f/s), %d ok (%.1f/s), %d "
                                             "failed (%.3g %%)",
                                             r.scheduled, r.scheduled_per_s, r.sent, r.sent_per_s, r.ok,
                                             r.good_per_s, r.failed, 100 * r.failed_fraction())));
  if (r.dropped > 0)
    absl::StrAppend(&text, Row("", absl::StrCat(r.dropped, " not sent: too many in flight")));
  if (r.plan.retries > 0)
    absl::StrAppend(&text, Row("retried", absl::StrCat(r.retried, " requests, by ", r.retries, " calls")));
  absl::StrAppend(&text, LatencyTable(r, unit), PartTable("steps", r.steps, unit),
                  PartTable("methods", r.methods, unit), Bars(r.all, unit), GeneratorText(r));
  if (r.score.count > 0) {
    absl::StrAppend(&text, Row(r.score.name, absl::StrFormat("mean %.4f, lowest %.4f, of %d replies",
                                                             r.score.mean(), r.score.min, r.score.count)));
  }
  absl::StrAppend(&text, ReplyChecksText(r), Counts(r));
  absl::StrAppend(&text, ChecksText(r.checks));
  for (const std::string& warning : r.warnings) absl::StrAppend(&text, Row("WARNING", warning));
  for (const std::string& reason : r.invalid) absl::StrAppend(&text, Row("VOID", reason));
  return text;
}

std::string BetweenRunsText(const LoadReport& report) {
  size_t valid = 0;
  std::string rows;
  for (const RunMetric& metric : RunMetrics()) {
    const std::vector<double> values = UsableValues(report, metric);
    valid = values.size();
    if (values.empty()) break;
    const double scale = std::string_view(metric.unit) == "%" ? 100 : 1;
    const Spread s = SpreadOf(values);
    const double spread = s.median > 0 ? 100 * (s.max - s.min) / s.median : 0;
    absl::StrAppend(&rows, Row(absl::StrCat("  ", metric.label),
                               absl::StrFormat("%12.1f%12.1f%12.1f %-3s%8.1f %%", scale * s.median,
                                               scale * s.min, scale * s.max, metric.unit, spread)));
  }
  const std::string void_runs =
      valid == report.runs.size()
          ? ""
          : absl::StrFormat(" (%d of %d runs are void)", report.runs.size() - valid, report.runs.size());
  return absl::StrCat(
      Row(absl::StrFormat("%d runs", valid),
          absl::StrFormat("%12s%12s%12s    %10s%s", "median", "lowest", "highest", "spread", void_runs)),
      rows);
}

}  // namespace curtail
