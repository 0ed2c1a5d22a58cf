// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/report/internal/svg_chart.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace curtail::internal {
namespace {

constexpr double kWidth = 920;
constexpr double kLeft = 66;
constexpr double kRight = 28;
constexpr double kNames = 150;   // on the right, for names
constexpr double kNameGap = 16;  // between the baselines of two
constexpr double kHeading = 48;  // of a file
constexpr double kBottom = 42;
constexpr double kLegend = 24;  // its height
constexpr double kStrip = 20;
constexpr double kLetter = 6.7;  // how wide one is, about, at 12 px
constexpr size_t kMaxTicks = 200;

// How many bytes at the start of `text` are one character of UTF-8; 0 where they are none (RFC 3629).
size_t CharacterLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool outside = (first == 0xed && byte(1) > 0x9f) || (first == 0xf4 && byte(1) > 0x8f);
  return overlong || outside ? 0 : length;
}

std::string_view Replacement(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return {};
  }
}

// Where values of a chart lie on it.
class Scale {
 public:
  Scale(const Axis& axis, double from, double to)
      : log_(axis.log),
        low_(Of(axis.low)),
        from_(from),
        factor_((to - from) / (Of(axis.high) - Of(axis.low))) {}
  double operator()(double value) const { return from_ + (Of(value) - low_) * factor_; }
  bool Has(double value) const { return std::isfinite(value) && (!log_ || value > 0); }

 private:
  double Of(double value) const { return log_ ? std::log10(value) : value; }

  bool log_;
  double low_;
  double from_;
  double factor_;
};

struct Frame {
  double left, right, top, bottom;
};

std::string Text(double x, double y, const char* anchor, const char* style, std::string_view text) {
  return absl::StrFormat("<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", style, x,
                         y, anchor, Escape(text));
}

std::string Segment(const char* style, double x1, double y1, double x2, double y2) {
  return absl::StrFormat("<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", style, x1,
                         y1, x2, y2);
}

std::string Axes(const Chart& chart, const Frame& f, const Scale& x, const Scale& y) {
  std::string svg;
  for (const Tick& tick : chart.y.ticks) {
    absl::StrAppend(&svg, Segment("grid", f.left, y(tick.at), f.right, y(tick.at)));
    if (!tick.label.empty())
      absl::StrAppend(&svg, Text(f.left - 8, y(tick.at) + 4, "end", "tick", tick.label));
  }
  for (const Tick& tick : chart.x.ticks) {
    absl::StrAppend(&svg, Segment("grid", x(tick.at), f.top, x(tick.at), f.bottom));
    if (!tick.label.empty())
      absl::StrAppend(&svg, Text(x(tick.at), f.bottom + 16, "middle", "tick", tick.label));
  }
  absl::StrAppend(&svg, Segment("axis", f.left, f.bottom, f.right, f.bottom));
  absl::StrAppend(&svg, Text((f.left + f.right) / 2, f.bottom + 34, "middle", "title", chart.x.title));
  return svg;
}

// To the tenth of a pixel that is written, so that spans beside each other leave no gap.
double Edge(double value, const Scale& x, const Frame& f) {
  return std::round(10 * std::clamp(x(value), f.left, f.right)) / 10;
}

std::string Spans(const std::vector<Span>& spans, const Scale& x, const Frame& f) {
  std::string svg;
  for (const Span& span : spans) {
    if (!x.Has(span.from) || !x.Has(span.to)) continue;
    const double from = Edge(span.from, x, f), to = Edge(span.to, x, f);
    if (to <= from) continue;
    absl::StrAppendFormat(&svg, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
                          span.style, from, f.top, to - from, f.bottom - f.top);
  }
  return svg;
}

// The names of spans, where they fit. They come after what would strike them through.
std::string SpanNames(const std::vector<Span>& spans, const Scale& x, const Frame& f, const char* style) {
  std::string svg;
  for (const Span& span : spans) {
    if (!x.Has(span.from) || !x.Has(span.to)) continue;
    const double from = Edge(span.from, x, f), to = Edge(span.to, x, f);
    if (span.name.empty() || static_cast<double>(span.name.size()) * kLetter + 8 >= to - from) continue;
    absl::StrAppend(&svg, Text((from + to) / 2, f.top + 13, "middle", style, span.name));
  }
  return svg;
}

