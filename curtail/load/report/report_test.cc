// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/report/report.h"

#include "curtail/load/drive/recorder.h"
#include "curtail/load/report/report_csv.h"
#include "curtail/load/report/report_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

// 1000 requests of 1 to 3 ms; every 100th fails with an error text that is no UTF-8.
LoadResult EvenRun() {
  Recorder recorder(SamplePlan(), "recall@10");
  for (int i = 0; i < 1000; ++i) {
    const Nanos due = seconds(2) + milliseconds(10) * i;
    recorder.Sent(due, due + microseconds(4));
    const absl::Status status = i % 100 == 0 ? absl::AbortedError("bad \xff text") : absl::OkStatus();
    recorder.Done(due, due + microseconds(4), due + milliseconds(1) + microseconds(2 * i), status, 0.95);
  }
  recorder.Tick(seconds(12), 1000, 0);
  return recorder.Finish(seconds(12), false, milliseconds(30), milliseconds(10));
}

TEST(ReportCsv, HasALineAnInterval) {
  LoadReport report;
  report.runs = {EvenRun(), EvenRun()};
  report.runs[1].series[0].config = "SIB1";
  const std::string csv = ReportCsv(report);
  EXPECT_THAT(csv, testing::StartsWith(
                       "run,end_s,length_s,due,sent,ok,failed,p50_us,p99_us,in_flight,config\n1,12,"));
  EXPECT_THAT(csv, HasSubstr("\n2,12,12,1000,1000,990,10,"));
  EXPECT_THAT(csv, testing::EndsWith(",0,SIB1\n"));
}

TEST(PlanText, NamesTheNumberOfRequestsThatEndsTheRun) {
  LoadPlan plan = SamplePlan();
  plan.requests = 500;
  EXPECT_THAT(PlanText(plan), HasSubstr("2 s warm-up, then 500 requests; timeout 1 s"));
}

TEST(PlanText, IsOneLineThatNamesTheSchedule) {
  LoadPlan plan = SamplePlan();
  EXPECT_EQ(PlanText(plan),
            "/a.B/C at 127.0.0.1:7000: open loop, poisson, 100 a second, seed 9; 1 connection, 1 thread; 2 s "
            "warm-up, "
            "then 10 s; timeout 1 s");
  plan.arrivals = "closed";
  plan.outstanding = 8;
  EXPECT_THAT(PlanText(plan), HasSubstr("CLOSED LOOP of 8"));
}

TEST(SummaryText, ShowsTableCodesAndScore) {
  const std::string text = SummaryText(EvenRun());
  EXPECT_THAT(text, HasSubstr("1000 due (100.0/s), 1000 sent (100.0/s), 990 ok (99.0/s), 10 failed (1 %)"));
  EXPECT_THAT(text, HasSubstr("latency (ms)"));
  EXPECT_THAT(text, HasSubstr("p99.9 too few samples"));
  EXPECT_THAT(text, HasSubstr("ABORTED 10, OK 990"));
  EXPECT_THAT(text, HasSubstr("10 x ABORTED: bad"));
  EXPECT_THAT(text, HasSubstr("recall@10     mean 0.9500"));
  EXPECT_THAT(text, HasSubstr("20.0 us CPU a request, and 10.0 us waiting"));
  EXPECT_THAT(text, Not(HasSubstr("VOID")));
  EXPECT_THAT(text, HasSubstr(std::string(40, '#')));
  EXPECT_THAT(text, Not(HasSubstr(std::string(41, '#'))));
}

TEST(SummaryText, CountsWhatWasRetriedWhereThatWasAskedFor) {
  LoadResult run = EvenRun();
  EXPECT_THAT(SummaryText(run), Not(HasSubstr("retried")));
  EXPECT_THAT(PlanText(run.plan), Not(HasSubstr("retr")));
  run.plan.retries = 1;
  EXPECT_THAT(SummaryText(run), HasSubstr("\nretried       0 requests, by 0 calls\n"));
  EXPECT_THAT(PlanText(run.plan), testing::EndsWith("timeout 1 s; up to 1 retry"));
  run.plan.retries = 2;
  run.retried = 12, run.retries = 13;
  EXPECT_THAT(SummaryText(run), HasSubstr("\nretried       12 requests, by 13 calls\n"));
  EXPECT_THAT(PlanText(run.plan), HasSubstr("up to 2 retries"));
}

TEST(SummaryText, HasARowAMethodOfAMix) {
  const LoadResult run = SampleMix().runs.front();
  EXPECT_THAT(PlanText(run.plan), testing::StartsWith("2 methods"));
  const std::string text = SummaryText(run);
  EXPECT_THAT(text,
              HasSubstr("\nmethods (ms)      count    failed       p50       p99       max\n  Balance "));
  EXPECT_THAT(text, HasSubstr("of every one a failed request counts as at least "));
}

TEST(SummaryText, HasTheChecksThatRepliesFailed) {
  const LoadResult run = SampleChecked().runs.front();
  EXPECT_THAT(PlanText(run.plan), HasSubstr("timeout 1 s; 2 checks of each reply"));
  EXPECT_THAT(SummaryText(run), HasSubstr("\nreplies       99 checked, 3 failed a check (3.03 %)\n"
                                          "              3 x .name: it is absent\n"));
  EXPECT_THAT(SummaryText(EvenRun()), Not(HasSubstr("\nreplies")));
}

TEST(SummaryText, HasARowAStepOfAJourney) {
  const LoadResult run = SampleJourneys().runs.front();
  EXPECT_THAT(PlanText(run.plan), HasSubstr("(journey: log-in, pay)"));
  const std::string text = SummaryText(run);
  EXPECT_THAT(text, testing::StartsWith("journeys      1010 due"));
  EXPECT_THAT(text, HasSubstr("\n  with pauses         5    3000.0"));
  EXPECT_THAT(text,
              HasSubstr("\nsteps (ms)        count    failed       p50       p99       max\n  log-in "));
  EXPECT_THAT(SummaryText(EvenRun()), Not(HasSubstr("steps (ms)")));
}

TEST(SummaryText, RowsOfTheHistogramDiffer) {
  LoadResult r = EvenRun();
  r.all.Clear();
  for (int i = 0; i < 100; ++i) r.all.Record(seconds(1) + microseconds(i));  // timeouts
  const std::string text = SummaryText(r);
  std::vector<std::string> rows;
  for (size_t at = 0; (at = text.find("up to", at)) != std::string::npos; ++at)
    rows.push_back(text.substr(at, text.find(" s ", at) - at));
  EXPECT_THAT(rows, testing::SizeIs(1)) << text;
  EXPECT_THAT(text, HasSubstr(" 100 " + std::string(40, '#')));
  EXPECT_THAT(text, HasSubstr("p99 too few samples (100 of 563)"));
}

TEST(SummaryText, SaysWhyARunIsVoidOrPartial) {
  LoadResult r = EvenRun();
  r.interrupted = true;
  r.sent_per_s = 50;
  Judge(r);
  const std::string text = SummaryText(r);
  EXPECT_THAT(text, HasSubstr("VOID          sent 50.0 requests a second"));
  EXPECT_THAT(text, HasSubstr("INTERRUPTED"));
}

TEST(SummaryText, EmptyResultDoesNotBreak) {
  LoadResult empty;
  empty.plan = SamplePlan();
  Judge(empty);
  EXPECT_THAT(SummaryText(empty), HasSubstr("VOID"));
}

}  // namespace
}  // namespace curtail
