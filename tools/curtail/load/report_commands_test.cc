// SPDX-License-Identifier: Apache-2.0
//
// `curtail report` and `curtail compare-results` over files: what they write, print and exit with.
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "curtail/load/report/report.h"
#include "curtail/term/exit_code.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/curtail/load/compare_results_command.h"
#include "tools/curtail/load/report_command.h"

namespace curtail::tool {
namespace {

using testing::HasSubstr;

class ReportCommands : public testing::Test {
 protected:
  ~ReportCommands() override {
    for (const std::string& path : made_) unlink(path.c_str());
  }

  std::string Path(const std::string& name) {
    made_.push_back(absl::StrCat(testing::TempDir(), "/curtail_report_commands.", getpid(), ".", name));
    return made_.back();
  }

  // A file of five runs of 1000 requests of about `latency`.
  std::string Measured(const std::string& name, Nanos latency) {
    LoadReport report;
    for (int run = 0; run < 5; ++run) {
      LoadResult& r = report.runs.emplace_back();
      r.plan.method = "/a.B/C";
      r.plan.arrivals = "poisson";
      r.plan.seed = static_cast<uint64_t>(run);
      r.ok = r.sent = r.scheduled = 1000;
      r.good_per_s = 100;
      r.measured = std::chrono::seconds(10);
      for (int i = 0; i < 1000; ++i) r.all.Record(latency + latency * ((i + 37 * run) % 1000) / (1000 + run));
      r.success = r.all;
    }
    const std::string path = Path(name);
    EXPECT_TRUE(WriteFile(path, ReportJson(report)).ok());
    return path;
  }

  static std::string Read(const std::string& path) {
    std::ifstream in(path);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }

  Console console_;
  std::vector<std::string> made_;
};

TEST_F(ReportCommands, ReportPrintsOrWritesWhatAFileHolds) {
  const std::string file = Measured("a.json", std::chrono::milliseconds(2));
  testing::internal::CaptureStdout();
  EXPECT_EQ(RunReport({.file = file}, console_), kOk);
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_THAT(text, HasSubstr("/a.B/C"));
  EXPECT_THAT(text, HasSubstr("run 5 of 5, seed 4"));
  EXPECT_THAT(text, HasSubstr("5 runs"));

  const std::string html = Path("a.html"), hgrm = Path("a.hgrm");
  testing::internal::CaptureStdout();
  EXPECT_EQ(RunReport({.file = file, .html = html, .hgrm = hgrm}, console_), kOk);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_THAT(Read(html), HasSubstr("\"/a.B/C\""));
  EXPECT_THAT(Read(hgrm), HasSubstr("Total count    =         5000]"));
}

TEST_F(ReportCommands, UnreadableAndUnwritableFilesHaveTheirExitCodes) {
  const std::string bad = Path("bad.json"), good = Measured("a.json", std::chrono::milliseconds(2));
  ASSERT_TRUE(WriteFile(bad, "{\"schema_version\": 1}").ok());
  testing::internal::CaptureStderr();
  EXPECT_EQ(RunReport({.file = bad}, console_), kBadConfig);
  EXPECT_EQ(RunReport({.file = "/nonexistent.json"}, console_), kBadConfig);
  EXPECT_EQ(RunCompareResults({.a = good, .b = bad}, console_), kBadConfig);
  EXPECT_EQ(RunCompareResults({.a = bad, .b = good}, console_), kBadConfig);
  EXPECT_EQ(RunReport({.file = good, .html = "/dev/full"}, console_), kFailed);
  const std::string errors = testing::internal::GetCapturedStderr();
  EXPECT_THAT(errors, HasSubstr("bad.json has schema_version 1, and only 2 is understood\n"));
  EXPECT_THAT(errors, HasSubstr("/nonexistent.json cannot be opened: No such file"));
  EXPECT_THAT(errors, HasSubstr("cannot write /dev/full: No space left"));
}

TEST_F(ReportCommands, CompareResultsFailsOnlyWhenAskedTo) {
  const std::string fast = Measured("fast.json", std::chrono::milliseconds(2));
  const std::string slow = Measured("slow.json", std::chrono::milliseconds(3));
  const std::string json = Path("change.json");
  testing::internal::CaptureStdout();
  EXPECT_EQ(RunCompareResults({.a = fast, .b = slow, .json = json}, console_), kOk);
  EXPECT_EQ(RunCompareResults({.a = fast, .b = slow, .fail_if_worse = true}, console_), kThreshold);
  EXPECT_EQ(RunCompareResults({.a = slow, .b = fast, .fail_if_worse = true}, console_), kOk);
  EXPECT_EQ(RunCompareResults({.a = fast, .b = fast, .fail_if_worse = true}, console_), kOk);
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_THAT(text, testing::ContainsRegex("p99 .* worse\n"));
  EXPECT_THAT(text, testing::ContainsRegex("p99 .* better\n"));
  EXPECT_THAT(text, testing::ContainsRegex("p99 .* noise\n"));
  EXPECT_THAT(Read(json), HasSubstr("\"worse\": true"));
}

}  // namespace
}  // namespace curtail::tool
