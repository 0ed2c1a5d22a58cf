// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: one chart, written by hand so that it needs no library and no script. Colour is the family, the
// dash is the reception (block solid, poll dashed), the marker is the execution (in-line circle, dispatch
// square). A point that is saturated or generator-bound is hollow. Names stand at the right, spread so that
// none covers another, with a line to the last point.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "report.h"

namespace curtail::models {
namespace {

constexpr double kWidth = 960, kHeight = 560;
constexpr double kLeft = 80, kRight = 800, kTop = 64, kBottom = 484;
constexpr double kMargin = 1.3;
constexpr double kLabelGap = 44;  // between labels of loads
constexpr double kNameGap = 18;   // between the baselines of two names

const char* Colour(Waiting waiting) {
  switch (waiting) {  // apart for the colour-blind as well (Okabe and Ito)
    case Waiting::kSync:
      return "#0072b2";
    case Waiting::kAsync:
      return "#d55e00";
    case Waiting::kFiber:
      break;
  }
  return "#007a5a";
}

// Logarithmic, from [low, high] of the data to [from, to] of the picture.
struct Axis {
  double low, high, from, to;
  double At(double value) const {
    const double share = std::log(std::clamp(value, low, high) / low) / std::log(high / low);
    return from + share * (to - from);
  }
};

struct Point {
  double load, p99;
  bool saturated;
  bool hollow;
  std::string config;
};

struct Curve {
  Model model;
  std::string name;  // the config, or the model where its points are of several
  std::vector<Point> points;
};

// The model at each load with the best of its pools.
Curve CurveOf(const Results& r, const Model& model) {
  Curve curve{model, {}, {}};
  for (size_t l = 0; l < r.loads.size(); ++l) {
    const std::optional<size_t> best = BestPool(r, model, l);
    if (!best || r.loads[l].closed()) continue;
    const Row& row = r.rows[*best];
    const Summary s = *Summarize(row.cells[l]);
    if (s.p99_us.median <= 0) continue;
    curve.points.push_back(
        {r.loads[l].rate_per_s, s.p99_us.median, s.saturated, s.saturated || s.generator_bound, row.config});
  }
  const auto of_model = [&](const Row& row) { return row.model == model; };
  const bool one_pool = std::count_if(r.rows.begin(), r.rows.end(), of_model) == 1;
  curve.name = one_pool && !curve.points.empty() ? curve.points[0].config : ModelName(model);
  return curve;
}

std::vector<Curve> CurvesOf(const Results& r) {
  std::vector<Curve> curves;
  for (const Model& model : AllModels()) {
    Curve curve = CurveOf(r, model);
    if (!curve.points.empty()) curves.push_back(std::move(curve));
  }
  return curves;
}

// Both are widened a little, so that no curve lies on the frame.
Axis LoadAxis(const std::vector<Curve>& curves) {
  double low = HUGE_VAL, high = 0;
  for (const Curve& curve : curves) {
    low = std::min(low, curve.points.front().load), high = std::max(high, curve.points.back().load);
  }
  return {low / kMargin, high * kMargin, kLeft, kRight};
}

// The tails of saturated cells depend on the length of the run only, so they do not stretch the scale: they
// lie at its top edge if they exceed it.
Axis TailAxis(const std::vector<Curve>& curves) {
  double low = HUGE_VAL, high = 0, highest = 0;
  for (const Curve& curve : curves) {
    for (const Point& point : curve.points) {
      low = std::min(low, point.p99), highest = std::max(highest, point.p99);
      if (!point.saturated) high = std::max(high, point.p99);
    }
  }
  if (high == 0) high = highest;
  return {low / kMargin, std::min(2 * high, highest * kMargin), kBottom, kTop};
}

std::string Text(double x, double y, const char* anchor, absl::string_view text,
                 absl::string_view attributes = "") {
  return absl::StrFormat("  <text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s>%s</text>\n", x, y, anchor,
                         attributes,
                         absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}}));
}

std::string GridLine(double x1, double y1, double x2, double y2) {
  return absl::StrFormat("  <path class=\"grid\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", x1, y1, x2, y2);
}

// 1, 2 and 5 of each decade within the axis.
std::vector<double> Ticks(const Axis& axis) {
  std::vector<double> ticks;
  for (double decade = std::pow(10, std::floor(std::log10(axis.low))); decade <= axis.high; decade *= 10) {
    for (double digit : {1, 2, 5}) {
      if (digit * decade >= axis.low && digit * decade <= axis.high) ticks.push_back(digit * decade);
    }
  }
  return ticks;
}

std::string Milliseconds(double us) { return absl::StrFormat("%g", us / 1000); }

std::string Frame(const Results& r, const Axis& x, const Axis& y) {
  std::string out;
  for (double tick : Ticks(y)) {
    absl::StrAppend(&out, GridLine(kLeft, y.At(tick), kRight, y.At(tick)),
                    Text(kLeft - 8, y.At(tick) + 5, "end", Milliseconds(tick)));
  }
  double labelled = -kLabelGap;
  for (const Load& load : r.loads) {
    if (load.closed() || load.rate_per_s < x.low || load.rate_per_s > x.high) continue;
    const double at = x.At(load.rate_per_s);
    absl::StrAppend(&out, GridLine(at, kTop, at, kBottom));
    if (at - labelled < kLabelGap) continue;
    absl::StrAppend(&out, Text(at, kBottom + 20, "middle", absl::StrFormat("%g", load.rate_per_s)));
    labelled = at;
  }
  absl::StrAppendFormat(&out,
                        "  <rect class=\"frame\" x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\"/>\n",
                        kLeft, kTop, kRight - kLeft, kBottom - kTop);
  absl::StrAppend(&out, Text((kLeft + kRight) / 2, kBottom + 42, "middle",
                             "offered load, requests a second (points on the top edge are off the scale)"));
  absl::StrAppendFormat(
      &out, "  <text transform=\"translate(22 %.0f) rotate(-90)\" text-anchor=\"middle\">p99, ms</text>\n",
      (kTop + kBottom) / 2);
  return out;
}

