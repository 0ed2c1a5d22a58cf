// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/compare/policy_html.h"

#include <cstdlib>
#include <set>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
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
  EXPECT_THAT(html, HasSubstr("<i class=\"swatch k4\"></i>SDB1-16</span>"));
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
  size_t in_a_strip = 0;
  std::string last;
  for (const auto line : absl::StrSplit(html, '\n')) {
    const std::string text(line.substr(0, line.find(" x=")));
    if (!absl::StrContains(line, "<rect class=\"config")) {
      last.clear();
      continue;
    }
    EXPECT_NE(text, last) << "neighbours of one config are one span";
    last = text;
    ++in_a_strip;
  }
  EXPECT_GT(in_a_strip, 12u);
  EXPECT_EQ(BadTag(html), "");
}

// The value of `key="..."` in a tag.
double Attribute(std::string_view tag, std::string_view key) {
  const size_t at = tag.find(std::string(" ").append(key).append("=\""));
  return at == tag.npos ? -1 : std::atof(std::string(tag.substr(at + key.size() + 3)).c_str());
}

TEST(PolicyHtml, AConfigHasOneColourOnThePageAndNoOtherHasIt) {
  PolicyComparison c = SampleComparison();
  for (PolicyRun& run : c.runs) {
    if (run.policy != "mutune") continue;
    run.changes.clear();
    for (int i = 0; i < 20; ++i)
      run.changes.push_back({milliseconds(200 * (i + 1)), 100, "SIP1", absl::StrCat("SDB1-", 100 + i), ""});
  }
  const std::string html = PolicyHtml(c);
  std::set<std::string> colours;
  size_t configs = 0;
  for (const auto line : absl::StrSplit(html, '\n')) {
    if (line.size() < 3 || line[0] != '.' || line[1] != 'k' || !absl::ascii_isdigit(line[2])) continue;
    ++configs;
    colours.emplace(line.substr(line.find("fill")));
  }
  EXPECT_EQ(configs, 24u) << "those of mutune, and one of each other policy";
  EXPECT_EQ(colours.size(), configs);
  EXPECT_EQ(Count(html, "<i class=\"swatch k0\"></i>SIP1"), 3u) << "in each scenario the same";
  EXPECT_THAT(html, HasSubstr("<td><i class=\"swatch k21\"></i>SDB1-49")) << "in tables, too";
  EXPECT_EQ(Count(html, "class=\"line c"), 0u) << "no line has the colour of a config";
}

TEST(PolicyHtml, TheStripOfConfigsHasNoGaps) {
  PolicyComparison c = SampleComparison();
  for (PolicyRun& run : c.runs) {
    run.changes.clear();
    for (int i = 0; i < 31; ++i)
      run.changes.push_back({milliseconds(137 * (i + 1)), 100, "SIP1", i % 2 == 0 ? "SDB1-4" : "SIP1", ""});
    run.changes_lost = run.policy == "fm";
  }
  const std::string html = PolicyHtml(c);
  EXPECT_THAT(html, HasSubstr("class=\"config unknown\"")) << "what is not known is drawn, too";
  EXPECT_THAT(html, HasSubstr("<i class=\"swatch unknown\"></i>not known</span>"));
  double end = -1;
  size_t strips = 0;
  for (const auto line : absl::StrSplit(html, '\n')) {
    const std::string_view tag(line.data(), line.size());
    if (!absl::StrContains(line, "<rect class=\"config")) {
      if (end >= 0) {
        EXPECT_NEAR(end, 892, 0.05) << "to the right edge";
      }
      end = -1;
      continue;
    }
    strips += end < 0 ? 1 : 0;
    EXPECT_NEAR(Attribute(tag, "x"), end < 0 ? 66 : end, 0.01);
    end = Attribute(tag, "x") + Attribute(tag, "width");
  }
  EXPECT_EQ(strips, 12u);
}

TEST(PolicyHtml, NamesComeAfterTheLinesThatWouldStrikeThemThrough) {
  const std::string html = PolicyHtml(SampleComparison());
  const size_t spike = html.find(">spike</text>"), chart = html.rfind("<svg", spike);
  EXPECT_GT(spike, html.find("class=\"line ink\"", chart));
  for (size_t mark = html.find("class=\"mark\""); mark != html.npos;
       mark = html.find("class=\"mark\"", mark + 1))
    EXPECT_GE(Attribute(html.substr(mark, 90), "y1"), 44) << "below the strip of configs";
  for (const char* rule : {"@media print", "max-width: 720px", "paint-order: stroke"})
    EXPECT_THAT(html, HasSubstr(rule));
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
