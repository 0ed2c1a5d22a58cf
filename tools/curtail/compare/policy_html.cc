// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/compare/policy_html.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "curtail/load/report/internal/html_page.h"
#include "curtail/load/report/internal/palette.h"
#include "curtail/load/report/internal/report_charts.h"
#include "curtail/load/report/internal/svg_chart.h"
#include "tools/curtail/compare/policy_cost.h"
#include "tools/curtail/compare/policy_summary.h"
#include "tools/curtail/compare/policy_tables.h"

namespace curtail::tool {
namespace {

using internal::Chart;
using internal::Escape;
using internal::HtmlFact;
using internal::Line;
using internal::Palette;
using internal::Point;
using internal::Span;

constexpr size_t kMaxMarks = 40;     // with more switches than these, lines would hide the chart
constexpr size_t kStripCells = 400;  // of the strip of configs, where there are more spans
constexpr size_t kPoints = 300;      // of a line, times two
constexpr double kGap = std::numeric_limits<double>::quiet_NaN();

constexpr std::string_view kCss = R"(.best { font-weight: 600; color: var(--good); }
.range { display: block; color: var(--muted); font-size: 12px; font-weight: 400; }
.lead { font-size: 16px; margin: 16px 0 8px; }
.phase { fill: none; }
.line.step { stroke: var(--good); stroke-dasharray: 4 4; }
.line.dot { stroke: var(--muted); stroke-width: 10; } .line.front { stroke: var(--good); }
.line.ink { stroke: var(--fg); }
.key { display: inline-block; margin-right: 16px; white-space: nowrap; }
)";

double Sec(Nanos t) { return static_cast<double>(t.count()) / 1e9; }

std::string SecondsText(double s) { return internal::DurationText(Nanos(static_cast<int64_t>(s * 1e9))); }
std::string PlainNumber(double number) { return absl::StrFormat("%.6g", number); }

// The configs that were in force in `runs`, in the order of first use.
Palette PaletteOf(const std::vector<PolicyRun>& runs) {
  Palette palette;
  for (const PolicyRun& run : runs) {
    palette.Add(run.first_config);
    for (const ConfigChange& change : run.changes) {
      palette.Add(change.from);
      palette.Add(change.to);
    }
  }
  return palette;
}

// --- Tables
// ------------------------------------------------------------------------------------------------------

std::string CellHtml(const ReportCell& cell, const Palette& palette) {
  std::string html = cell.standing == Standing::kBest ? "<td class=\"best\">" : "<td>";
  if (palette.Has(cell.text)) html += palette.Swatch(cell.text);
  html += Escape(cell.text);
  if (const char mark = MarkOf(cell.standing); mark != ' ') html.append(" ").append(1, mark);
  if (!cell.range.empty()) absl::StrAppend(&html, "<span class=\"range\">", Escape(cell.range), "</span>");
  return html + "</td>";
}

std::string TableHtml(const ReportTable& table, const Palette& palette) {
  std::string html;
  if (!table.title.empty()) absl::StrAppend(&html, "<h2>", Escape(table.title), "</h2>\n");
  absl::StrAppend(&html, "<p class=\"sub\">", Escape(table.text),
                  "</p>\n<div class=\"scroll\"><table class=\"numbers\"><thead><tr><th>",
                  Escape(table.corner), "</th>");
  for (const std::string& column : table.columns) absl::StrAppend(&html, "<th>", Escape(column), "</th>");
  html += "</tr></thead>\n";
  for (const ReportRow& row : table.rows) {
    absl::StrAppend(&html, "<tr><td class=\"text\">", Escape(row.name), "</td>");
    for (const ReportCell& cell : row.cells) html += CellHtml(cell, palette);
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

// --- Charts
// ------------------------------------------------------------------------------------------------------

// The run of a policy that is shown: the one with the median p99, or any if all are void; null if there is
// none.
const PolicyRun* ShownRun(const PolicyComparison& c, size_t scenario, size_t policy) {
  std::vector<const PolicyRun*> runs = ValidRuns(c, scenario, policy);
  if (runs.empty()) {
    for (const PolicyRun& run : c.runs) {
      if (run.scenario == scenario && run.policy == c.policies[policy]) return &run;
    }
    return nullptr;
  }
  std::sort(runs.begin(), runs.end(), [](const PolicyRun* a, const PolicyRun* b) {
    return a->whole.p99_us != b->whole.p99_us ? a->whole.p99_us < b->whole.p99_us : a->round < b->round;
  });
  return runs[(runs.size() - 1) / 2];
}

// Neighbours of one name become one span.
std::vector<Span> Joined(const std::vector<Span>& spans) {
  std::vector<Span> joined;
  for (const Span& span : spans) {
    if (!joined.empty() && joined.back().name == span.name) joined.back().to = span.to;
    else joined.push_back(span);
  }
  return joined;
}

// When each config was in force, as far as the changes are known.
std::vector<Span> StripOf(const PolicyRun& run, double end, const Palette& palette) {
  const auto span = [&](double from, const std::string& config) {
    return Span{from, end, absl::StrCat("config ", palette.ClassOf(config)), config.empty() ? "?" : config};
  };
  const std::string& listed = run.changes.empty() ? run.first_config : run.changes.front().from;
  std::vector<Span> spans = {span(0, run.changes_lost ? "" : listed)};
  // Spans narrower than can be seen give way to what follows them.
  const double least = run.changes.size() > kStripCells ? end / kStripCells : 0;
  for (const ConfigChange& change : run.changes) {
    const double at = std::clamp(Sec(change.at), 0.0, end);
    if (at - spans.back().from < least) {
      spans.back() = span(spans.back().from, change.to);
    } else if (spans.back().name != change.to) {
      spans.back().to = at;
      spans.push_back(span(at, change.to));
    }
  }
  return Joined(spans);
}

Chart TimeChart(const Scenario& scenario, std::string label) {
  Chart chart;
  chart.label = std::move(label);
  chart.x = internal::ExactAxis("seconds since the start", 0, Sec(scenario.curve.length()), PlainNumber);
  if (scenario.warmup > Nanos::zero()) chart.shades.push_back({0, Sec(scenario.warmup), "warmup", "warm-up"});
  for (size_t i = 0; i < scenario.phases.size(); ++i) {
    const Phase& phase = scenario.phases[i];
    chart.shades.push_back({Sec(phase.from), Sec(phase.to), i % 2 == 0 ? "phase" : "warmup", phase.name});
  }
  return chart;
}

std::string RateChart(const Scenario& scenario) {
  Chart chart = TimeChart(scenario, "Offered load over time");
  chart.height = 160;
  Line line{"", "ink", {}};
  for (const RateCurve::Piece& piece : scenario.curve.pieces()) {
    const double from = Sec(piece.start), to = from + piece.length_ns / 1e9;
    line.points.push_back({from, piece.per_ns * 1e9});
    line.points.push_back({to, std::max(0.0, piece.per_ns + piece.slope * piece.length_ns) * 1e9});
  }
  chart.y = internal::LinearAxis("offered load, requests a second", scenario.curve.peak_per_s(),
                                 internal::NumberText);
  chart.lines.push_back(std::move(line));
  return internal::SvgChart(chart);
}

// From the lowest to the highest p99 of all runs that are shown.
internal::Axis SharedAxis(const std::vector<const PolicyRun*>& runs) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const PolicyRun* run : runs) {
    for (const Bucket& bucket : run->series) {
      if (bucket.p99_us <= 0) continue;
      low = std::min(low, bucket.p99_us / 1e6);
      high = std::max(high, bucket.p99_us / 1e6);
    }
  }
  return internal::LogAxis("", low, high, SecondsText);
}

std::string PolicyChart(const PolicyComparison& c, const PolicyRun& run, const internal::Axis& axis,
                        const Palette& palette) {
  const Scenario& scenario = c.scenarios[run.scenario];
  Chart chart = TimeChart(scenario, absl::StrCat("p99 over time under ", run.policy));
  chart.height = 210;
  chart.y = axis;
  chart.y.title = absl::StrFormat("%s: p99, round %d, %d switch%s%s", run.policy, run.round + 1, run.switches,
                                  run.switches == 1 ? "" : "es", run.valid() ? "" : " (void)");
  chart.strip = StripOf(run, Sec(scenario.curve.length()), palette);
  if (run.changes.size() <= kMaxMarks) {
    for (const ConfigChange& change : run.changes) chart.marks.push_back(Sec(change.at));
  }
  Line line{"", "ink", {}};
  for (const Bucket& bucket : run.series) {
    line.points.push_back(
        {Sec(bucket.from + kBucketLength / 2), bucket.due == 0 ? kGap : bucket.p99_us / 1e6});
  }
  line.points = internal::Thin(line.points, kPoints);
  chart.lines.push_back(std::move(line));
  return internal::SvgChart(chart);
}

// The configs in the strips of these runs, with their colours.
std::string LegendHtml(const PolicyComparison& c, const std::vector<const PolicyRun*>& runs,
                       const Palette& palette) {
  std::set<std::string> names;
  for (const PolicyRun* run : runs) {
    for (const Span& span : StripOf(*run, Sec(c.scenarios[run->scenario].curve.length()), palette))
      names.insert(span.name);
  }
  std::string html = "<p class=\"sub\">config in force: ";
  for (const std::string& name : names) {
    absl::StrAppend(&html, "<span class=\"key\">", palette.Swatch(name),
                    palette.Has(name) ? Escape(name) : "not known", "</span>\n");
  }
  return html + "</p>\n";
}

std::string ScenarioCharts(const PolicyComparison& c, size_t scenario, const Palette& palette) {
  std::vector<const PolicyRun*> runs;
  for (size_t policy = 0; policy < c.policies.size(); ++policy) runs.push_back(ShownRun(c, scenario, policy));
  std::erase(runs, nullptr);
  if (runs.empty()) return {};
  const internal::Axis axis = SharedAxis(runs);
  std::string charts;
  for (const PolicyRun* run : runs) charts += PolicyChart(c, *run, axis, palette);
  return absl::StrCat("<h2>Over time: ", Escape(c.scenarios[scenario].name), "</h2>\n",
                      RateChart(c.scenarios[scenario]), LegendHtml(c, runs, palette), charts);
}

// --- p99 against CPU
// ---------------------------------------------------------------------------------------------------------

// Each policy a point; those on the front are joined by steps. Empty with fewer than two points.
std::string FrontChart(const PolicyComparison& c) {
  struct Named {
    std::string_view name;
    PolicyCost cost;
  };
  std::vector<Named> policies;
  const std::vector<std::optional<PolicyCost>> costs = CostsOf(c);
  for (size_t policy = 0; policy < costs.size(); ++policy) {
    if (costs[policy]) policies.push_back({ShortName(c.policies[policy]), *costs[policy]});
  }
  if (policies.size() < 2) return {};
  std::sort(policies.begin(), policies.end(),
            [](const Named& a, const Named& b) { return a.cost.p99_us > b.cost.p99_us; });  // top down
  Chart chart;
  chart.label = "p99 against CPU of the server under test";
  chart.height = 320;
  Line front{"", "step", {}};
  double most_cpu = 0;
  for (const Named& policy : policies) {
    const Point at{policy.cost.cpu_s, policy.cost.p99_us / 1e6};
    most_cpu = std::max(most_cpu, at.x);
    if (policy.cost.on_front) {
      if (!front.points.empty()) front.points.push_back({at.x, front.points.back().y});
      front.points.push_back(at);
    }
    chart.lines.push_back({"", policy.cost.on_front ? "dot front" : "dot", {at}});
    chart.labels.push_back({at, std::string(policy.name)});
  }
  chart.lines.insert(chart.lines.begin(), std::move(front));
  chart.x = internal::LinearAxis("CPU of the mid-tier in a round, seconds", most_cpu, PlainNumber);
  chart.y = internal::LogAxis("p99, the geometric mean over all cells", policies.back().cost.p99_us / 1e6,
                              policies.front().cost.p99_us / 1e6, SecondsText);
  return absl::StrCat("<h2>p99 against CPU</h2>\n<p class=\"sub\">",
                      Escape(absl::StrCat(FrontText(c), " ", ReachText(c))), "</p>\n",
                      internal::SvgChart(chart));
}

// --- The page
// ----------------------------------------------------------------------------------------------------

std::string VerdictHtml(const PolicyComparison& c) {
  const std::vector<std::string> lines = Verdict(c);
  std::string html = absl::StrCat("<p class=\"lead\">", Escape(lines.front()), "</p>\n");
  if (lines.size() > 1) {
    html += "<ul>\n";
    for (size_t i = 1; i < lines.size(); ++i) absl::StrAppend(&html, "<li>", Escape(lines[i]), "</li>\n");
    html += "</ul>\n";
  }
  const std::vector<std::string> caveats = Caveats(c);
  if (caveats.empty()) return html;
  html += "<div class=\"box warning\">\n";
  for (const std::string& line : caveats) absl::StrAppend(&html, "<p>", Escape(line), "</p>\n");
  return html + "</div>\n";
}

constexpr std::string_view kHowToRead = R"(<h2>How to read this</h2>
<ul>
<li>Latency counts from the moment at which a request was due, whether or not the generator or the server
was late. A request that failed counts as at least its timeout, so overload shows as a p99 of over a
second.</li>
<li>A request belongs to the phase in which it was due: one that is due in a spike and answered long after
it counts for the spike.</li>
<li>All policies of a round get the same arrivals. A round gives one number for two policies: the geometric
mean of the ratios of their p99 over all cells, which are the parts of the scenarios. "Better" and "worse" mean
that the 95 % interval of that ratio over the rounds excludes 1, and "level" that it lies within 10 % of 1.
Fewer than five rounds that count get no verdict. Rounds are added until the numbers tell; intervals are wide
enough for that.</li>
<li>A cell in which both had the same config in force for nine tenths of the time counts as equal. Verdicts on
single cells are corrected for the number of cells (Holm); the marks in tables also for the pairs of
policies.</li>
<li>The backlog is how long after the spike requests still took over three times the p99 before it, and over
10 ms. The reaction is the time from the first request of the spike to the first change of config within
it.</li>
<li>CPU is that of the server under test: 1 is one core all the time. Polling costs CPU even when there is
nothing to do. A policy on the front has less of p99 or CPU than each other one; these are points, and the
intervals of the ratios say how far to trust them.</li>
<li>Charts show the round whose p99 is the median one: the p99 of the requests due in each 100 ms, which at
low loads is that of a few. Dashed lines are changes of config, where there are not too many to draw.</li>
</ul>
)";

