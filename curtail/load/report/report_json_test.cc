// SPDX-License-Identifier: Apache-2.0
//
// The JSON of reports, back into reports, and the writing of files. tests/schema checks the JSON by its schema.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "curtail/base/schema_testing.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/load/report/report.h"
#include "curtail/load/report/report_read.h"
#include "curtail/load/report/report_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace curtail {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string ReadFile(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

LoadReport EmptyReport() {
  LoadReport report;
  report.runs.emplace_back().plan = SamplePlan();
  return report;
}

TEST(ReportJson, IsCheckedByItsSchema) {
  for (int runs : {1, 2, 7})
    KeepForSchemaTest(absl::StrCat("report-", runs), ReportJson(SampleReport(runs), SampleOrigin()));
  KeepForSchemaTest("report-unknown-origin", ReportJson(SampleReport(1)));
  KeepForSchemaTest("report-this-machine", ReportJson(SampleReport(1), ThisOrigin("0.1")));
  KeepForSchemaTest("report-empty", ReportJson(EmptyReport()));
  KeepForSchemaTest("report-journeys", ReportJson(SampleJourneys()));
  KeepForSchemaTest("report-mix", ReportJson(SampleMix()));
  KeepForSchemaTest("report-checked", ReportJson(SampleChecked()));
  KeepForSchemaTest("report-share", ReportJson(SampleShare(2, 3)));
  KeepForSchemaTest("result", ResultJson(SampleRun()));
}

TEST(ReportJson, CarriesTheNumbers) {
  const LoadResult run = SampleRun();
  const json j = json::parse(ResultJson(run));
  EXPECT_EQ(j["requests"]["ok"], run.ok);
  EXPECT_EQ(j["codes"]["ABORTED"], run.failed);
  EXPECT_EQ(j["score"]["name"], "recall@10");
  EXPECT_NEAR(j["score"]["mean"], 0.95, 1e-9);
  EXPECT_NEAR(j["latency_us"]["success"]["p50"], 2000, 200);
  EXPECT_GE(j["latency_us"]["all"]["max"], 1e6) << "a failure counts as the timeout";
  EXPECT_NEAR(j["generator"]["cpu_us_per_request"].get<double>() * static_cast<double>(run.sent), 30'000,
              1e-6);
  EXPECT_TRUE(j["latency_us"]["all"]["ci95"]["p99_9"][1].is_null()) << "1000 samples are too few";
  EXPECT_EQ(j["series"][11]["config"], "SDB1-16");
  EXPECT_EQ(j["checks"]["neighbours_rank_correlation"], 0.25);
  EXPECT_TRUE(j["checks"]["gaps_a2"].is_null());
  uint64_t in_buckets = 0;
  for (const json& bucket : j["latency_us"]["all"]["buckets"]) in_buckets += bucket[2].get<uint64_t>();
  EXPECT_EQ(in_buckets, run.all.count());
}

TEST(ReportJson, SaysHowTheValidRunsSpread) {
  LoadReport report = SampleReport(4);
  EXPECT_EQ(json::parse(ReportJson(report))["between_runs"]["valid_runs"], 4);
  report.runs[2].invalid.push_back("the generator was late");
  report.runs[0].good_per_s = 10;
  report.runs[1].good_per_s = 20;
  report.runs[3].good_per_s = 60;
  const json j = json::parse(ReportJson(report));
  EXPECT_EQ(j["valid"], false);
  const json good = j["between_runs"]["good_per_s"];
  EXPECT_EQ(good["median"], 20);
  EXPECT_EQ(good["min"], 10);
  EXPECT_EQ(good["max"], 60);
  EXPECT_EQ(good["mean"], 30);
  // 30 +- 4.303 * 26.458 / sqrt(3)
  EXPECT_EQ(good["mean_ci95"][0], 0) << "there is no rate below 0";
  EXPECT_NEAR(good["mean_ci95"][1], 30 + 65.73, 0.01);
  EXPECT_TRUE(good["median_ci95"].is_null());
  EXPECT_TRUE(json::parse(ReportJson(SampleReport(1)))["between_runs"].is_null());
}

TEST(ReportJson, ShortThingsStandOnOneLine) {
  const std::string text = ReportJson(SampleReport(1), SampleOrigin());
  EXPECT_THAT(text, testing::ContainsRegex("\n +\\[[0-9.]+,[0-9.]+,[0-9]+\\],\n"));
  EXPECT_EQ(text.back(), '\n');
}

