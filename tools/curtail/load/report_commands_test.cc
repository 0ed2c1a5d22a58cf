// SPDX-License-Identifier: Apache-2.0
//
// `curtail report` and `curtail compare-results` over files: what they write, print and exit with.
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "curtail/load/report/report_read.h"
#include "curtail/load/report/report_testing.h"
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

  // A file of share `share` of 2.
  std::string MeasuredShare(int share) {
    const std::string path = Path(absl::StrCat(share, "_of_2.json"));
    EXPECT_TRUE(WriteFile(path, ReportJson(SampleShare(share, 2), SampleOrigin())).ok());
    return path;
  }

  // Exit code of `curtail report`, and what it printed.
  std::pair<int, std::string> Report(const std::vector<std::string>& files, const std::string& fail_if = "",
                                     const std::string& json = "") {
    ReportFlags flags;
    flags.files = files;
    flags.fail_if = fail_if;
    flags.json = json;
    flags.command = "curtail report";
    testing::internal::CaptureStdout();
    const int code = RunReport(flags, console_);
    return {code, testing::internal::GetCapturedStdout()};
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
  const auto [code, text] = Report({file});
  EXPECT_EQ(code, kOk);
  EXPECT_THAT(text, HasSubstr("/a.B/C"));
  EXPECT_THAT(text, HasSubstr("run 5 of 5, seed 4"));
  EXPECT_THAT(text, HasSubstr("5 runs"));

  const std::string html = Path("a.html"), hgrm = Path("a.hgrm");
  ReportFlags flags;
  flags.files = {file};
  flags.html = html;
  flags.hgrm = hgrm;
  testing::internal::CaptureStdout();
  EXPECT_EQ(RunReport(flags, console_), kOk);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_THAT(Read(html), HasSubstr("\"/a.B/C\""));
  EXPECT_THAT(Read(hgrm), HasSubstr("Total count    =         5000]"));
}

TEST_F(ReportCommands, AResultMayNameTheStandardOutput) {
  const std::string share = MeasuredShare(1), link = Path("stdout");
  ASSERT_EQ(symlink("/proc/self/fd/1", link.c_str()), 0);
  testing::internal::CaptureStderr();
  const auto [code, text] = Report({share}, "", link);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("share 2 of 2 has no result"));
  EXPECT_EQ(code, kVoid);
  EXPECT_TRUE(ParseReport(text).ok()) << text;
}

TEST_F(ReportCommands, UnreadableAndUnwritableFilesHaveTheirExitCodes) {
  const std::string bad = Path("bad.json"), good = Measured("a.json", std::chrono::milliseconds(2));
  ASSERT_TRUE(WriteFile(bad, "{\"schema_version\": 1}").ok());
  testing::internal::CaptureStderr();
  EXPECT_EQ(Report({bad}).first, kBadConfig);
  EXPECT_EQ(Report({"/nonexistent.json"}).first, kBadConfig);
  EXPECT_EQ(RunCompareResults({.a = good, .b = bad}, console_), kBadConfig);
  EXPECT_EQ(RunCompareResults({.a = bad, .b = good}, console_), kBadConfig);
  EXPECT_EQ(Report({good}, "", "/dev/full").first, kFailed);
  const std::string errors = testing::internal::GetCapturedStderr();
  EXPECT_THAT(errors, HasSubstr("bad.json has schema_version 1, and only 2 is understood\n"));
  EXPECT_THAT(errors, HasSubstr("/nonexistent.json cannot be opened: No such file"));
  EXPECT_THAT(errors, HasSubstr("cannot write /dev/full: No space left"));
}

TEST_F(ReportCommands, ReportJoinsTheSharesOfATest) {
  const std::string one = MeasuredShare(1), two = MeasuredShare(2), all = Path("all.json");
  const auto [code, text] = Report({one, two}, "p50<1s,errors<=2%", all);
  EXPECT_EQ(code, kOk) << text;
  EXPECT_THAT(text, HasSubstr(absl::StrCat("generator     ", two, ": share 2, ")));
  EXPECT_THAT(text, HasSubstr("on each of 2 generators"));
  EXPECT_THAT(text, HasSubstr("threshold     ok      p50<1s"));
  ReportOrigin origin;
  const absl::StatusOr<LoadReport> joined = ReadReport(all, &origin);
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(joined->runs.front().sent, SampleShare(1, 2).runs[0].sent + SampleShare(2, 2).runs[0].sent);
  EXPECT_EQ(origin.command, "curtail report");
  EXPECT_EQ(origin.machine->cpu_model, SampleOrigin().machine->cpu_model);
  EXPECT_EQ(Report({all}).first, kOk) << "it is the whole";
  EXPECT_EQ(Report({one, two}, "p50<1us").first, kThreshold);
}

TEST_F(ReportCommands, AShareWithoutAResultMakesTheTestVoid) {
  const std::string one = MeasuredShare(1);
  const auto [code, text] = Report({one, "/nonexistent.json"}, "p50<1s");
  EXPECT_EQ(code, kVoid);
  EXPECT_THAT(text, HasSubstr("VOID          /nonexistent.json cannot be opened"));
  EXPECT_THAT(text, HasSubstr("VOID          share 2 of 2 has no result"));
  EXPECT_EQ(Report({one}).first, kVoid);
  const std::string other = Measured("a.json", std::chrono::milliseconds(2));
  testing::internal::CaptureStderr();
  EXPECT_EQ(Report({one, other}).first, kBadConfig);
  EXPECT_EQ(Report({one}, "p50<5").first, kBadConfig);
  const std::string errors = testing::internal::GetCapturedStderr();
  EXPECT_THAT(errors, HasSubstr("a.json is not a share of a run"));
  EXPECT_THAT(errors, HasSubstr("--fail-if: "));
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
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  EXPECT_EQ(RunCompareResults({.a = fast, .b = slow, .json = "-"}, console_), kOk);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::ContainsRegex("p99 .* worse\n"));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), Read(json));
}

}  // namespace
}  // namespace curtail::tool
