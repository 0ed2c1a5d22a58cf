// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/report/report_html.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "curtail/load/report/internal/html_page.h"
#include "curtail/load/report/internal/report_charts.h"
#include "curtail/load/report/internal/svg_chart.h"
#include "curtail/load/report/run_metrics.h"

namespace curtail {
namespace {

using internal::DurationText;
using internal::Escape;
using internal::HtmlFact;
using internal::HtmlTile;
using internal::NumberText;

constexpr size_t kMaxChartRuns = 20;  // whose charts over time are shown
constexpr size_t kMaxRows = 100;      // of a table

std::string PercentText(double share) { return absl::StrFormat("%.3g %%", 100 * share); }

Nanos FromUs(double us) { return Nanos(static_cast<int64_t>(us * 1e3)); }

// `value` of `metric` for people, with its unit.
std::string ValueText(const RunMetric& metric, double value) {
  const std::string_view unit = metric.unit;
  return unit == "us"  ? DurationText(FromUs(value))
         : unit == "%" ? PercentText(value)
                       : NumberText(value) + "/s";
}

// The text below the number of a metric: how sure it is, or how the runs spread.
std::string DetailOf(const LoadReport& report, const RunMetric& metric) {
  if (report.runs.size() > 1) {
    const std::vector<double> values = UsableValues(report, metric);
    if (values.empty()) return "no valid run";
    const Spread s = SpreadOf(values);
    return absl::StrCat("median of ", s.runs, ": ", ValueText(metric, s.min), " to ",
                        ValueText(metric, s.max));
  }
  const LoadResult& run = report.runs.front();
  if (metric.percentile > 0) {
    const ValueInterval ci = PercentileInterval95(run.all, metric.percentile, run.neighbours());
    if (!ci.low || !ci.high) {
      return absl::StrCat(run.all.count(), " of the ",
                          SamplesForInterval95(metric.percentile, run.neighbours()),
                          " samples for an interval");
    }
    return absl::StrCat("95 %: ", DurationText(*ci.low), " to ", DurationText(*ci.high));
  }
  if (std::string_view(metric.key) == "good_per_s")
    return absl::StrCat("of ", NumberText(run.scheduled_per_s), "/s due");
  return absl::StrCat(run.failed, " of ", run.ok + run.failed, " requests");
}

std::string Tiles(const LoadReport& report) {
  std::string html = "<div class=\"tiles\">\n";
  for (const RunMetric& metric : RunMetrics()) {
    const std::string_view key = metric.key;
    if (key != "p50_us" && key != "p99_us" && key != "p99_9_us" && key != "good_per_s" &&
        key != "error_share")
      continue;
    std::vector<double> values = UsableValues(report, metric);
    if (values.empty()) values.push_back(metric.value(report.runs.front()));
    absl::StrAppend(&html,
                    HtmlTile(metric.label, ValueText(metric, Median(values)), DetailOf(report, metric)));
  }
  ScoreSummary score;
  for (const LoadResult& run : report.runs) score.count += run.score.count, score.sum += run.score.sum;
  if (score.count > 0) {
    absl::StrAppend(&html, HtmlTile(report.runs.front().score.name, absl::StrFormat("%.4g", score.mean()),
                                    absl::StrCat("mean of ", score.count, " replies")));
  }
  return html + "</div>\n";
}

// Texts and the runs that they are about, in the order in which they first came.
class Remarks {
 public:
  void Add(const std::string& text, size_t run) {
    const auto same =
        std::find_if(remarks_.begin(), remarks_.end(), [&](const auto& r) { return r.first == text; });
    if (same != remarks_.end()) absl::StrAppend(&same->second, ", ", run);
    else remarks_.emplace_back(text, absl::StrCat("run ", run));
  }
  std::string Html(bool name_runs) const {
    std::string html;
    for (const auto& [text, runs] : remarks_) {
      absl::StrAppend(&html, "<p>", name_runs ? runs + ": " : "", Escape(text), "</p>\n");
    }
    return html;
  }

