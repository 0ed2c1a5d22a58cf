// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: the library draws the chart (svg_chart.h). Colour is the family, the dash is the reception (block solid, poll
// dashed), the marker is the execution (in-line circle, dispatch square). A point that is saturated or generator-bound
// is hollow.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "curtail/load/report/internal/report_charts.h"
#include "curtail/load/report/internal/svg_chart.h"
#include "report.h"

namespace curtail::models {
namespace {

constexpr double kHeight = 520;

// Apart for the colour-blind as well (Okabe and Ito).
constexpr char kCss[] = R"(.line { stroke-width: 2; }
.line.sync, .marker.sync { stroke: #0072b2; } .marker.sync, text.sync { fill: #0072b2; }
.line.async, .marker.async { stroke: #d55e00; } .marker.async, text.async { fill: #d55e00; }
.line.fiber, .marker.fiber { stroke: #007a5a; } .marker.fiber, text.fiber { fill: #007a5a; }
.marker.hollow { fill: var(--bg); } svg text.name { font-weight: 600; }
)";

const char* FamilyOf(const Model& model) {
  return model.waiting == Waiting::kSync ? "sync" : model.waiting == Waiting::kAsync ? "async" : "fiber";
}

std::string SecondsText(double s) { return internal::DurationText(Nanos(std::llround(s * 1e9))); }

// The least and the greatest of the values that it is shown.
struct Range {
  double low = HUGE_VAL;
  double high = 0;
  void Show(double value) { low = std::min(low, value), high = std::max(high, value); }
};

struct Ranges {
  Range load;
  Range p99;
  Range sustained;  // p99 of points that are not saturated
};

// Adds the model at each load with the best of its pools. Its name is the config, or the model where its points are of
// several.
void AddCurve(const Results& r, const Model& model, internal::Chart* chart, Ranges* ranges) {
  const std::string family = FamilyOf(model);
  internal::Line line{ModelName(model), family + (model.reception == Reception::kPoll ? " dashed" : ""), {}};
  for (size_t l = 0; l < r.loads.size(); ++l) {
    const std::optional<size_t> best = BestPool(r, model, l);
    if (!best || r.loads[l].closed()) continue;
    const Row& row = r.rows[*best];
    const Summary s = *Summarize(row.cells[l]);
    if (s.p99_us.median <= 0) continue;
    const internal::Point at{r.loads[l].rate_per_s, s.p99_us.median / 1e6};
    const bool hollow = s.saturated || s.generator_bound;
    ranges->load.Show(at.x);
    ranges->p99.Show(at.y);
    if (!s.saturated) ranges->sustained.Show(at.y);
    const std::string title = absl::StrFormat("%s at %g/s: p99 %s%s", row.config, at.x, SecondsText(at.y),
                                              hollow ? ", saturated or generator-bound" : "");
    const auto of_model = [&](const Row& other) { return other.model == model; };
    if (std::count_if(r.rows.begin(), r.rows.end(), of_model) == 1) line.name = row.config;
    line.points.push_back(at);
    chart->markers.push_back(
        {at, family + (hollow ? " hollow" : ""), model.execution == Execution::kDispatch, title});
  }
  if (!line.points.empty()) chart->lines.push_back(std::move(line));
}

}  // namespace

std::string ToSvg(const Results& r) {
  internal::Chart chart;
  chart.label = absl::StrCat(r.service, ": p99 over load by threading model");
  chart.height = kHeight;
  chart.names_at_end = true;
  Ranges ranges;
  for (const Model& model : AllModels()) AddCurve(r, model, &chart, &ranges);
  if (chart.lines.empty()) return internal::SvgFile(chart, "nothing was measured", kCss);
  // The tails of saturated cells depend on the length of the run only, so they do not stretch the scale.
  const double top = ranges.sustained.high > 0 ? 2 * ranges.sustained.high : ranges.p99.high;
  chart.x = internal::LogAxis("offered load, requests a second (points on the top edge are off the scale)",
                              ranges.load.low, ranges.load.high, internal::NumberText);
  chart.y = internal::LogAxis("p99", ranges.p99.low, std::min(top, ranges.p99.high), SecondsText);
  return internal::SvgFile(chart,
                           "blue sync, orange async, green fiber; solid block, dashed poll; circle in-line, "
                           "square dispatch; hollow generator-bound or saturated",
                           kCss);
}

}  // namespace curtail::models