std::string Marker(const Model& model, const Point& point, double x, double y) {
  const char* colour = Colour(model.waiting);
  const std::string style = absl::StrFormat("fill=\"%s\" stroke=\"%s\" stroke-width=\"1.5\"",
                                            point.hollow ? "#ffffff" : colour, colour);
  const std::string title =
      absl::StrFormat("<title>%s at %g/s: p99 %.0f us%s</title>", point.config, point.load, point.p99,
                      point.hollow ? ", saturated or generator-bound" : "");
  if (model.execution == Execution::kInline) {
    return absl::StrFormat("  <circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" %s>%s</circle>\n", x, y, style, title);
  }
  return absl::StrFormat("  <rect x=\"%.1f\" y=\"%.1f\" width=\"7.5\" height=\"7.5\" %s>%s</rect>\n",
                         x - 3.75, y - 3.75, style, title);
}

std::string Drawn(const Curve& curve, const Axis& x, const Axis& y) {
  std::string path, markers;
  for (const Point& point : curve.points) {
    absl::StrAppendFormat(&path, "%s%.1f %.1f", path.empty() ? "M" : "L", x.At(point.load), y.At(point.p99));
    absl::StrAppend(&markers, Marker(curve.model, point, x.At(point.load), y.At(point.p99)));
  }
  const bool poll = curve.model.reception == Reception::kPoll;
  return absl::StrFormat("  <path class=\"curve\" stroke=\"%s\"%s d=\"%s\"/>\n%s",
                         Colour(curve.model.waiting), poll ? " stroke-dasharray=\"7 4\"" : "", path, markers);
}

// Names at the right in the order of the last points, pushed apart downwards and then back up from the
// bottom.
std::string Names(std::vector<Curve> curves, const Axis& x, const Axis& y) {
  std::sort(curves.begin(), curves.end(),
            [](const Curve& a, const Curve& b) { return a.points.back().p99 > b.points.back().p99; });
  std::vector<double> at;
  for (const Curve& curve : curves) {
    const double wanted = y.At(curve.points.back().p99);
    at.push_back(at.empty() ? wanted : std::max(wanted, at.back() + kNameGap));
  }
  double limit = kBottom;
  for (size_t i = at.size(); i-- > 0; limit = at[i] - kNameGap) at[i] = std::min(at[i], limit);
  std::string out;
  for (size_t i = 0; i < curves.size(); ++i) {
    const Point& last = curves[i].points.back();
    const char* colour = Colour(curves[i].model.waiting);
    absl::StrAppendFormat(&out, "  <path class=\"lead\" stroke=\"%s\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", colour,
                          x.At(last.load) + 6, y.At(last.p99), kRight + 14, at[i]);
    absl::StrAppend(&out, Text(kRight + 18, at[i] + 5, "start", curves[i].name,
                               absl::StrFormat(" fill=\"%s\" font-weight=\"600\"", colour)));
  }
  return out;
}

}  // namespace

std::string ToSvg(const Results& r) {
  const std::string title = absl::StrCat(r.service, ": p99 over load by threading model");
  std::string out = absl::StrFormat(
      "<!-- SPDX-License-Identifier: Apache-2.0 -->\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
      "role=\"img\" "
      "aria-label=\"%s\">\n"
      "  <style>text { font: 14px system-ui, sans-serif; } .grid { stroke: #e3e7eb; } .frame { fill: none; "
      "stroke: "
      "#7b8794; } .curve { fill: none; stroke-width: 2; } .lead { stroke-width: 0.75; opacity: 0.6; "
      "}</style>\n"
      "  <rect width=\"%.0f\" height=\"%.0f\" fill=\"#ffffff\"/>\n",
      kWidth, kHeight, kWidth, kHeight, title, kWidth, kHeight);
  absl::StrAppend(
      &out, Text(kLeft, 26, "start", title, " font-weight=\"600\" style=\"font-size:17px\""),
      Text(kLeft, 48, "start",
           "blue sync, orange async, green fiber; solid block, dashed poll; circle in-line, square dispatch; "
           "hollow generator-bound or saturated",
           " style=\"font-size:12px\""));
  const std::vector<Curve> curves = CurvesOf(r);
  if (curves.empty())
    return absl::StrCat(out, Text(kWidth / 2, kHeight / 2, "middle", "nothing was measured"), "</svg>\n");
  const Axis x = LoadAxis(curves), y = TailAxis(curves);
  absl::StrAppend(&out, Frame(r, x, y));
  for (const Curve& curve : curves) absl::StrAppend(&out, Drawn(curve, x, y));
  return absl::StrCat(out, Names(curves, x, y), "</svg>\n");
}

}  // namespace curtail::models