TEST(ReadReport, GivesBackWhatWasWritten) {
  std::vector<LoadReport> reports = {SampleReport(1), SampleReport(3), EmptyReport(),    SampleJourneys(),
                                     SampleMix(),     SampleChecked(), SampleShare(2, 3)};
  reports[0].runs[0].invalid.push_back("late");
  reports[0].runs[0].plan.retries = 2;
  reports[0].runs[0].retried = 3;
  reports[0].runs[0].retries = 4;
  reports[0].runs[0].all.Record(Histogram::kMaxValue + Nanos(1));
  reports[1].runs[2].interrupted = true;
  reports[1].runs[0].plan.requests = 1000;
  reports[1].runs[1].plan.realtime = true;
  reports[2].runs[0].plan.seed = ~uint64_t{0};
  for (const LoadReport& report : reports) {
    const std::string text = ReportJson(report, SampleOrigin());
    ReportOrigin origin;
    const absl::StatusOr<LoadReport> again = ParseReport(text, &origin);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(ReportJson(*again, origin), text);
    for (size_t i = 0; i < report.runs.size(); ++i) {
      for (double p = 0; p <= 100; p += 0.1) {
        ASSERT_EQ(again->runs[i].all.Percentile(p), report.runs[i].all.Percentile(p)) << p;
      }
    }
  }
}

std::string ErrorOf(std::string_view text) {
  const absl::StatusOr<LoadReport> report = ParseReport(text);
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(report.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(report.status().message());
}

TEST(ReadReport, SaysWhereAFileIsNoJson) {
  EXPECT_EQ(ErrorOf("{\n \"a\": 1,\n \"b\" 2\n}"), "is not JSON at 3:6");
  EXPECT_THAT(ErrorOf(""), HasSubstr("1:1: it ends too early"));
  EXPECT_THAT(ErrorOf("hello"), HasSubstr("is not JSON at 1:1"));
  EXPECT_THAT(ErrorOf("{\"a\":1e999}"), HasSubstr("is not JSON"));
  EXPECT_THAT(ErrorOf(std::string(1 << 20, '[')), HasSubstr("nested more deeply"));
}

TEST(ReadReport, RefusesOtherVersions) {
  EXPECT_EQ(ErrorOf("{\"schema_version\": 1, \"plan\": {}}"),
            "has schema_version 1, and only 2 is understood");
  EXPECT_EQ(ErrorOf("{\"schema_version\": 3}"), "has schema_version 3, and only 2 is understood");
  EXPECT_EQ(ErrorOf("[1]"), "is not a load report: it has no schema_version");
  EXPECT_EQ(ErrorOf("{\"schema_version\": \"2\"}"), "is not a load report: it has no schema_version");
}

TEST(ReadReport, NamesTheKeyThatIsMissingOrWrong) {
  const json good = json::parse(ReportJson(SampleReport(2), SampleOrigin()));
  const auto error_with = [&](const std::string& pointer, const json& value) {
    json bad = good;
    bad[json::json_pointer(pointer)] = value;
    return ErrorOf(bad.dump());
  };
  json lacks = good;
  lacks["runs"][1]["latency_us"]["all"].erase("min");
  EXPECT_EQ(ErrorOf(lacks.dump()), "is not a load report: runs[1].latency_us.all.min is missing");
  EXPECT_EQ(error_with("/plan/seed", -1),
            "is not a load report: plan.seed must be a whole number from 0 to 18446744073709551615");
  EXPECT_THAT(error_with("/plan/warmup_s", 1e300), HasSubstr("plan.warmup_s must be a number from 0 to"));
  EXPECT_THAT(error_with("/plan/target", 7), HasSubstr("plan.target must be a string"));
  EXPECT_THAT(error_with("/runs", json::array()), HasSubstr("runs must not be empty"));
  EXPECT_THAT(error_with("/runs/0/series/3/config", nullptr),
              HasSubstr("runs[0].series[3].config must be a string"));
  EXPECT_THAT(error_with("/runs/0/latency_us/all/buckets/2/1", 1e6),
              HasSubstr("runs[0].latency_us.all has buckets"));
  EXPECT_THAT(error_with("/runs/0/latency_us/all/buckets/2", json::array({1, 2})),
              HasSubstr("[low, high, count]"));
  EXPECT_THAT(error_with("/runs/1/codes/OK", 0.5), HasSubstr("runs[1].codes.OK must be a whole number"));
}

// Every key that a report needs, taken away one at a time.
TEST(ReadReport, EveryMissingKeyIsAnErrorOrDerived) {
  LoadReport small;
  small.runs.push_back(SampleRun());
  small.runs[0].series.resize(1);
  small.runs[0].success = small.runs[0].failure = Histogram();
  const json good = json::parse(ReportJson(small, SampleOrigin()));
  size_t errors = 0;
  const json flat = good.flatten();
  for (const auto& [pointer, unused] : flat.items()) {
    json bad = good;
    const json::json_pointer where(pointer);
    json& parent = bad[where.parent_pointer()];
    if (!parent.is_object()) continue;  // an item of an array
    parent.erase(where.back());
    const absl::StatusOr<LoadReport> report = ParseReport(bad.dump());
    if (report.ok()) continue;
    ++errors;
    const bool named = report.status().message().find(where.back()) != absl::string_view::npos;
    EXPECT_TRUE(named) << pointer << ": " << report.status();
  }
  EXPECT_GT(errors, 50u);
}

TEST(ReadReport, ReadsFilesAndNamesThem) {
  const std::string path = absl::StrCat(testing::TempDir(), "/curtail_report_read_test.", getpid());
  ASSERT_TRUE(WriteFile(path, ReportJson(SampleReport(1))).ok());
  EXPECT_TRUE(ReadReport(path).ok());
  ASSERT_TRUE(WriteFile(path, "{").ok());
  EXPECT_THAT(std::string(ReadReport(path).status().message()),
              HasSubstr(path + ":1:2: the JSON ends too early"));
  unlink(path.c_str());
  EXPECT_EQ(ReadReport(path).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadReport("/").status().code(), absl::StatusCode::kNotFound) << "a folder";
}

TEST(WriteFile, ReplacesAWholeFileAndLeavesNoTemporary) {
  const std::string path = absl::StrCat(testing::TempDir(), "/curtail_report_test.", getpid());
  ASSERT_TRUE(WriteFile(path, "old content").ok());
  ASSERT_TRUE(WriteFile(path, "new").ok());
  EXPECT_EQ(ReadFile(path), "new");
  EXPECT_NE(access(absl::StrCat(path, ".tmp.", getpid()).c_str(), F_OK), 0);
  unlink(path.c_str());
}

TEST(WriteFile, ALinkStaysALink) {
  const TempDir dir;
  const std::string file = dir.File("7.json"), link = dir.File("latest.json");
  ASSERT_EQ(symlink("7.json", link.c_str()), 0);
  for (const char* const text : {"new", "newer"}) {
    ASSERT_TRUE(WriteFile(link, text).ok());
    EXPECT_TRUE(std::filesystem::is_symlink(link));
    EXPECT_FALSE(std::filesystem::is_symlink(file));
    EXPECT_EQ(ReadFile(file), text);
  }
}

TEST(WriteFile, AnOpenFileGoesOn) {
  const TempDir dir;
  const std::string file = dir.File("out"), link = dir.File("stdout");
  const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(symlink(absl::StrCat("/proc/self/fd/", fd).c_str(), link.c_str()), 0);
  ASSERT_EQ(write(fd, "before ", 7), 7);
  EXPECT_TRUE(WriteFile(link, "{} ").ok());
  EXPECT_TRUE(WriteFile(absl::StrCat("/dev/fd/", fd), "[] ").ok());
  ASSERT_EQ(write(fd, "after", 5), 5);
  EXPECT_EQ(ReadFile(file), "before {} [] after");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  close(fd);
}

TEST(WriteFile, AFullDiskIsResourceExhausted) {
  const absl::Status status = WriteFile("/dev/full", "x");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("/dev/full"));
}

