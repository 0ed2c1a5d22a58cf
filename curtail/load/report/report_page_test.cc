// SPDX-License-Identifier: Apache-2.0
//
// Tests of what the page shows are beside its sources, in web/report and web/tests.
#include "curtail/load/report/report_page.h"

#include "curtail/load/report/report.h"
#include "curtail/load/report/report_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace curtail {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

// The data that the page's script reads.
std::string DataOf(const std::string& page) {
  const std::string begin = R"(type="application/json">)";
  const size_t at = page.find(begin) + begin.size();
  return page.substr(at, page.find("</script>", at) - at);
}

TEST(ReportPage, HoldsTheJsonAndNeedsNothingElse) {
  const std::string text = ReportJson(SampleReport(3), SampleOrigin());
  const std::string page = ReportPage(text);
  EXPECT_THAT(page, testing::StartsWith("<!DOCTYPE html>"));
  EXPECT_EQ(json::parse(DataOf(page)), json::parse(text));
  for (const char* foreign : {"src=", "@import", "url(", "<link", "@report@"})
    EXPECT_THAT(page, Not(HasSubstr(foreign)));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
}

TEST(ReportPage, NoTextOfTheReportIsMarkup) {
  LoadReport report = SampleReport(1);
  const std::string hostile = "</script><script>alert(1)</script><!--\xe2\x80\xa8\"'&\xff";
  report.runs[0].plan.method = hostile;
  report.runs[0].codes[hostile] = 1;
  report.runs[0].series[3].config = hostile;
  const std::string page = ReportPage(ReportJson(report));
  const std::string data = DataOf(page);
  EXPECT_THAT(data, Not(HasSubstr("<")));
  EXPECT_EQ(json::parse(data)["plan"]["method"],
            "</script><script>alert(1)</script><!--\xe2\x80\xa8\"'&\xef\xbf\xbd");
  const std::string calm = ReportPage(ReportJson(SampleReport(1)));
  EXPECT_EQ(page.substr(page.find(data) + data.size()),
            calm.substr(calm.find(DataOf(calm)) + DataOf(calm).size()));
}

}  // namespace
}  // namespace curtail