 private:
  std::vector<std::pair<std::string, std::string>> remarks_;
};

// That a measurement is valid is no praise of the server.
std::string FailedShare(const LoadReport& report) {
  uint64_t ok = 0, failed = 0;
  for (const LoadResult& run : report.runs) ok += run.ok, failed += run.failed;
  if (failed == 0) return {};
  const double share = static_cast<double>(failed) / static_cast<double>(ok + failed);
  return absl::StrCat(" <span class=\"failed\">", PercentText(share), " of the calls failed.</span>");
}

std::string Boxes(const LoadReport& report) {
  Remarks void_because, to_know;
  for (size_t i = 0; i < report.runs.size(); ++i) {
    const LoadResult& run = report.runs[i];
    for (const std::string& reason : run.invalid) void_because.Add(reason, i + 1);
    for (const std::string& warning : run.warnings) to_know.Add(warning, i + 1);
    if (!run.interrupted) continue;
    to_know.Add(absl::StrFormat("interrupted after %s of %s: the numbers are partial",
                                DurationText(run.measured), DurationText(run.plan.duration)),
                i + 1);
  }
  const std::string reasons = void_because.Html(report.runs.size() > 1);
  const std::string warnings = to_know.Html(report.runs.size() > 1);
  std::string html;
  if (!reasons.empty()) {
    absl::StrAppend(&html, "<div class=\"box void\"><p><b>VOID: these numbers must not be believed</b></p>\n",
                    reasons, "</div>\n");
  } else {
    absl::StrAppend(
        &html,
        "<p><span class=\"ok\">&#10003; Valid: the generator was on time and kept to the schedule.</span>",
        FailedShare(report), "</p>\n");
  }
  if (!warnings.empty()) absl::StrAppend(&html, "<div class=\"box warning\">\n", warnings, "</div>\n");
  return html;
}

// Rows of a table of numbers, whose first cell is text.
class Table {
 public:
  explicit Table(const std::vector<std::string>& head) {
    html_ = "<div class=\"scroll\"><table class=\"numbers\"><thead><tr>";
    for (const std::string& cell : head) absl::StrAppend(&html_, "<th>", Escape(cell), "</th>");
    html_ += "</tr></thead>\n";
  }
  void Row(const std::vector<std::string>& cells) {
    if (++rows_ > kMaxRows) return;
    html_ += "<tr>";
    for (size_t i = 0; i < cells.size(); ++i) {
      absl::StrAppend(&html_, i == 0 ? "<td class=\"text\">" : "<td>", Escape(cells[i]), "</td>");
    }
    html_ += "</tr>\n";
  }
  std::string Html() const {
    std::string html = html_ + "</table></div>\n";
    if (rows_ > kMaxRows) absl::StrAppend(&html, "<p class=\"sub\">and ", rows_ - kMaxRows, " more</p>\n");
    return html;
  }

