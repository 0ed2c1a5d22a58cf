// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/report/internal/report_charts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "curtail/load/report/internal/svg_chart.h"
#include "curtail/load/report/statistics.h"

namespace curtail::internal {
namespace {

constexpr size_t kBuckets = 200;        // of a line over time: up to 400 points
constexpr size_t kColours = 6;          // classes c0 to c5 of the page: lines of as many runs
constexpr size_t kMaxMarks = 40;        // with more switches than these, lines would hide the chart
constexpr size_t kMaxSpans = 400;       // of the strip of configs
constexpr double kStepsPerDecade = 24;  // of the spectrum
constexpr double kGap = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kMaxRuns = 20;  // lines in the spectrum

double Sec(Nanos t) { return static_cast<double>(t.count()) / 1e9; }

// Three significant digits without an exponent.
std::string Short(double value) {
  const double size = std::abs(value);
  if (size >= 99.95 || value == 0) return absl::StrFormat("%.0f", value);
  std::string text = absl::StrFormat("%.*f", size >= 9.995 ? 1 : 2, value);
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string SecondsText(double s) {
  if (s == 0) return "0";
  if (s < 0.9995e-6) return Short(s * 1e9) + " ns";
  if (s < 0.9995e-3) return Short(s * 1e6) + " \xc2\xb5s";
  return s < 0.9995 ? Short(s * 1e3) + " ms" : Short(s) + " s";
}

std::string PlainSeconds(double s) { return Short(s); }

// The points of a line over time, thinned out.
template <class F>
std::vector<Point> Over(const std::vector<LoadInterval>& series, F value) {
  std::vector<Point> points;
  for (const LoadInterval& s : series) points.push_back({Sec(s.end) - Sec(s.length) / 2, value(s)});
  return Thin(points, kBuckets);
}

double PerSecond(uint64_t count, const LoadInterval& s) {
  return s.length <= Nanos::zero() ? kGap : static_cast<double>(count) / Sec(s.length);
}

double Highest(const std::vector<Line>& lines) {
  double highest = 0;
  for (const Line& line : lines) {
    for (const Point& p : line.points) {
      if (std::isfinite(p.y)) highest = std::max(highest, p.y);
    }
  }
  return highest;
}

double LowestAbove0(const std::vector<Line>& lines) {
  double lowest = std::numeric_limits<double>::infinity();
  for (const Line& line : lines) {
    for (const Point& p : line.points) {
      if (std::isfinite(p.y) && p.y > 0) lowest = std::min(lowest, p.y);
    }
  }
  return lowest;
}

// The configs that the server had, one after the other, where they are known.
struct Configs {
  Configs(const std::vector<LoadInterval>& series, const Palette& palette) {
    Nanos begin{0};
    bool known = false;
    for (const LoadInterval& s : series) {
      known |= !s.config.empty();
      if (spans.empty() || spans.back().name != s.config) {
        if (!spans.empty()) switches.push_back(Sec(begin));
        spans.push_back(
            {Sec(begin), Sec(s.end), absl::StrCat("config ", palette.ClassOf(s.config)), s.config});
      }
      spans.back().to = Sec(s.end);
      begin = s.end;
    }
    if (!known || spans.size() > kMaxSpans) spans.clear();
    if (!known || switches.size() > kMaxMarks) switches.clear();
  }
  std::vector<Span> spans;
  std::vector<double> switches;
};

bool Outage(const LoadInterval& s) { return s.ok == 0 && s.failed > 0; }

// The times in which calls ended and none was answered OK.
void ShadeOutages(const std::vector<LoadInterval>& series, Chart* chart) {
  bool before = false;
  for (const LoadInterval& s : series) {
    const bool out = Outage(s);
    if (out && before) {
      chart->shades.back().to = Sec(s.end);
    } else if (out) {
      if (chart->shades.size() > kMaxMarks) return;
      chart->shades.push_back({Sec(s.end) - Sec(s.length), Sec(s.end), "outage", "all failed"});
    }
    before = out;
  }
}

// A chart over the time of `run`, with warm-up and outages shaded and the switches marked.
Chart TimeChart(const LoadResult& run, const Configs& configs, std::string label) {
  Chart chart;
  chart.label = std::move(label);
  chart.x = ExactAxis("seconds since the start", 0, Sec(run.series.back().end), PlainSeconds);
  if (run.plan.warmup > Nanos::zero()) chart.shades.push_back({0, Sec(run.plan.warmup), "warmup", "warm-up"});
  ShadeOutages(run.series, &chart);
  chart.marks = configs.switches;
  return chart;
}

std::string LatencyOverTime(const LoadResult& run, const Configs& configs) {
  Chart chart = TimeChart(run, configs, "Latency over time");
  chart.strip = configs.spans;
  chart.height = 280;
  // Timeouts alone are no latency: a line through them would join what the outage parts.
  const auto or_gap = [](const LoadInterval& s, Nanos t) { return s.ok == 0 ? kGap : Sec(t); };
  chart.lines.push_back({"p50", "c0", Over(run.series, [&](const auto& s) { return or_gap(s, s.p50); })});
  chart.lines.push_back({"p99", "c1", Over(run.series, [&](const auto& s) { return or_gap(s, s.p99); })});
  chart.y =
      LogAxis("latency of calls that ended", LowestAbove0(chart.lines), Highest(chart.lines), SecondsText);
  return SvgChart(chart);
}

std::string Throughput(const LoadResult& run, const Configs& configs) {
  Chart chart = TimeChart(run, configs, "Throughput over time");
  const auto rate = [&](uint64_t LoadInterval::* count) {
    return Over(run.series, [count](const LoadInterval& s) { return PerSecond(s.*count, s); });
  };
  chart.lines.push_back({"due", "c4 wide", rate(&LoadInterval::due)});
  chart.lines.push_back({"sent", "c0", rate(&LoadInterval::sent)});
  chart.lines.push_back({"ok", "c2", rate(&LoadInterval::ok)});
  chart.lines.push_back({"failed", "c1", rate(&LoadInterval::failed)});
  chart.y = LinearAxis("requests a second", Highest(chart.lines), NumberText);
  return SvgChart(chart);
}

std::string InFlight(const LoadResult& run, const Configs& configs) {
  Chart chart = TimeChart(run, configs, "Calls in flight over time");
  chart.height = 170;
  chart.lines.push_back(
      {"", "c3", Over(run.series, [](const LoadInterval& s) { return static_cast<double>(s.in_flight); })});
  chart.y = LinearAxis("calls in flight", Highest(chart.lines), NumberText);
  return SvgChart(chart);
}

// 1/(1-p) at the steps of the spectrum for `count` samples, up to the last sample.
std::vector<double> Steps(uint64_t count) {
  std::vector<double> steps;
  const auto last = static_cast<double>(count);
  for (int k = 0; std::pow(10, k / kStepsPerDecade) < last; ++k)
    steps.push_back(std::pow(10, k / kStepsPerDecade));
  steps.push_back(std::max(1.0, last));
  return steps;
}

double PercentAt(double step) { return 100 * (1 - 1 / step); }

std::vector<Point> SpectrumOf(const Histogram& h) {
  std::vector<Point> points;
  for (double step : Steps(h.count())) points.push_back({step, Sec(h.Percentile(PercentAt(step)))});
  return points;
}

// Where the percentiles of one run lie, by its samples.
Area BandWithin(const Histogram& h, double neighbours, std::string style) {
  Area area{std::move(style), {}, {}};
  for (double step : Steps(h.count())) {
    const ValueInterval ci = PercentileInterval95(h, PercentAt(step), neighbours);
    if (!ci.low || !ci.high) continue;
    area.low.push_back({step, Sec(*ci.low)});
    area.high.push_back({step, Sec(*ci.high)});
  }
  return area;
}

// Where the median over runs lies, up to the samples that every run has.
Area BandBetween(const std::vector<const Histogram*>& runs) {
  Area area{"c0", {}, {}};
  uint64_t least = runs.front()->count();
  for (const Histogram* h : runs) least = std::min(least, h->count());
  for (double step : Steps(least)) {
    std::vector<double> values;
    for (const Histogram* h : runs) values.push_back(Sec(h->Percentile(PercentAt(step))));
    const std::optional<Interval> ci = MedianInterval(values, 0.95);
    if (!ci) continue;
    area.low.push_back({step, ci->low});
    area.high.push_back({step, ci->high});
  }
  return area;
}

Axis SpectrumAxis(double highest) {
  Axis axis{
      .title = "percentile (scale: 1 / (1 - percentile), logarithmic)", .low = 1, .high = 10, .log = true};
  axis.high = std::max(axis.high, highest);
  axis.ticks = {{2, "50 %"}};
  std::string label = "90";
  for (double at = 10; at <= axis.high * 1.001; at *= 10) {
    axis.ticks.push_back({at, label + " %"});
    label += label == "90" ? "" : label == "99" ? ".9" : "9";
    if (label == "90") label = "99";
  }
  return axis;
}

}  // namespace

std::string DurationText(Nanos t) { return SecondsText(Sec(t)); }

std::string NumberText(double number) {
  const double size = std::abs(number);
  if (size >= 999.5e6) return absl::StrFormat("%.3g", number);
  if (size >= 999.5e3) return Short(number / 1e6) + "M";
  return size >= 9999.5  ? Short(number / 1e3) + "k"
         : size >= 999.5 ? absl::StrFormat("%.0f", number)
                         : Short(number);
}

Palette ConfigPalette(const LoadReport& report, size_t runs) {
  Palette palette;
  for (size_t i = 0; i < std::min(runs, report.runs.size()); ++i) {
    const std::vector<LoadInterval>& series = report.runs[i].series;
    std::set<std::string> configs;
    for (const LoadInterval& s : series) configs.insert(s.config);
    if (configs.size() > kMaxSpans) continue;  // its charts have no strip
    for (const LoadInterval& s : series) palette.Add(s.config);
  }
  return palette;
}

std::string TimeCharts(const LoadResult& run, const Palette& palette) {
  if (run.series.empty()) return {};
  const Configs configs(run.series, palette);
  return absl::StrCat(LatencyOverTime(run, configs), Throughput(run, configs), InFlight(run, configs));
}

std::string SpectrumChart(const LoadReport& report) {
  std::vector<const Histogram*> runs;
  std::vector<double> neighbours;
  for (const LoadResult& run : report.runs) {
    if (run.all.empty() || runs.size() >= kMaxRuns) continue;
    runs.push_back(&run.all);
    neighbours.push_back(run.neighbours());
  }
  if (runs.empty()) return {};
  Chart chart;
  chart.label = "Latency by percentile";
  chart.height = 340;
  uint64_t most = 0;
  const bool few = runs.size() <= kColours;
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::string colour = absl::StrCat("c", few ? i : 0);
    std::string name = runs.size() == 1 ? "every request" : few ? absl::StrCat("run ", i + 1) : "";
    if (!few && i == 0) name = absl::StrCat(runs.size(), " runs");
    chart.lines.push_back({std::move(name), few ? colour : "c0 faint", SpectrumOf(*runs[i])});
    if (runs.size() < 6) chart.areas.push_back(BandWithin(*runs[i], neighbours[i], colour));
    most = std::max(most, runs[i]->count());
  }
  if (runs.size() >= 6) chart.areas.push_back(BandBetween(runs));
  const double low = LowestAbove0(chart.lines), high = Highest(chart.lines);
  const bool log = high > 30 * low;
  chart.y = log ? LogAxis("latency", low, high, SecondsText) : LinearAxis("latency", high, SecondsText);
  chart.x = SpectrumAxis(static_cast<double>(most));
  return SvgChart(chart);
}

}  // namespace curtail::internal
