// SPDX-License-Identifier: Apache-2.0
#include "output.h"

#include "gtest/gtest.h"

namespace curtail::bench {
namespace {

constexpr char kRun[] = R"("valid": false, "requests": {"ok": 41, "failed": 1}, "rates_per_s": {"good": 20.5},
  "latency_us": {"all": {"p50": 1000, "p90": 2000, "p99": 3500, "p99_9": 4000, "max": 5000}})";

void ExpectRun(const absl::StatusOr<GeneratorRun>& run) {
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_FALSE(run->valid);
  EXPECT_EQ(run->answered, 41u);
  EXPECT_EQ(run->rate_per_s, 20.5);
  EXPECT_EQ(run->latency.p50, 1.0);
  EXPECT_EQ(run->latency.p99, 3.5);
  EXPECT_EQ(run->latency.max, 5.0);
}

TEST(ParseCurtail, ReadsBothVersions) {
  ExpectRun(ParseCurtail(std::string("{\"schema_version\": 1, ") + kRun + "}"));
  ExpectRun(ParseCurtail(std::string("{\"schema_version\": 2, \"runs\": [{") + kRun + "}]}"));
}

TEST(ParseCurtail, RefusesWhatIsNoResult) {
  EXPECT_FALSE(ParseCurtail("").ok());
  EXPECT_FALSE(ParseCurtail("{\"runs\": []}").ok());
  EXPECT_FALSE(ParseCurtail("{\"runs\": [7]}").ok());
  EXPECT_FALSE(ParseCurtail("[1, 2]").ok());
}

TEST(ParseGhz, ReadsJson) {
  const absl::StatusOr<GeneratorRun> run = ParseGhzJson(
      R"({"rps": 100.5, "details": [{"latency": 3000000, "status": "OK"}, {"latency": 1000000, "status": "OK"},
          {"latency": 2000000, "status": "Canceled"}]})");
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->answered, 2u);
  EXPECT_EQ(run->rate_per_s, 100.5);
  EXPECT_EQ(run->latency.p50, 2.0);
  EXPECT_EQ(run->latency.max, 3.0);
  EXPECT_FALSE(ParseGhzJson("{}").ok());
}

TEST(ParseGhz, ReadsSummary) {
  const absl::StatusOr<GeneratorRun> run = ParseGhzSummary(
      "Summary:\n  Count:\t1200\n  Requests/sec:\t158.79\n\nStatus code distribution:\n  [OK]   1199 "
      "responses   \n");
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->answered, 1199u);
  EXPECT_EQ(run->rate_per_s, 158.79);
  EXPECT_FALSE(ParseGhzSummary("Requests/sec: fast").ok());
}

constexpr char kH2load[] =
    "finished in 116.61ms, 1715.10 req/s, 59.34KB/s\n"
    "requests: 200 total, 200 started, 200 done, 198 succeeded, 2 failed, 0 errored, 0 timeout\n"
    "traffic: 6.92KB (7086) total, 417B (417) headers (space savings 94.51%), ";

TEST(ParseH2load, CountsRepliesThatCarryAMessage) {
  const absl::StatusOr<GeneratorRun> run = ParseH2load(std::string(kH2load) + "1000B (1000) data\n");
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->answered, 198u);
  EXPECT_EQ(run->rate_per_s, 1715.10);
  // A gRPC error is a reply without a message, with HTTP status 200.
  EXPECT_FALSE(ParseH2load(std::string(kH2load) + "0B (0) data\n").ok());
  EXPECT_FALSE(ParseH2load("finished in 1s").ok());
  EXPECT_FALSE(ParseH2load(" succeeded").ok());
}

TEST(ParseH2load, ReadsItsLog) {
  const absl::StatusOr<Percentiles> latency = ParseH2loadLog("17\t200\t674\n18\t200\t2864\n19\t200\t869\n");
  ASSERT_TRUE(latency.ok()) << latency.status();
  EXPECT_EQ(latency->p50, 0.869);
  EXPECT_EQ(latency->max, 2.864);
  EXPECT_FALSE(ParseH2loadLog("17\t-1\t674\n").ok());
  EXPECT_FALSE(ParseH2loadLog("17\t200\n").ok());
}

}  // namespace
}  // namespace curtail::bench