// A limit on the size of files stops the write half-way, as a full disk does.
TEST(WriteFile, AnErrorHalfWayLeavesTheOldFile) {
  const std::string path = absl::StrCat(testing::TempDir(), "/curtail_report_half.", getpid());
  ASSERT_TRUE(WriteFile(path, "old").ok());
  const auto old_handler = signal(SIGXFSZ, SIG_IGN);
  rlimit unlimited{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &unlimited), 0);
  const rlimit limited{1000, unlimited.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limited), 0);
  const absl::Status status = WriteFile(path, std::string(5000, 'x'));
  setrlimit(RLIMIT_FSIZE, &unlimited);
  signal(SIGXFSZ, old_handler);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  EXPECT_THAT(std::string(status.message()), testing::Not(HasSubstr("\n")));
  EXPECT_EQ(ReadFile(path), "old");
  EXPECT_NE(access(absl::StrCat(path, ".tmp.", getpid()).c_str(), F_OK), 0);
  unlink(path.c_str());
}

TEST(WriteFile, PipesAndDevicesAreWrittenDirectly) {
  EXPECT_TRUE(WriteFile("/dev/null", "x").ok());
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_TRUE(WriteFile(absl::StrCat("/dev/fd/", ends[1]), "text").ok())
      << "a pipe cannot be flushed, nor need it";
  char text[8] = {};
  EXPECT_EQ(read(ends[0], text, sizeof text), 4);
  EXPECT_STREQ(text, "text");
  close(ends[0]);
  close(ends[1]);
}

TEST(WriteFile, AMissingFolderIsAnError) { EXPECT_FALSE(WriteFile("/nonexistent/folder/x.json", "x").ok()); }

}  // namespace
}  // namespace curtail
