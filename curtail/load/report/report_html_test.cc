// SPDX-License-Identifier: Apache-2.0
//
// The page is compared with testdata/report.golden.html; CURTAIL_UPDATE_GOLDEN=1 writes that file anew, to be looked at
// before it is committed.
#include "curtail/load/report/report_html.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "curtail/base/rng.h"
#include "curtail/load/report/html_testing.h"
#include "curtail/load/report/internal/report_charts.h"
#include "curtail/load/report/internal/svg_chart.h"
#include "curtail/load/report/report_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail {
namespace {

using internal::Escape;
using internal::Point;
using testing::HasSubstr;
using testing::Not;

const std::string kGolden = absl::StrCat(CURTAIL_LOAD_TESTDATA, "/report.golden.html");

// Three runs, one of them void and one interrupted.
LoadReport GoldenReport() {
  LoadReport report = SampleReport(3);
  report.runs[1].invalid.push_back(
      "the generator was late: send lag p99 is 900 us, at most 50 us are allowed");
  report.runs[2].interrupted = true;
  return report;
}

TEST(ReportHtml, IsTheGoldenPage) {
  const std::string html = ReportHtml(GoldenReport(), SampleOrigin());
  if (const char* update = std::getenv("CURTAIL_UPDATE_GOLDEN"); update != nullptr && *update == '1') {
    ASSERT_TRUE(WriteFile(kGolden, html).ok());
  }
  std::ifstream in(kGolden);
  std::ostringstream golden;
  golden << in.rdbuf();
  // Not EXPECT_EQ: the difference of two pages is no message to read.
  EXPECT_TRUE(html == golden.str()) << "the page is not " << kGolden
                                    << "; CURTAIL_UPDATE_GOLDEN=1 writes it anew";
}

TEST(ReportHtml, NeedsNothingElseAndIsWellFormed) {
  LoadReport empty;
  empty.runs.emplace_back();
  for (const LoadReport& report : {SampleReport(1), GoldenReport(), SampleReport(9), empty}) {
    const std::string html = ReportHtml(report);
    EXPECT_EQ(BadTag(html), "");
    for (const char* foreign :
         {"<script", "http:", "https:", "src=", "@import", "url(", "<link", "nan", "inf\""}) {
      EXPECT_THAT(html, Not(HasSubstr(foreign)));
    }
  }
}

TEST(ReportHtml, SaysWhyItIsVoidOrThatItIsNot) {
  const std::string bad = ReportHtml(GoldenReport());
  EXPECT_THAT(bad, HasSubstr("VOID: these numbers must not be believed"));
  EXPECT_THAT(bad, HasSubstr("run 2: the generator was late: send lag p99 is 900 us"));
  EXPECT_THAT(bad, HasSubstr("run 3: interrupted after 10 s of 10 s"));
  EXPECT_THAT(bad, HasSubstr("run 1, 2, 3: latencies go together")) << "once, not three times";
  EXPECT_THAT(bad, Not(HasSubstr("Valid:")));
  const std::string good = ReportHtml(SampleReport(1));
  EXPECT_THAT(good, Not(HasSubstr("VOID")));
  EXPECT_THAT(good, HasSubstr("Valid:"));
}

TEST(ReportHtml, ShowsNumbersSwitchesAndPlan) {
  const std::string html = ReportHtml(SampleReport(1), SampleOrigin());
  for (const char* expected : {">SIB1</text>", ">SDB1-16</text>", ">99.9 %</text>", ">warm-up</text>",
                               "recall@10", "constant:100", "8 CPUs, Test CPU", "ABORTED"}) {
    EXPECT_THAT(html, HasSubstr(expected));
  }
  EXPECT_THAT(html, HasSubstr("class=\"mark\"")) << "the switch";
}

TEST(ReportHtml, AConfigHasOneColourInAllRunsAndSharesItWithNone) {
  constexpr size_t kConfigs = 12;
  LoadReport report = SampleReport(2);
  for (size_t run = 0; run < 2; ++run) {
    std::vector<LoadInterval>& series = report.runs[run].series;
    series.resize(kConfigs, series.back());
    for (size_t i = 0; i < kConfigs; ++i) {
      series[i].end = std::chrono::seconds(i + 1);
      series[i].config = absl::StrCat("SDB1-", 1 + (run == 0 ? i : kConfigs - 1 - i));
    }
  }
  const std::string html = ReportHtml(report);
  std::vector<std::string> used;
  for (size_t at = 0; (at = html.find("\"config ", at)) != std::string::npos;) {
    at += 8;
    used.push_back(html.substr(at, html.find('"', at) - at));
  }
  ASSERT_EQ(used.size(), 2 * kConfigs) << "a strip for each run";
  EXPECT_EQ(std::set<std::string>(used.begin(), used.end()).size(), kConfigs);
  EXPECT_TRUE(std::equal(used.begin(), used.begin() + kConfigs, used.rbegin())) << "the second run goes back";
  std::set<std::string> colours;
  for (size_t i = 0; i < kConfigs; ++i) {
    const std::string rule = absl::StrCat(".k", i, " { fill: ");
    const size_t at = html.find(rule);
    ASSERT_NE(at, std::string::npos) << rule;
    colours.insert(html.substr(at + rule.size(), html.find(';', at) - at - rule.size()));
  }
  EXPECT_EQ(colours.size(), kConfigs);
  EXPECT_EQ(BadTag(html), "");
}

TEST(SvgFile, StandsAloneWithNamesThatDoNotCoverEachOther) {
  internal::Chart chart;
  chart.label = "A <chart>";
  chart.names_at_end = true;
  chart.x = internal::LogAxis("x", 10, 1000, internal::NumberText);
  chart.y = internal::LogAxis("y", 0.001, 1, internal::NumberText);
  for (int i = 0; i < 6; ++i) {
    chart.lines.push_back({absl::StrCat("line ", i), "sync", {{10, 0.01}, {1000, 0.01 + i * 1e-5}}});
    chart.markers.push_back({{1000, 0.01}, "sync", i % 2 == 0, "a & b"});
  }
  chart.markers.push_back({{1000, std::nan("")}, "sync", false, "nowhere"});
  const std::string svg = internal::SvgFile(chart, "words", ".line.sync { stroke: #123; }");
  EXPECT_THAT(svg, HasSubstr("xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_THAT(svg, HasSubstr(".line.sync { stroke: #123; }"));
  EXPECT_THAT(svg, HasSubstr("A &lt;chart&gt;"));
  EXPECT_THAT(svg, HasSubstr("<title>a &amp; b</title>"));
  EXPECT_THAT(svg, Not(HasSubstr("nowhere")));
  EXPECT_EQ(BadTag(svg.substr(svg.find("<svg"))), "");
  std::vector<double> heights;
  for (size_t at = 0; (at = svg.find("class=\"name sync\"", at)) != std::string::npos; ++at)
    heights.push_back(std::stod(svg.substr(svg.find("y=\"", at) + 3)));
  ASSERT_EQ(heights.size(), 6u);
  for (size_t i = 1; i < heights.size(); ++i) EXPECT_GE(heights[i] - heights[i - 1], 12);
}

TEST(ReportHtml, TextOfServersIsEscaped) {
  LoadReport report = SampleReport(1);
  report.runs[0].plan.method = "/<b>\"'&";
  report.runs[0].codes["<i>"] = 1;
  report.runs[0].series[3].config = "\"><script>alert(1)</script>";
  report.runs[0].warnings = {"<u>"};
  const std::string html = ReportHtml(report);
  for (const char* raw : {"<script", "<b>\"", "<i>", "<u>", "</script>"})
    EXPECT_THAT(html, Not(HasSubstr(raw)));
  EXPECT_THAT(html, HasSubstr("/&lt;b&gt;&quot;&#39;&amp;"));
  EXPECT_EQ(BadTag(html), "");
}

TEST(ReportHtml, ALongReportStaysSmall) {
  LoadReport report = SampleReport(2);
  Rng rng(4);
  for (LoadResult& run : report.runs) {
    const LoadInterval one = run.series[5];
    run.series.assign(LoadResult::kMaxIntervals, one);
    for (size_t i = 0; i < run.series.size(); ++i) {
      run.series[i].end = std::chrono::seconds(i + 1);
      run.series[i].ok = rng.Below(1000);
      run.series[i].config = absl::StrCat("config ", i);
    }
    for (int i = 0; i < 1000; ++i) run.errors[absl::StrCat("error ", i)] = 1;
  }
  const std::string html = ReportHtml(report);
  EXPECT_LT(html.size(), 250'000u);
  EXPECT_THAT(html, HasSubstr("and 901 more"));
  EXPECT_EQ(BadTag(html), "");
}

TEST(Escape, LeavesTextAndReplacesTheRest) {
  EXPECT_EQ(Escape("a \xc2\xb5s \xe2\x82\xac \xf0\x9f\x98\x80"), "a \xc2\xb5s \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(Escape("<a b='c' d=\"e\">&"), "&lt;a b=&#39;c&#39; d=&quot;e&quot;&gt;&amp;");
  const std::string r = "\xef\xbf\xbd";
  EXPECT_EQ(Escape("\xff"), r);
  EXPECT_EQ(Escape("\xc0\x80"), r + r) << "overlong";
  EXPECT_EQ(Escape("\xed\xa0\x80"), r + r + r) << "a surrogate";
  EXPECT_EQ(Escape("\xe2\x82"), r + r) << "cut short";
  EXPECT_EQ(Escape(std::string_view("\0\x1b[31m", 6)), r + r + "[31m");
}

TEST(Thin, KeepsExtremesAndOrder) {
  Rng rng(8);
  std::vector<Point> points;
  for (int i = 0; i < 3600; ++i) points.push_back({static_cast<double>(i), rng.Uniform01()});
  points[1234].y = 50;
  points[2345].y = -50;
  const std::vector<Point> thin = internal::Thin(points, 200);
  EXPECT_LE(thin.size(), 400u);
  EXPECT_GE(thin.size(), 200u);
  double high = 0, low = 0;
  for (size_t i = 0; i < thin.size(); ++i) {
    EXPECT_GT(thin[i].x, i == 0 ? -1 : thin[i - 1].x);
    high = std::max(high, thin[i].y), low = std::min(low, thin[i].y);
  }
  EXPECT_EQ(high, 50);
  EXPECT_EQ(low, -50);
  EXPECT_EQ(internal::Thin(points, 1800).size(), 3600u) << "few points stay as they are";
  for (size_t i = 1000; i < 1003; ++i) points[i].y = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Point> parted = internal::Thin(points, 200);
  EXPECT_EQ(std::count_if(parted.begin(), parted.end(), [](const Point& p) { return std::isnan(p.y); }), 1)
      << "a gap shorter than a group stays a gap";
  for (Point& p : points) p.y = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(internal::Thin(points, 200).size(), 200u);
}

TEST(ReportHtml, AnOutageIsAGapAndSaysSo) {
  LoadReport report = SampleReport(1);
  const std::string before = ReportHtml(report);
  EXPECT_THAT(before, Not(HasSubstr("all failed")));
  std::vector<LoadInterval>& series = report.runs[0].series;
  for (size_t i = 4; i < 6; ++i) {
    series[i].failed += series[i].ok;
    series[i].ok = 0;
    series[i].p50 = series[i].p99 = std::chrono::seconds(1);
  }
  const std::string html = ReportHtml(report);
  EXPECT_THAT(html, HasSubstr("all failed"));
  // The latency chart is the first over time: each of its lines begins once more.
  const auto lines_of = [](const std::string& page) {
    const size_t chart = page.find("Latency over time");
    const std::string svg = page.substr(chart, page.find("</svg>", chart) - chart);
    int begun = 0;
    for (size_t at = 0; (at = svg.find("h0", at)) != std::string::npos; ++at) ++begun;
    return begun;
  };
  EXPECT_EQ(lines_of(html), lines_of(before) + 2);
}

TEST(ReportHtml, AValidRunSaysWhatShareFailed) {
  LoadReport report = SampleReport(1);
  report.runs[0].ok = 800, report.runs[0].failed = 200;
  EXPECT_THAT(ReportHtml(report), HasSubstr("<span class=\"failed\">20 % of the calls failed.</span>"));
  report.runs[0].failed = 0;
  EXPECT_THAT(ReportHtml(report), Not(HasSubstr("of the calls failed")));
}

TEST(Axis, TicksAreRoundAndFew) {
  Rng rng(9);
  for (int i = 0; i < 2000; ++i) {
    const double low = std::pow(10, 12 * rng.Uniform01() - 9), high = low * std::pow(10, 6 * rng.Uniform01());
    SCOPED_TRACE(absl::StrCat(low, " to ", high));
    for (const internal::Axis& axis : {internal::LinearAxis("", high, internal::NumberText),
                                       internal::ExactAxis("", 0, high, internal::NumberText),
                                       internal::LogAxis("", low, high, internal::NumberText)}) {
      EXPECT_LT(axis.low, axis.high);
      EXPECT_GE(axis.high, high * 0.999);
      EXPECT_GE(axis.ticks.size(), 2u);
      EXPECT_LE(axis.ticks.size(), 20u);
      for (const internal::Tick& tick : axis.ticks) {
        EXPECT_GE(tick.at, axis.low * 0.998);
        EXPECT_LE(tick.at, axis.high * 1.002);
      }
    }
  }
}

TEST(DurationText, HasThreeDigitsAndAUnit) {
  EXPECT_EQ(internal::DurationText(Nanos(0)), "0");
  EXPECT_EQ(internal::DurationText(Nanos(870)), "870 ns");
  EXPECT_EQ(internal::DurationText(Nanos(12'340)), "12.3 \xc2\xb5s");
  EXPECT_EQ(internal::DurationText(Nanos(999'600)), "1 ms");
  EXPECT_EQ(internal::DurationText(Nanos(2'150'000)), "2.15 ms");
  EXPECT_EQ(internal::DurationText(std::chrono::seconds(4398)), "4398 s");
}

}  // namespace
}  // namespace curtail
