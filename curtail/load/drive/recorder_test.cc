// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/drive/recorder.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::Pair;
using testing::SizeIs;

const double kNoScore = std::nan("");

// One second of warm-up, ten measured, calls that may take 100 ms.
LoadPlan Plan() {
  LoadPlan plan;
  plan.arrivals = "constant";
  plan.warmup = seconds(1);
  plan.duration = seconds(10);
  plan.timeout = milliseconds(100);
  return plan;
}

TEST(Recorder, CountsLatencyFromTheIntendedTime) {
  Recorder recorder(Plan(), "");
  recorder.Sent(seconds(2), seconds(2) + milliseconds(3));
  recorder.Done(seconds(2), seconds(2) + milliseconds(3), seconds(2) + milliseconds(5), absl::OkStatus(),
                kNoScore);
  const LoadResult r = recorder.Finish(seconds(11), false, Nanos(0), Nanos(0));
  EXPECT_EQ(r.all.max(), milliseconds(5));
  EXPECT_EQ(r.success.max(), milliseconds(5));
  EXPECT_EQ(r.send_lag.max(), milliseconds(3));
  EXPECT_EQ(r.since_sent.max(), milliseconds(2)) << "without the generator's own lateness";
  EXPECT_EQ(r.scheduled, 1u);
  EXPECT_EQ(r.ok, 1u);
  EXPECT_EQ(r.measured, seconds(10));
}

TEST(Recorder, CountsEachMethodOfAMix) {
  LoadPlan plan = Plan();
  plan.methods = {"Read", "Write"};
  Recorder recorder(plan, "");
  recorder.MethodDone(Nanos(0), 0, milliseconds(1), true);  // in the warm-up
  recorder.MethodDone(seconds(2), 0, milliseconds(1), true);
  recorder.MethodDone(seconds(3), 1, milliseconds(2), false);
  recorder.MethodDone(seconds(3), 7, milliseconds(3), true);  // one that was not foreseen
  const LoadResult r = recorder.Finish(seconds(11), false, Nanos(0), Nanos(0));
  ASSERT_EQ(r.methods.size(), 3u);
  EXPECT_EQ(r.methods[0].name + r.methods[1].name + r.methods[2].name, "ReadWrite(others)");
  EXPECT_EQ(r.methods[0].ok, 1u);
  EXPECT_EQ(r.methods[1].failed, 1u);
  EXPECT_EQ(r.methods[1].latency.max(), milliseconds(100)) << "the timeout";
  EXPECT_EQ(r.methods[2].ok, 1u);
}

TEST(Recorder, LeavesTheWarmUpOut) {
  Recorder recorder(Plan(), "");
  for (const Nanos at : {Nanos(0), Nanos(seconds(1)) - Nanos(1), Nanos(seconds(11))}) {
    recorder.Sent(at, at);
    recorder.Done(at, at, at + seconds(5), absl::OkStatus(), 0.5);
  }
  recorder.Sent(seconds(1), seconds(1));
  recorder.Done(seconds(1), seconds(1), seconds(1) + milliseconds(1), absl::OkStatus(), 1.0);
  const LoadResult r = recorder.Finish(seconds(11), false, Nanos(0), Nanos(0));
  EXPECT_EQ(r.scheduled, 1u);
  EXPECT_EQ(r.all.max(), milliseconds(1));
  EXPECT_EQ(r.score.count, 1u);
  EXPECT_EQ(r.score.mean(), 1.0);
}

TEST(Recorder, CountsRetriesOfMeasuredRequests) {
  Recorder recorder(Plan(), "");
  for (const auto& [at, retries] : {std::pair<Nanos, int>(0, 9), {seconds(2), 1}, {seconds(3), 2}}) {
    recorder.Sent(at, at);
    recorder.Done(at, at, at + milliseconds(1), absl::OkStatus(), kNoScore);
    recorder.Retried(at, retries);
  }
  const LoadResult r = recorder.Finish(seconds(11), false, Nanos(0), Nanos(0));
  EXPECT_EQ(r.sent, 2u);
  EXPECT_EQ(r.ok, 2u);
  EXPECT_EQ(r.retried, 2u);
  EXPECT_EQ(r.retries, 3u);
}

