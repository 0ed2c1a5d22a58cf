// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/compare/policy_html.h"

#include <string_view>

#include "curtail/load/report/html_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/curtail/compare/policy_testing.h"

namespace curtail::tool {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;

size_t Count(std::string_view html, std::string_view part) {
  size_t count = 0;
  for (size_t at = html.find(part); at != html.npos; at = html.find(part, at + 1)) ++count;
  return count;
}

TEST(PolicyHtml, NeedsNothingElseAndIsWellFormed) {
  PolicyComparison none = SampleComparison();
  none.runs.clear();
  for (const PolicyComparison& c : {SampleComparison(), none, PolicyComparison{}}) {
    const std::string html = PolicyHtml(c);
    EXPECT_EQ(BadTag(html), "");
    EXPECT_THAT(html, testing::StartsWith("<!DOCTYPE html>"));
    for (const char* foreign :
         {"<script", "http:", "https:", "src=", "@import", "url(", "<link", "nan", "inf\""})
      EXPECT_THAT(html, Not(HasSubstr(foreign)));
  }
}

TEST(PolicyHtml, ShowsVerdictTablesAndOrigin) {
  const std::string html = PolicyHtml(SampleComparison());
  for (const char* expected :
       {"<p class=\"lead\">Over all 11 cells mutune is better than fm (0.77), static:SIP1",
        "<li>Against fm: better, with 0.77 times the p99", "<h2>flash-crowd: 100/s for 3 s",
        "<th>1 s after</th>", "<td class=\"best\">1.01 *<span class=\"range\">1.00-1.02</span></td>",
        "&gt; 1 s", "8 CPUs, Test CPU", "<tr><th>seed</th><td>7</td></tr>",
        "<tr><th>curtail</th><td>0.1.0</td></tr>", "How to read this"}) {
    EXPECT_THAT(html, HasSubstr(expected));
  }
}

TEST(PolicyHtml, ChartsHaveTheConfigsAndTheSwitches) {
  const std::string html = PolicyHtml(SampleComparison());
  EXPECT_EQ(Count(html, "<svg"), 1 + 3u * (1 + 4))
      << "p99 against CPU; the load and four policies in each scenario";
  EXPECT_EQ(Count(html, "class=\"mark\""), 2u);
  EXPECT_THAT(html, HasSubstr("mutune: p99, round 3, 2 switches")) << "the median one of five";
  EXPECT_THAT(html, HasSubstr("<i class=\"b1\"></i>SDB1-16</span>"));
  EXPECT_THAT(html, HasSubstr(">SIP1</text>"));
  EXPECT_THAT(html, HasSubstr(">spike</text>"));
}

TEST(PolicyHtml, DrawsP99AgainstCpu) {
  const std::string html = PolicyHtml(SampleComparison());
  EXPECT_THAT(html, HasSubstr("<h2>p99 against CPU</h2>"));
  EXPECT_EQ(Count(html, "class=\"line dot front\""), 1u) << "mutune has the lowest p99 and the least CPU";
  EXPECT_EQ(Count(html, "class=\"line dot\""), 3u);
  for (const char* name : {">mutune</text>", ">fm</text>", ">SDB1-50</text>"})
    EXPECT_THAT(html, HasSubstr(name));
}

TEST(PolicyHtml, ThousandsOfSwitchesStayAChart) {
  PolicyComparison c = SampleComparison();
  for (PolicyRun& run : c.runs) {
    run.changes.clear();
    for (int i = 0; i < 5000; ++i)
      run.changes.push_back({microseconds(500 * i), 100, "SIP1", i % 2 == 0 ? "SDB1-4" : "SIP1", "noise"});
    run.switches = 92'903;
    run.changes_lost = true;
  }
  const std::string html = PolicyHtml(c);
  EXPECT_EQ(Count(html, "class=\"mark\""), 0u);
  EXPECT_LE(Count(html, "class=\"config"), 12u * 401);
  EXPECT_THAT(html, HasSubstr("92903 switches"));
  EXPECT_EQ(BadTag(html), "");
}

TEST(PolicyHtml, TextIsEscaped) {
  PolicyComparison c =
      MadeUpComparison({"<b>bold", "fm\"&"}, 1, [](size_t policy, const Phase&, int) -> Nanos {
        return policy == 0 ? Nanos(-1) : Nanos(milliseconds(1));
      });
  c.data = "<i>";
  c.profile = "'><script>alert(1)</script>";
  c.runs[1].first_config = "<u>";
  const std::string html = PolicyHtml(c);
  for (const char* raw : {"<b>bold", "<script", "<i>", "<u>", "<late>", "fm\"&\""})
    EXPECT_THAT(html, Not(HasSubstr(raw)));
  for (const char* escaped : {"&lt;b&gt;bold", "fm&quot;&amp;", "&lt;late&gt;", "&lt;script&gt;"})
    EXPECT_THAT(html, HasSubstr(escaped));
  EXPECT_EQ(BadTag(html), "");
}

TEST(PolicyHtml, SaysWhenTheFirstPolicyLoses) {
  const PolicyComparison c = MadeUpComparison(
      {"mutune", "fm"}, 5,
      [](size_t policy, const Phase&, int) -> Nanos { return microseconds(policy == 0 ? 1500 : 1000); });
  EXPECT_THAT(PolicyHtml(c), HasSubstr("Over all 11 cells mutune is worse than fm (1.50)."));
}

}  // namespace
}  // namespace curtail::tool