// The commands of a path: "M" where a line begins, with a line of no length that shows a lone point as a dot, "L" where
// it goes on. Points beyond the frame stand on its edge.
std::string Path(const std::vector<Point>& points, const Scale& x, const Scale& y, const Frame& f) {
  std::string path;
  bool open = false;
  for (const Point& p : points) {
    if (!x.Has(p.x) || !y.Has(p.y)) {
      open = false;
      continue;
    }
    absl::StrAppendFormat(&path, "%c%.1f %.1f%s", open ? 'L' : 'M', std::clamp(x(p.x), f.left, f.right),
                          std::clamp(y(p.y), f.top, f.bottom), open ? "" : "h0");
    open = true;
  }
  return path;
}

std::string Areas(const Chart& chart, const Scale& x, const Scale& y, const Frame& f) {
  std::string svg;
  for (const Area& area : chart.areas) {
    std::vector<Point> outline = area.low;
    outline.insert(outline.end(), area.high.rbegin(), area.high.rend());
    std::erase_if(outline, [&](const Point& p) { return !x.Has(p.x) || !y.Has(p.y); });
    if (outline.size() < 3) continue;
    absl::StrAppendFormat(&svg, "<path class=\"area %s\" d=\"%sZ\"/>\n", area.style, Path(outline, x, y, f));
  }
  return svg;
}

std::string Lines(const Chart& chart, const Scale& x, const Scale& y, const Frame& f) {
  std::string svg;
  for (const Line& line : chart.lines) {
    const std::string path = Path(line.points, x, y, f);
    if (path.empty()) continue;
    absl::StrAppendFormat(&svg, "<path class=\"line %s\" d=\"%s\"/>\n", line.style, path);
  }
  return svg;
}

// Above a point and right of it, or left of one that is near the right edge.
std::string Labels(const Chart& chart, const Scale& x, const Scale& y, const Frame& f) {
  constexpr double kLine = 15, kDistance = 10;
  struct Placed {
    double left, right, y;
  };
  std::vector<Placed> placed;
  std::string svg;
  for (const Label& label : chart.labels) {
    if (!x.Has(label.at.x) || !y.Has(label.at.y)) continue;
    const double width = static_cast<double>(label.text.size()) * kLetter, at = x(label.at.x);
    const bool before = at + kDistance + width > f.right;
    Placed here{before ? at - kDistance - width : at + kDistance, 0, y(label.at.y) - 8};
    here.right = here.left + width;
    for (const Placed& other : placed) {
      const bool apart = here.left > other.right || here.right < other.left;
      if (!apart && std::abs(here.y - other.y) < kLine) here.y = other.y + kLine;
    }
    placed.push_back(here);
    absl::StrAppend(
        &svg, Text(before ? here.right : here.left, here.y, before ? "end" : "start", "title", label.text));
  }
  return svg;
}

// A shape at each point that has one, which tells its title to a pointer.
std::string Markers(const Chart& chart, const Scale& x, const Scale& y, const Frame& f) {
  constexpr double kRadius = 4;
  std::string svg;
  for (const Marker& marker : chart.markers) {
    if (!x.Has(marker.at.x) || !y.Has(marker.at.y)) continue;
    const double at = std::clamp(x(marker.at.x), f.left, f.right);
    const double height = std::clamp(y(marker.at.y), f.top, f.bottom);
    const std::string title = absl::StrCat("<title>", Escape(marker.title), "</title>");
    if (marker.square) {
      absl::StrAppendFormat(
          &svg, "<rect class=\"marker %s\" x=\"%.1f\" y=\"%.1f\" width=\"%g\" height=\"%g\">%s</rect>\n",
          marker.style, at - kRadius, height - kRadius, 2 * kRadius, 2 * kRadius, title);
    } else {
      absl::StrAppendFormat(&svg,
                            "<circle class=\"marker %s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%g\">%s</circle>\n",
                            marker.style, at, height, kRadius, title);
    }
  }
  return svg;
}

// The names of the lines right of the plot, in the order of their last points, each with a thin line to its point.
// They are pushed apart downwards and then back up from the bottom.
std::string NamesAtEnd(const Chart& chart, const Scale& x, const Scale& y, const Frame& f) {
  struct Name {
    const Line* line;
    double x, y, at;
  };
  std::vector<Name> names;
  for (const Line& line : chart.lines) {
    if (line.name.empty() || line.points.empty()) continue;
    const Point& last = line.points.back();
    if (!x.Has(last.x) || !y.Has(last.y)) continue;
    const double height = std::clamp(y(last.y), f.top, f.bottom);
    names.push_back({&line, std::clamp(x(last.x), f.left, f.right), height, height});
  }
  std::sort(names.begin(), names.end(),
            [](const Name& a, const Name& b) { return a.y != b.y ? a.y < b.y : a.line < b.line; });
  for (size_t i = 1; i < names.size(); ++i) names[i].at = std::max(names[i].y, names[i - 1].at + kNameGap);
  double limit = f.bottom;
  for (size_t i = names.size(); i-- > 0; limit = names[i].at - kNameGap) {
    names[i].at = std::min(names[i].at, limit);
  }
  std::string svg;
  for (const Name& name : names) {
    absl::StrAppendFormat(&svg, "<path class=\"line lead %s\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n",
                          name.line->style, name.x + 6, name.y, f.right + 14, name.at);
    absl::StrAppend(&svg, Text(f.right + 18, name.at + 4, "start",
                               absl::StrCat("name ", name.line->style).c_str(), name.line->name));
  }
  return svg;
}