TEST(Recorder, NoFailureImprovesAPercentile) {
  Recorder recorder(Plan(), "");
  for (int i = 0; i < 100; ++i) {
    const Nanos at = seconds(2) + milliseconds(i);
    recorder.Sent(at, at);
    // Every tenth is refused in no time.
    const absl::Status status = i % 10 == 0 ? absl::ResourceExhaustedError("full") : absl::OkStatus();
    recorder.Done(at, at, at + (status.ok() ? milliseconds(2) : microseconds(50)), status, kNoScore);
  }
  const LoadResult r = recorder.Finish(seconds(11), false, Nanos(0), Nanos(0));
  EXPECT_EQ(r.all.Percentile(95), milliseconds(100)) << "a refusal counts as the timeout";
  EXPECT_EQ(r.success.max(), milliseconds(2));
  EXPECT_EQ(r.failure.max(), microseconds(50)) << "and is listed with its own time beside it";
  EXPECT_EQ(r.failed, 10u);
  EXPECT_DOUBLE_EQ(r.failed_fraction(), 0.1);
  EXPECT_DOUBLE_EQ(r.good_per_s, 9.0);
}

TEST(Recorder, TimeoutsCountAsTheTimeTheyTook) {
  Recorder recorder(Plan(), "");
  recorder.Sent(seconds(2), seconds(2));
  recorder.Done(seconds(2), seconds(2), seconds(2) + milliseconds(130), absl::DeadlineExceededError("late"),
                kNoScore);
  const LoadResult r = recorder.Finish(seconds(11), false, Nanos(0), Nanos(0));
  EXPECT_EQ(r.all.max(), milliseconds(130));
}

TEST(Recorder, CodesAndErrorTextsAreSortedAndBounded) {
  Recorder recorder(Plan(), "");
  const auto fail = [&](absl::Status status) {
    recorder.Done(seconds(2), seconds(2), seconds(2), status, kNoScore);
  };
  fail(absl::UnavailableError("gone"));
  fail(absl::AbortedError("b"));
  fail(absl::AbortedError("a"));
  fail(absl::AbortedError("b"));
  recorder.Done(seconds(2), seconds(2), seconds(2), absl::OkStatus(), kNoScore);
  for (int i = 0; i < 1000; ++i)
    fail(absl::NotFoundError(absl::StrCat("no item ", i, std::string(1000, 'x'))));
  const LoadResult r = recorder.Finish(seconds(11), false, Nanos(0), Nanos(0));
  EXPECT_THAT(r.codes, ElementsAre(Pair("ABORTED", 3), Pair("NOT_FOUND", 1000), Pair("OK", 1),
                                   Pair("UNAVAILABLE", 1)));
  EXPECT_EQ(r.errors.at("ABORTED: b"), 2u);
  EXPECT_EQ(r.errors.at("ABORTED: a"), 1u);
  EXPECT_EQ(r.errors.size(), 14u) << "ten texts of NOT_FOUND and one for the rest";
  EXPECT_EQ(r.errors.at("NOT_FOUND: (other texts)"), 990u);
  uint64_t total = 0;
  for (const auto& [text, count] : r.errors) {
    total += count;
    EXPECT_LT(text.size(), 300u);
  }
  EXPECT_EQ(total, r.failed) << "nothing is lost when texts are folded together";
}

TEST(Recorder, DroppedAndUnfinishedAreFailures) {
  Recorder recorder(Plan(), "");
  for (int i = 0; i < 98; ++i) {
    recorder.Sent(seconds(2), seconds(2));
    recorder.Done(seconds(2), seconds(2), seconds(2) + milliseconds(1), absl::OkStatus(), kNoScore);
  }
  recorder.Dropped(seconds(3));
  recorder.Dropped(seconds(3));
  recorder.Sent(seconds(4), seconds(4));
  recorder.Unfinished(seconds(4), seconds(4), seconds(7));
  const LoadResult r = recorder.Finish(seconds(11), false, Nanos(0), Nanos(0));
  EXPECT_EQ(r.scheduled, 101u);
  EXPECT_EQ(r.sent, 99u);
  EXPECT_EQ(r.failed, 3u);
  EXPECT_EQ(r.dropped, 2u);
  EXPECT_EQ(r.unfinished, 1u);
  EXPECT_EQ(r.all.count(), 101u);
  EXPECT_EQ(r.since_sent.count(), 101u) << "what was not sent is as bad as what failed";
  EXPECT_EQ(r.all.max(), seconds(3));
  EXPECT_THAT(r.codes, testing::Contains(Pair("NOT_SENT", 2u)));
  EXPECT_THAT(r.invalid, ElementsAre(testing::HasSubstr("1 calls never ended")));
  EXPECT_THAT(r.warnings, ElementsAre(testing::HasSubstr("2 requests were not sent")));
}