std::string OriginHtml(const PolicyComparison& c) {
  std::string html =
      absl::StrCat("<h2>What was measured</h2>\n<table>\n", HtmlFact("application", c.application),
                   HtmlFact("data", c.data), HtmlFact("profile", c.profile.empty() ? "none" : c.profile));
  if (c.slo > Nanos::zero()) html += HtmlFact("SLO", internal::DurationText(c.slo));
  for (const Scenario& scenario : c.scenarios) html += HtmlFact(scenario.name, scenario.text);
  std::string policies;
  for (const std::string& policy : c.policies)
    absl::StrAppend(&policies, policies.empty() ? "" : ", ", policy);
  absl::StrAppend(&html, HtmlFact("policies", policies), HtmlFact("rounds", absl::StrCat(c.rounds)),
                  HtmlFact("runs", absl::StrCat(c.runs.size())), HtmlFact("seed", absl::StrCat(c.seed)));
  if (c.machine) html += HtmlFact("machine", internal::MachineText(*c.machine));
  return absl::StrCat(html, HtmlFact("curtail", c.curtail_version), "</table>\n");
}

}  // namespace

std::string PolicyHtml(const PolicyComparison& c) {
  const std::string title = absl::StrCat("Comparison of policies: ", c.application);
  const Palette palette = PaletteOf(c.runs);
  std::string html = internal::HtmlHead(title, std::string(kCss) + palette.Css());
  absl::StrAppend(&html, "<h1>", Escape(title), "</h1>\n<p class=\"sub\">", Escape(OriginText(c)), "</p>\n",
                  VerdictHtml(c));
  const std::vector<ReportTable> tables = ReportTables(c);
  for (const ReportTable& table : tables) html += TableHtml(table, palette);
  if (!tables.empty()) absl::StrAppend(&html, "<p class=\"sub\">", Escape(kMarksText), "</p>\n");
  html += FrontChart(c);
  for (size_t s = 0; s < c.scenarios.size(); ++s) html += ScenarioCharts(c, s, palette);
  html += kHowToRead;
  html += OriginHtml(c);
  html += internal::kHtmlEnd;
  return html;
}

}  // namespace curtail::tool
