// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/report/report_hgrm.h"
#include "curtail/load/report/report_junit.h"

#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "curtail/base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

struct Line {
  double value;
  double percentile;
  uint64_t count;
  double inverse;  // infinite on the last line
};

// The lines that hold numbers, read as a plotter reads them.
std::vector<Line> LinesOf(const std::string& text) {
  std::vector<Line> lines;
  std::istringstream in(text);
  for (std::string row; std::getline(in, row);) {
    Line line{};
    if (std::sscanf(row.c_str(), "%lf %lf %lu %lf", &line.value, &line.percentile, &line.count,
                    &line.inverse) == 4) {
      lines.push_back(line);
    }
  }
  return lines;
}

// The layout, to the letter: that of HdrHistogram_c, in ms.
TEST(HgrmText, WritesTheLayoutThatPlottersRead) {
  Histogram h;
  h.Record(Nanos(100), 3);
  h.Record(Nanos(3000), 1);
  EXPECT_EQ(HgrmText(h),
            "       Value   Percentile   TotalCount 1/(1-Percentile)\n"
            "\n"
            "       0.000     0.000000            3         1.00\n"
            "       0.000     0.100000            3         1.11\n"
            "       0.000     0.200000            3         1.25\n"
            "       0.000     0.300000            3         1.43\n"
            "       0.000     0.400000            3         1.67\n"
            "       0.000     0.500000            3         2.00\n"
            "       0.000     0.550000            3         2.22\n"
            "       0.000     0.600000            3         2.50\n"
            "       0.000     0.650000            3         2.86\n"
            "       0.000     0.700000            3         3.33\n"
            "       0.000     0.750000            3         4.00\n"
            "       0.003     0.775000            4         4.44\n"
            "       0.003     1.000000            4          inf\n"
            "#[Mean    =        0.001, StdDeviation   =        0.001]\n"
            "#[Max     =        0.003, Total count    =            4]\n"
            "#[Buckets =            2, SubBuckets     =          128]\n");
}

TEST(HgrmText, EveryLineIsAPercentileOfTheHistogram) {
  Rng rng(3);
  Histogram h;
  for (int i = 0; i < 100'000; ++i) h.Record(Nanos(static_cast<int64_t>(rng.Exponential(5e6))));
  const std::vector<Line> lines = LinesOf(HgrmText(h));
  ASSERT_GT(lines.size(), 80u) << "five a halving, seventeen halvings of 100,000";
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    EXPECT_NEAR(lines[i].value, static_cast<double>(h.ValueAtRank(lines[i].count).count()) / 1e6, 0.0006);
    EXPECT_LE(Histogram::RankOf(100 * lines[i].percentile - 1e-4, h.count()), lines[i].count);
    EXPECT_NEAR(1 - 1 / lines[i].inverse, lines[i].percentile, 0.004) << "both are rounded";
    EXPECT_LT(lines[i].percentile, lines[i + 1].percentile);
    EXPECT_LE(lines[i].count, lines[i + 1].count);
  }
  EXPECT_EQ(lines.back().percentile, 1);
  EXPECT_EQ(lines.back().count, h.count());
  EXPECT_GT(lines.back().inverse, 1e300);
}

TEST(HgrmText, ABucketOfAllAndNoneAtAll) {
  Histogram h;
  EXPECT_THAT(LinesOf(HgrmText(h)), testing::IsEmpty());
  EXPECT_THAT(HgrmText(h), HasSubstr("#[Max     =        0.000, Total count    =            0]"));
  h.Record(milliseconds(2), 1'000'000);
  EXPECT_EQ(LinesOf(HgrmText(h)).size(), 2u);
  h.Record(milliseconds(3), 1);
  EXPECT_LT(LinesOf(HgrmText(h)).size(), 110u);
}

TEST(HgrmText, EndsForAsManyRequestsAsAHistogramHolds) {
  Histogram h;
  h.Record(milliseconds(1), (uint64_t{1} << 53) - 1);
  h.Record(milliseconds(2), 1);
  EXPECT_LT(LinesOf(HgrmText(h)).size(), 300u);
}

TEST(ReportHgrm, HoldsTheRequestsOfAllRuns) {
  LoadReport report;
  report.runs.resize(2);
  report.runs[0].all.Record(milliseconds(1), 10);
  report.runs[1].all.Record(milliseconds(2), 5);
  EXPECT_THAT(ReportHgrm(report), HasSubstr("#[Max     =        2.000, Total count    =           15]"));
}

TEST(ReportJunit, HasACaseForEachRunAndEachVerdict) {
  LoadReport report = SampleMix();
  report.runs.front().plan.method = "/a.B/<C>";
  report.runs.front().measured = std::chrono::seconds(10);
  EXPECT_EQ(ReportJunit(report),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuite name=\"curtail load\" tests=\"3\" failures=\"1\" errors=\"0\" time=\"10.000\">\n"
            "  <testcase classname=\"/a.B/&lt;C&gt;\" name=\"valid\" time=\"10.000\"/>\n"
            "  <testcase classname=\"/a.B/&lt;C&gt;\" name=\"p50&lt;1s\" time=\"10.000\"/>\n"
            "  <testcase classname=\"/a.B/&lt;C&gt;\" name=\"Pay.errors&lt;=0.01%\" time=\"10.000\">"
            "<failure message=\"Pay.errors&lt;=0.01%  (0.099 %)\"/></testcase>\n"
            "</testsuite>\n");
  report.runs.push_back(report.runs.front());
  report.runs.back().invalid = {"late"};
  const std::string two = ReportJunit(report);
  EXPECT_NE(two.find("name=\"valid, run 2\" time=\"10.000\"><error message=\"late\"/>"), std::string::npos)
      << two;
}

}  // namespace
}  // namespace curtail