TEST(Recorder, LateSendsLowerTheRate) {
  Recorder recorder(Plan(), "");
  for (int i = 0; i < 1000; ++i) {
    const Nanos due = seconds(1) + milliseconds(10) * i;
    recorder.Sent(due, due + milliseconds(i));  // falls behind by a tenth: the last leaves at 11.99 s
    recorder.Done(due, due + milliseconds(i), due + milliseconds(i + 1), absl::OkStatus(), kNoScore);
  }
  const LoadResult r = recorder.Finish(seconds(11), false, Nanos(0), Nanos(0));
  EXPECT_NEAR(r.scheduled_per_s, 100, 0.01);
  EXPECT_NEAR(r.sent_per_s, 1000 / 10.989, 0.01);
  EXPECT_FALSE(r.valid());
}

TEST(Recorder, AnInterruptedRunHasTheRatesOfItsTime) {
  Recorder recorder(Plan(), "");
  for (int i = 0; i < 200; ++i) {
    const Nanos due = seconds(1) + milliseconds(10) * i;
    recorder.Sent(due, due);
    recorder.Done(due, due, due + milliseconds(1), absl::OkStatus(), kNoScore);
  }
  const LoadResult r = recorder.Finish(seconds(3), true, Nanos(0), Nanos(0));
  EXPECT_TRUE(r.interrupted);
  EXPECT_EQ(r.measured, seconds(2));
  EXPECT_NEAR(r.sent_per_s, 100, 0.01);
  EXPECT_TRUE(r.valid());
}

TEST(Recorder, InterruptedInTheWarmUpMeasuresNothing) {
  Recorder recorder(Plan(), "");
  recorder.Sent(milliseconds(5), milliseconds(5));
  const LoadResult r = recorder.Finish(milliseconds(500), true, Nanos(0), Nanos(0));
  EXPECT_EQ(r.measured, Nanos(0));
  EXPECT_EQ(r.sent_per_s, 0);
  EXPECT_FALSE(r.valid());
}

TEST(Recorder, TicksCutTheRunIntoSeconds) {
  Recorder recorder(Plan(), "");
  recorder.Sent(milliseconds(100), milliseconds(100));
  recorder.Done(milliseconds(100), milliseconds(100), milliseconds(101), absl::OkStatus(), kNoScore);
  recorder.Tick(seconds(1), 1, 0);
  recorder.Sent(milliseconds(1100), milliseconds(1100));
  recorder.Sent(milliseconds(1200), milliseconds(1200));
  recorder.Done(milliseconds(1100), milliseconds(1100), milliseconds(1104), absl::AbortedError("x"),
                kNoScore);
  recorder.Tick(milliseconds(2050), 4, 1);
  const LoadResult r = recorder.Finish(seconds(11), false, Nanos(0), Nanos(0));
  ASSERT_THAT(r.series, SizeIs(2));
  EXPECT_EQ(r.series[0].sent, 1u);
  EXPECT_EQ(r.series[0].ok, 1u);
  EXPECT_EQ(r.series[0].p99, milliseconds(1));
  EXPECT_EQ(r.series[1].length, milliseconds(1050));
  EXPECT_EQ(r.series[1].due, 3u) << "one of them has not been sent yet";
  EXPECT_EQ(r.series[1].sent, 2u);
  EXPECT_EQ(r.series[1].failed, 1u);
  EXPECT_EQ(r.series[1].in_flight, 1u);
  EXPECT_EQ(r.series[1].p50, milliseconds(100));
}

TEST(Recorder, TheLastIntervalIsNoStub) {
  Recorder recorder(Plan(), "");
  recorder.Sent(milliseconds(100), milliseconds(100));
  recorder.Done(milliseconds(100), milliseconds(100), milliseconds(101), absl::OkStatus(), kNoScore);
  recorder.Tick(seconds(1), 1, 1);
  // Half a second with requests is an interval of its own; less is part of the one before.
  recorder.Sent(milliseconds(1200), milliseconds(1200));
  recorder.Done(milliseconds(1200), milliseconds(1200), milliseconds(1203), absl::OkStatus(), kNoScore);
  recorder.LastTick(milliseconds(1400), 2);
  const LoadResult r = recorder.Finish(seconds(11), false, Nanos(0), Nanos(0));
  ASSERT_THAT(r.series, SizeIs(1));
  EXPECT_EQ(r.series[0].length, milliseconds(1400));
  EXPECT_EQ(r.series[0].ok, 2u);
  EXPECT_EQ(r.series[0].due, 2u);
  EXPECT_EQ(r.series[0].in_flight, 0u);
  EXPECT_EQ(r.series[0].p50, milliseconds(1)) << "of the many, not of the few";
}