// The title of the y axis, then the names of the lines, in a row above the plot.
std::string Legend(const Chart& chart) {
  std::string svg = Text(4, 14, "start", "title", chart.y.title);
  double x = std::max(kLeft, 4 + static_cast<double>(chart.y.title.size()) * kLetter + 24);
  for (const Line& line : chart.lines) {
    if (line.name.empty() || chart.names_at_end) continue;
    absl::StrAppendFormat(&svg, "<path class=\"line %s\" d=\"M%.1f 10L%.1f 10\"/>\n", line.style, x, x + 20);
    absl::StrAppend(&svg, Text(x + 26, 14, "start", "tick", line.name));
    x += 26 + static_cast<double>(line.name.size()) * kLetter + 18;
  }
  return svg;
}

// The content of the <svg> element.
std::string Inside(const Chart& chart) {
  const double strip = chart.strip.empty() ? 0 : kStrip;
  const Frame plot{kLeft, kWidth - (chart.names_at_end ? kNames : kRight), kLegend + strip + 4,
                   chart.height - kBottom};
  const Scale x(chart.x, plot.left, plot.right), y(chart.y, plot.bottom, plot.top);
  const Frame above{plot.left, plot.right, kLegend, kLegend + kStrip};
  std::string svg = absl::StrCat(Spans(chart.shades, x, plot), Axes(chart, plot, x, y), Legend(chart),
                                 Spans(chart.strip, x, above));
  for (double mark : chart.marks) {
    if (mark < chart.x.low || mark > chart.x.high) continue;
    absl::StrAppend(&svg, Segment("mark", x(mark), plot.top, x(mark), plot.bottom));
  }
  absl::StrAppend(&svg, Areas(chart, x, y, plot), Lines(chart, x, y, plot), Markers(chart, x, y, plot),
                  chart.names_at_end ? NamesAtEnd(chart, x, y, plot) : "",
                  SpanNames(chart.shades, x, plot, "tick"), SpanNames(chart.strip, x, above, "strip"),
                  Labels(chart, x, y, plot));
  return svg;
}

// 1, 2 or 5 times a power of ten: the least that is no less than `value`.
double RoundUp(double value) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (double step : {1.0, 2.0, 5.0}) {
    if (step * power >= value * (1 - 1e-9)) return step * power;
  }
  return 10 * power;
}

std::vector<Tick> EvenTicks(double low, double high, double step, Format format) {
  std::vector<Tick> ticks;
  for (double k = std::ceil(low / step - 1e-9) + 0.0;
       k * step <= high + step * 1e-6 && ticks.size() < kMaxTicks; ++k) {
    ticks.push_back({k * step, format(k * step)});
  }
  return ticks;
}

}  // namespace

const std::string_view kChartCss = R"(svg { font: 12px system-ui, sans-serif; }
svg text { fill: var(--muted); paint-order: stroke; stroke: var(--bg); stroke-width: 3px; stroke-linejoin: round; }
svg text.title, svg text.strip { fill: var(--fg); } svg text.strip { stroke: none; }
svg text.heading { font-size: 17px; font-weight: 600; }
.grid { stroke: var(--grid); } .axis { stroke: var(--line); } .mark { stroke: var(--fg); stroke-dasharray: 3 3; }
.line { fill: none; stroke-width: 1.6; stroke-linejoin: round; stroke-linecap: round; } .wide { stroke-width: 5; opacity: .35; }
.faint { opacity: .45; } .area { opacity: .16; stroke: none; } .lead { stroke-width: .75; opacity: .6; }
.dashed { stroke-dasharray: 7 4; } .lead.dashed { stroke-dasharray: none; } .marker { stroke-width: 1.5; }
.warmup { fill: var(--card); } .outage { fill: var(--bad); opacity: .15; } .config { shape-rendering: crispEdges; }
.line.c0 { stroke: var(--c0); } .line.c1 { stroke: var(--c1); } .line.c2 { stroke: var(--c2); }
.line.c3 { stroke: var(--c3); } .line.c4 { stroke: var(--c4); } .line.c5 { stroke: var(--c5); }
.area.c0 { fill: var(--c0); } .area.c1 { fill: var(--c1); } .area.c2 { fill: var(--c2); }
.area.c3 { fill: var(--c3); } .area.c4 { fill: var(--c4); } .area.c5 { fill: var(--c5); }
)";

