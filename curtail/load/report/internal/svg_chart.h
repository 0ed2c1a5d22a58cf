// SPDX-License-Identifier: Apache-2.0
//
// svg_chart.h - line charts as SVG, within a page or as a file of their own.
//
// CSS classes give all colours; a page has c0 to c5 for lines and areas.
// Plain values and pure functions; thread-compatible. Points that are not finite, or not above 0 on a logarithmic
// scale, break the line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace curtail::internal {

// `text` for HTML and SVG, between tags or in quotes: markup is escaped, and what is no UTF-8 or a control character
// is replaced.
std::string Escape(std::string_view text);

struct Tick {
  double at;
  std::string label;  // empty: a grid line only
};

struct Axis {
  std::string title;
  double low = 0;
  double high = 1;  // above `low`
  bool log = false;
  std::vector<Tick> ticks;
};

using Format = std::string (*)(double);

// From 0 to a round number that is at least `high`.
Axis LinearAxis(std::string title, double high, Format format);
// From `low` to `high` exactly, as for time.
Axis ExactAxis(std::string title, double low, double high, Format format);
// Round numbers around [low, high], with ticks at 1, 2 and 5 where there is room.
Axis LogAxis(std::string title, double low, double high, Format format);

struct Point {
  double x;
  double y;
};

struct Line {
  std::string name;   // in the legend; empty: not there
  std::string style;  // CSS classes, as in "c0" or "c1 dashed"
  std::vector<Point> points;
};

// Between two lines over the same x.
struct Area {
  std::string style;
  std::vector<Point> low;
  std::vector<Point> high;
};

// A part of the x axis, such as the warm-up.
struct Span {
  double from;
  double to;
  std::string style;
  std::string name;
};

// A circle or square on a point, with a title that a pointer shows.
struct Marker {
  Point at;
  std::string style;
  bool square = false;
  std::string title;
};

// Words beside a point.
struct Label {
  Point at;
  std::string text;
};

struct Chart {
  std::string label;  // for screen readers
  Axis x;
  Axis y;
  double height = 260;        // of 920 wide
  std::vector<Span> shades;   // behind everything, over the whole height
  std::vector<Span> strip;    // in a strip above the plot, with their names inside where they fit
  std::vector<double> marks;  // vertical lines
  std::vector<Area> areas;
  std::vector<Line> lines;
  std::vector<Marker> markers;
  std::vector<Label> labels;  // moved down where two would cover each other
  bool names_at_end = false;  // the lines' names stand right of their last points, instead of in a legend
};

// The rules of the classes that charts use. They take the colours --bg, --fg, --muted, --line, --grid, --card and --bad from
// the page, and --c0 to --c5.
extern const std::string_view kChartCss;

// An <svg> element, in a <div> that scrolls where the page is narrow.
std::string SvgChart(const Chart& chart);

// A file with the chart, its label as the heading and `text` below it. `css` is added to the rules.
std::string SvgFile(const Chart& chart, std::string_view text, std::string_view css);

// At most about 3 * `buckets` of the points: of each group of neighbours the lowest, the highest and the first that
// breaks the line, in their order, so that no spike and no gap is lost.
std::vector<Point> Thin(const std::vector<Point>& points, size_t buckets);

}  // namespace curtail::internal
