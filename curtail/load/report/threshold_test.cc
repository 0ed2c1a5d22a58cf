// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/report/threshold.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

// 990 replies of 2 ms, 10 failures of 100 ms, over 10 s.
LoadResult SampleRun() {
  LoadResult r;
  r.ok = 990, r.failed = 10;
  r.sent_per_s = 100, r.good_per_s = 99;
  r.all.Record(milliseconds(2), 990);
  r.all.Record(milliseconds(100), 10);
  r.score = {"recall@10", 2, 1.9, 0.9};
  r.reply_checks = {.replies = 200, .failed = 1};
  return r;
}

bool Met(std::string_view text) {
  const absl::StatusOr<std::vector<Threshold>> parsed = ParseThresholds(text);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  if (!parsed.ok() || parsed->size() != 1) return false;
  return Evaluate(parsed->front(), SampleRun()).met;
}

TEST(Threshold, ComparesEachMetric) {
  EXPECT_TRUE(Met("p99<5ms"));
  EXPECT_FALSE(Met("p99<1.99ms"));
  EXPECT_TRUE(Met("p99<=2.02ms"));
  EXPECT_FALSE(Met("p99.9<5ms"));
  EXPECT_TRUE(Met("p99.9<=0.1s")) << "the largest is exact";
  EXPECT_TRUE(Met("max>=100ms"));
  EXPECT_TRUE(Met("mean<3ms"));
  EXPECT_FALSE(Met("mean<2.9ms"));
  EXPECT_TRUE(Met("errors<1.1%"));
  EXPECT_FALSE(Met("errors<0.01"));
  EXPECT_TRUE(Met("errors <= 1 %"));
  EXPECT_TRUE(Met("rate>99.9"));
  EXPECT_FALSE(Met("good>99"));
  EXPECT_TRUE(Met("score>=0.95"));
  EXPECT_TRUE(Met("score>94%"));
  EXPECT_TRUE(Met("checks<=0.5%"));
  EXPECT_FALSE(Met("checks<=0"));
}

TEST(Threshold, IsUndecidedWhereOnlyTheGeneratorsLatenessStandsAgainstIt) {
  LoadResult r = SampleRun();
  r.since_sent.Record(milliseconds(1), 1000);
  const auto evaluate = [&](const char* text) { return Evaluate(ParseThresholds(text)->front(), r); };
  EXPECT_TRUE(evaluate("p99<5ms").met);
  EXPECT_FALSE(evaluate("p99<5ms").undecided);
  EXPECT_FALSE(evaluate("p99<1500us").met);
  EXPECT_TRUE(evaluate("p99<1500us").undecided);
  EXPECT_THAT(Describe(evaluate("p99<1500us")), HasSubstr("the generator's lateness decides"));
  EXPECT_FALSE(evaluate("p99<500us").undecided) << "the server misses it too";
  EXPECT_FALSE(evaluate("errors<0.01").undecided);
}

TEST(Threshold, IsDecidedInAVoidRunWhereNoLagExplainsTheLatency) {
  LoadResult r = SampleRun();
  r.invalid.push_back("late");
  r.success.Record(milliseconds(80), 990);
  r.send_lag.Record(milliseconds(5), 1000);
  const auto evaluate = [&](const char* text) { return Evaluate(ParseThresholds(text)->front(), r); };
  EXPECT_FALSE(evaluate("p99<1ms").undecided) << "the server takes 70 ms at least";
  r.success.Clear();
  r.success.Record(milliseconds(8), 990);
  EXPECT_TRUE(evaluate("p99<1ms").undecided) << "the lag may be all of it";
  EXPECT_TRUE(evaluate("errors<0.1%").undecided);
  r.success.Clear();
  EXPECT_TRUE(evaluate("p99<1ms").undecided);
}

TEST(Threshold, HoldsForAStepOfAJourney) {
  LoadResult r = SampleRun();
  r.steps = {{.name = "log-in"}, {.name = "pay", .ok = 3, .failed = 1}};
  r.steps[1].latency.Record(milliseconds(8), 4);
  const auto evaluate = [&](const char* text) { return Evaluate(ParseThresholds(text)->front(), r); };
  EXPECT_TRUE(evaluate("pay.p99.9<9ms").met);
  EXPECT_FALSE(evaluate("pay.max<5ms").met);
  EXPECT_TRUE(evaluate("pay.errors<=25%").met);
  EXPECT_FALSE(evaluate("pay.errors<25%").met);
  EXPECT_FALSE(evaluate("log-in.p50<9s").met) << "never sent";
  EXPECT_FALSE(evaluate("browse.p50<9s").met) << "there is no such step";
  r.methods = {{.name = "Read", .ok = 3, .failed = 1, .latency = r.steps[1].latency}};
  EXPECT_TRUE(evaluate("Read.p50<=8.1ms").met);
  EXPECT_FALSE(evaluate("Read.errors<25%").met);
  EXPECT_FALSE(evaluate("pay.max<5ms").undecided);
  r.invalid.push_back("late");
  EXPECT_TRUE(evaluate("pay.max<5ms").undecided);
  EXPECT_THAT(Describe(evaluate("pay.p50<5ms")), HasSubstr("pay.p50<5ms  (8"));
}

TEST(Threshold, NothingMeasuredMeetsNothing) {
  for (const char* text : {"p99<5s", "errors<100%", "rate>=0", "score>=0"}) {
    const absl::StatusOr<std::vector<Threshold>> parsed = ParseThresholds(text);
    ASSERT_TRUE(parsed.ok());
    EXPECT_FALSE(Evaluate(parsed->front(), LoadResult()).met) << text;
  }
}

TEST(Threshold, ListsAndDescribes) {
  const absl::StatusOr<std::vector<Threshold>> parsed = ParseThresholds("p99 < 5ms, errors<0.1%");
  ASSERT_TRUE(parsed.ok());
  ASSERT_EQ(parsed->size(), 2u);
  EXPECT_THAT(Describe(Evaluate((*parsed)[0], SampleRun())), HasSubstr("p99<5ms  (2.01 ms)"));
  EXPECT_THAT(Describe(Evaluate((*parsed)[1], SampleRun())), HasSubstr("errors<0.1%  (1 %)"));
  EXPECT_THAT(Describe(Evaluate((*parsed)[0], LoadResult())), HasSubstr("not measured"));
}

TEST(Threshold, RefusesWithAHint) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "the condition is empty; write p99<5ms"},
      {"p200<5ms", "'p200' is not a percentile; N of pN is above 0 and at most 100"},
      {"errors<200%", "a share is at most 100%"},
      {"p99", "compares nothing"},
      {"p99=5ms", "compares nothing"},
      {"p99<5ms;errors<1%", "'p99<5ms;errors<1%' has two conditions; put a comma between them"},
      {"p99<5", "not a duration"},
      {"p99<", "not a duration"},
      {"p99<-5ms", "not a duration"},
      {"p0<5ms", "not a percentile"},
      {"p101<5ms", "not a percentile"},
      {"latency<5ms", "no metric"},
      {"errors<lots", "not a share"},
      {"rate>5%", "not a number"},
      {"errors<nan", "not a share"},
      {"p99<5ms,", "compares nothing"},
      {"p99<<5ms", "not a duration"},
      {"p99<5ms;errors<1%", "has two conditions; put a comma"},
      {"pay.good>5", "a step or a method has no good"},
      {"pay.latency<5ms", "no metric"},
      {"pay.p99<5", "not a duration"},
  };
  for (const auto& [text, hint] : cases) {
    const absl::Status status = ParseThresholds(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(hint)) << text;
  }
}

}  // namespace
}  // namespace curtail