TEST(Recorder, WaitingForTheLastRepliesIsNoTimeOfTheRun) {
  Recorder recorder(Plan(), "");
  recorder.Sent(milliseconds(100), milliseconds(100));
  recorder.Tick(seconds(1), 1, 1);
  recorder.Done(milliseconds(100), milliseconds(100), milliseconds(2100), absl::OkStatus(), kNoScore);
  recorder.LastTick(milliseconds(2100), 1);
  const LoadResult r = recorder.Finish(seconds(11), false, Nanos(0), Nanos(0));
  ASSERT_THAT(r.series, SizeIs(1));
  EXPECT_EQ(r.series[0].end, seconds(1));
  EXPECT_EQ(r.series[0].ok, 1u);
  EXPECT_EQ(r.series[0].p99, milliseconds(2000));
}

TEST(Recorder, ASeriesOfAnyLengthFitsAndKeepsItsSums) {
  LoadPlan plan = Plan();
  plan.warmup = Nanos(0);
  plan.duration = std::chrono::hours(3);
  Recorder recorder(plan, "");
  Nanos now{0};
  uint64_t number = 0;
  while (now < plan.duration) {
    recorder.Sent(now, now);
    recorder.Done(now, now, now + microseconds(100 + number % 7), absl::OkStatus(), kNoScore);
    now += recorder.interval();
    ++number;
    recorder.Tick(now, number, number % 3);
    ASSERT_LE(number, 4 * LoadResult::kMaxIntervals);
  }
  const LoadResult r = recorder.Finish(now, false, Nanos(0), Nanos(0));
  EXPECT_LE(r.series.size(), LoadResult::kMaxIntervals);
  EXPECT_GT(r.series.size(), LoadResult::kMaxIntervals / 2);
  Nanos last{0};
  uint64_t due = 0, sent = 0, ok = 0;
  for (const LoadInterval& interval : r.series) {
    EXPECT_EQ(interval.end - interval.length, last) << "no gap";
    last = interval.end;
    due += interval.due, sent += interval.sent, ok += interval.ok;
  }
  EXPECT_EQ(last, now);
  EXPECT_EQ(due, number);
  EXPECT_EQ(sent, number);
  EXPECT_EQ(ok, number);
}

TEST(Recorder, ClosedLoopHasNoSendLag) {
  LoadPlan plan = Plan();
  plan.arrivals = "closed";
  Recorder recorder(plan, "");
  recorder.Sent(seconds(2), seconds(2) + microseconds(1));
  recorder.Done(seconds(2), seconds(2), seconds(2) + milliseconds(1), absl::OkStatus(), kNoScore);
  const LoadResult r = recorder.Finish(seconds(11), false, Nanos(0), Nanos(0));
  EXPECT_TRUE(r.send_lag.empty());
  EXPECT_TRUE(r.valid());
}

TEST(Recorder, CountsTheStatusOfHttpByItsNumber) {
  Recorder recorder(Plan(), "");
  const auto fail = [&](int status, const char* reason) {
    recorder.Sent(seconds(2), seconds(2));
    recorder.Done(seconds(2), seconds(2), seconds(3),
                  absl::Status(static_cast<absl::StatusCode>(status), reason), kNoScore);
  };
  fail(404, "Not Found");
  fail(404, "");
  fail(503, "Busy");
  fail(16, "who are you");
  const LoadResult r = recorder.Finish(seconds(11), false, Nanos(0), Nanos(0));
  EXPECT_THAT(r.codes, ElementsAre(Pair("HTTP 404", 2), Pair("HTTP 503", 1), Pair("UNAUTHENTICATED", 1)));
  EXPECT_THAT(r.errors, ElementsAre(Pair("HTTP 404", 1), Pair("HTTP 404: Not Found", 1),
                                    Pair("HTTP 503: Busy", 1), Pair("UNAUTHENTICATED: who are you", 1)));
}

}  // namespace
}  // namespace curtail