std::string Escape(std::string_view text) {
  std::string escaped;
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    const auto first = static_cast<uint8_t>(text[0]);
    if (length == 0 || (first < 0x20 && first != '\n' && first != '\t') || first == 0x7f) {
      escaped += "\xef\xbf\xbd";  // U+FFFD
    } else if (const std::string_view entity = Replacement(text[0]); !entity.empty()) {
      escaped += entity;
    } else {
      escaped += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(1, length));
  }
  return escaped;
}

Axis LinearAxis(std::string title, double high, Format format) {
  Axis axis{.title = std::move(title)};
  if (!std::isfinite(high) || high <= 0) high = 1;
  const double step = RoundUp(high / 5);
  axis.high = step * std::ceil(high / step - 1e-9);
  axis.ticks = EvenTicks(0, axis.high, step, format);
  return axis;
}

Axis ExactAxis(std::string title, double low, double high, Format format) {
  if (!std::isfinite(low) || !std::isfinite(high) || high <= low) low = 0, high = 1;
  return {std::move(title), low, high, false, EvenTicks(low, high, RoundUp((high - low) / 10), format)};
}

Axis LogAxis(std::string title, double low, double high, Format format) {
  if (!std::isfinite(low) || !std::isfinite(high) || low <= 0 || high < low) low = 1, high = 10;
  Axis axis{.title = std::move(title), .log = true};
  axis.high = RoundUp(high);
  axis.low = 1 / RoundUp(1 / low);
  if (axis.high < axis.low * 9.99) axis.high = axis.low * 10;
  const double decades = std::log10(axis.high / axis.low);
  for (double power = std::floor(std::log10(axis.low)); power <= std::log10(axis.high) + 1e-9; ++power) {
    for (double digit : {1.0, 2.0, 5.0}) {
      const double at = digit * std::pow(10, power);
      if (at < axis.low * 0.999 || at > axis.high * 1.001 || (digit > 1 && decades > 5)) continue;
      axis.ticks.push_back({at, digit == 1 || decades < 2.5 ? format(at) : ""});
    }
  }
  return axis;
}

std::string SvgChart(const Chart& chart) {
  return absl::StrFormat(
      "<div class=\"chart\"><svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"%s\">\n%s</svg></div>\n",
      kWidth, chart.height, Escape(chart.label), Inside(chart));
}

std::string SvgFile(const Chart& chart, std::string_view text, std::string_view css) {
  return absl::StrFormat(
      "<!-- SPDX-License-Identifier: Apache-2.0 -->\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 %.0f %.0f %.0f\" role=\"img\" "
      "aria-label=\"%s\">\n"
      "<style>\n:root { --bg: #fff; --fg: #1b1f24; --muted: #57606a; --line: #d0d7de; --grid: #e8ebef; "
      "}\n%s%s</style>\n"
      "<rect x=\"0\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\" fill=\"#fff\"/>\n%s%s%s</svg>\n",
      -kHeading, kWidth, chart.height + kHeading, Escape(chart.label), kChartCss, css, -kHeading, kWidth,
      chart.height + kHeading, Text(4, 20 - kHeading, "start", "title heading", chart.label),
      Text(4, 38 - kHeading, "start", "tick", text), Inside(chart));
}

std::vector<Point> Thin(const std::vector<Point>& points, size_t buckets) {
  if (points.size() <= 2 * buckets) return points;
  std::vector<Point> thin;
  for (size_t i = 0; i < buckets; ++i) {
    const size_t begin = i * points.size() / buckets, end = (i + 1) * points.size() / buckets;
    size_t low = end, high = end, gap = end;
    for (size_t k = begin; k < end; ++k) {
      if (!std::isfinite(points[k].y)) {
        if (gap == end) gap = k;
        continue;
      }
      if (low == end || points[k].y < points[low].y) low = k;
      if (high == end || points[k].y > points[high].y) high = k;
    }
    std::set<size_t> kept;
    if (low != end) kept = {low, high};
    if (gap != end) kept.insert(gap);
    for (size_t k : kept) thin.push_back(points[k]);
  }
  return thin;
}

}  // namespace curtail::internal