 private:
  std::string html_;
  size_t rows_ = 0;
};

void LatencyRow(const std::string& name, const Histogram& h, Table& table) {
  if (h.empty()) return;
  std::vector<std::string> cells = {name, absl::StrCat(h.count()), DurationText(h.mean())};
  for (double p : {50.0, 90.0, 95.0, 99.0, 99.9}) cells.push_back(DurationText(h.Percentile(p)));
  cells.push_back(DurationText(h.max()));
  table.Row(cells);
}

std::string LatencyTable(const LoadReport& report) {
  Table table({"latency", "count", "mean", "p50", "p90", "p95", "p99", "p99.9", "max"});
  for (size_t i = 0; i < report.runs.size(); ++i) {
    const LoadResult& run = report.runs[i];
    if (report.runs.size() == 1) {
      LatencyRow("every request", run.all, table);
      if (!LaggedPercentiles(run).empty()) LatencyRow("since sent", run.since_sent, table);
      LatencyRow("ok", run.success, table);
      LatencyRow("failed", run.failure, table);
    } else {
      LatencyRow(absl::StrCat("run ", i + 1, run.valid() ? "" : " (void)"), run.all, table);
    }
  }
  return table.Html() +
         "<p class=\"sub\">Of every request a failed one counts as at least the timeout.</p>\n";
}

std::string BetweenRuns(const LoadReport& report) {
  if (report.runs.size() < 2) return {};
  Table table({"between runs", "median", "lowest", "highest", "95 % of the median", "95 % of the mean"});
  for (const RunMetric& metric : RunMetrics()) {
    const std::vector<double> values = UsableValues(report, metric);
    if (values.size() < 2) return {};
    const Spread s = SpreadOf(values);
    const auto range = [&](const std::optional<Interval>& i) {
      return i ? absl::StrCat(ValueText(metric, i->low), " to ", ValueText(metric, i->high)) : "too few runs";
    };
    table.Row({metric.label, ValueText(metric, s.median), ValueText(metric, s.min), ValueText(metric, s.max),
               range(s.median_interval), range(s.mean_interval)});
  }
  return absl::StrCat("<h2>Between runs</h2>\n", table.Html());
}

std::string RunsTable(const LoadReport& report) {
  Table table({"requests", "seed", "due", "sent", "ok", "failed", "good/s", "send lag p99", "CPU a request"});
  for (size_t i = 0; i < report.runs.size(); ++i) {
    const LoadResult& r = report.runs[i];
    const auto sent = static_cast<int64_t>(std::max<uint64_t>(1, r.sent));
    table.Row({report.runs.size() == 1 ? "the run" : absl::StrCat("run ", i + 1), absl::StrCat(r.plan.seed),
               absl::StrCat(r.scheduled), absl::StrCat(r.sent), absl::StrCat(r.ok), absl::StrCat(r.failed),
               NumberText(r.good_per_s), r.send_lag.empty() ? "-" : DurationText(r.send_lag.Percentile(99)),
               DurationText(sent > 0 ? r.cpu / sent : r.cpu)});
  }
  return table.Html();
}

// Sums over the runs, most first.
std::string Counts(const LoadReport& report, const char* title,
                   std::map<std::string, uint64_t> LoadResult::* counts) {
  std::map<std::string, uint64_t> sums;
  for (const LoadResult& run : report.runs) {
    for (const auto& [name, count] : run.*counts) sums[name] += count;
  }
  if (sums.empty()) return {};
  std::vector<std::pair<std::string, uint64_t>> rows(sums.begin(), sums.end());
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  Table table({title, "calls"});
  for (const auto& [name, count] : rows) table.Row({name, absl::StrCat(count)});
  return table.Html();
}

std::string PlanTable(const LoadPlan& plan, const ReportOrigin& origin) {
  std::string html = "<table>\n";
  const auto row = [&](std::string_view name, std::string_view value) { html += HtmlFact(name, value); };
  row("target", absl::StrCat(plan.target, plan.tls ? " over TLS" : ""));
  row("method", plan.method);
  row("workload", plan.workload);
  if (!origin.request.empty()) row("request", origin.request);
  if (plan.closed()) {
    row("load", absl::StrCat("CLOSED LOOP of ", plan.outstanding, ": latency hides stalls"));
  } else {
    row("load", absl::StrFormat("open loop, %s arrivals, %s; mean %s/s, peak %s/s", plan.arrivals,
                                plan.schedule, NumberText(plan.rate_per_s), NumberText(plan.peak_per_s)));
  }
  row("time", absl::StrFormat(
                  "%s warm-up, then %s; timeout %s", DurationText(plan.warmup),
                  plan.requests == 0 ? DurationText(plan.duration) : absl::StrCat(plan.requests, " requests"),
                  DurationText(plan.timeout)));
  row("connections", absl::StrCat(plan.connections, " to each target"));
  row("generator", absl::StrFormat("spins %s before a send%s", DurationText(plan.spin),
                                   plan.realtime ? "; real-time priority" : ""));
  if (origin.machine) {
    row("machine", internal::MachineText(*origin.machine));
  }
  if (!origin.started.empty()) row("started", origin.started);
  if (!origin.command.empty()) row("command", origin.command);
  row("curtail", origin.curtail_version);
  return html + "</table>\n";
}

std::string Charts(const LoadReport& report, const internal::Palette& palette) {
  std::string html;
  if (const std::string spectrum = internal::SpectrumChart(report); !spectrum.empty()) {
    absl::StrAppend(&html, "<h2>Latency by percentile</h2>\n", spectrum,
                    "<p class=\"sub\">Shaded: where the percentile lies with 95 % confidence, ",
                    report.runs.size() < 6 ? "by the samples of a run; runs differ by more.</p>\n"
                                           : "as the median over runs.</p>\n");
  }
  for (size_t i = 0; i < std::min(report.runs.size(), kMaxChartRuns); ++i) {
    const std::string charts = internal::TimeCharts(report.runs[i], palette);
    if (charts.empty()) continue;
    if (i == 0)
      absl::StrAppend(&html, "<h2>Over time", report.runs.size() > 1 ? ", run 1" : "", "</h2>\n", charts);
    else
      absl::StrAppend(&html, "<details><summary>Run ", i + 1, " over time</summary>\n", charts,
                      "</details>\n");
  }
  return html;
}

}  // namespace

std::string ReportHtml(const LoadReport& report, const ReportOrigin& origin) {
  const LoadPlan& plan = report.runs.front().plan;
  const size_t runs = report.runs.size();
  const internal::Palette palette = internal::ConfigPalette(report, kMaxChartRuns);
  std::string html = internal::HtmlHead(absl::StrCat("Load test of ", plan.method), palette.Css());
  absl::StrAppend(&html, "<h1>Load test of ", Escape(plan.method), "</h1>\n<p class=\"sub\">",
                  Escape(plan.target), runs == 1 ? "" : absl::StrCat(", ", runs, " runs"), "</p>\n");
  absl::StrAppend(&html, Boxes(report), Tiles(report), LatencyTable(report), BetweenRuns(report),
                  Charts(report, palette));
  absl::StrAppend(&html, "<h2>Requests</h2>\n", RunsTable(report), Counts(report, "code", &LoadResult::codes),
                  Counts(report, "error", &LoadResult::errors), "<h2>Plan</h2>\n", PlanTable(plan, origin),
                  internal::kHtmlEnd);
  return html;
}

}  // namespace curtail
