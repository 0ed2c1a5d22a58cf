// SPDX-License-Identifier: Apache-2.0
//
// The `curtail load` command against a service whose response time is known: what it reports is compared with what
// the service's log and queueing theory say. Intervals are of 99.9 % confidence, as a test may fail by chance only
// once in a while; seeds are fixed and printed. What timers, the network and a busy machine may add is Allowance().
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "curtail/base/clock.h"
#include "gtest/gtest.h"
#include "load_run.h"
#include "target.h"
#include "truth.h"

namespace curtail::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A histogram's value is at most so much above the true one.
constexpr double kBucketError = 1.0 / 128;
constexpr int kVoid = 98;

// Lateness of a send, of the network and of a reply together, at a percentile; nothing is ever early. On a machine with
// other work all threads wait for a CPU now and then: how long, the service's own timers tell.
double AllowanceUs(const std::vector<ServedRequest>& log) {
  Nanos latest{0};
  for (const ServedRequest& one : log) latest = std::max(latest, one.ended - one.began - one.drawn);
  return 5'000 + 2 * InMicros(latest);
}

// The latencies of requests that are due every `gap`, by when the service ended them. The first due time is taken from
// the request that reached it fastest, so that they are too small by what that took.
constexpr double kFastestUs = 1'000;
std::vector<Nanos> LatenciesIn(const std::vector<ServedRequest>& log, Nanos gap, TimePoint* start) {
  *start = TimePoint::max();
  for (size_t i = 0; i < log.size(); ++i) {
    *start = std::min(*start, log[i].began - gap * static_cast<int64_t>(i));
  }
  std::vector<Nanos> latencies;
  for (size_t i = 0; i < log.size(); ++i) {
    latencies.push_back(log[i].ended - (*start + gap * static_cast<int64_t>(i)));
  }
  return latencies;
}

std::unique_ptr<Target> StartTarget(const TargetOptions& options) {
  absl::StatusOr<std::unique_ptr<Target>> target = Target::Start(options);
  if (!target.ok()) {
    ADD_FAILURE() << target.status();
    return nullptr;
  }
  return *std::move(target);
}

// Runs `curtail load` against the target; a failure of the test when there is no result.
LoadRun MustRun(const Target& target, std::vector<std::string> words, std::optional<int> cpu = std::nullopt,
                int nice = 0) {
  words.insert(words.begin(), {target.address(), "--method", kTargetMethod, "--warmup", "0ms"});
  absl::StatusOr<LoadRun> run = RunLoad(std::move(words), cpu, nice);
  if (!run.ok()) {
    ADD_FAILURE() << run.status();
    return {};
  }
  std::cout << run->process.out << run->process.err;
  return *std::move(run);
}

void ExpectTrusted(const LoadRun& run) {
  EXPECT_TRUE(run.valid) << run.invalid_reasons;
  EXPECT_EQ(run.process.exit_code, 0);
}

// `measured` is `truth` and at most the allowance more.
void ExpectTruth(double measured_us, double truth_us, double allowance_us, const char* what) {
  EXPECT_GE(measured_us, truth_us * (1 - 1e-9)) << what;
  EXPECT_LE(measured_us, truth_us * (1 + kBucketError) + allowance_us) << what;
}

// ----- (a) many at once, exponential service times ------------------------------------------------------------------

class ExponentialService : public testing::Test {
 protected:
  static constexpr Nanos kMean = milliseconds(50);

  void SetUp() override {
    // 20 in flight on average; more than 64 have a probability of 1e-14.
    target_ = StartTarget({.workers = 64, .service = kMean, .exponential = true, .seed = 20240229});
    ASSERT_NE(target_, nullptr);
    run_ = MustRun(*target_, {"--rps", "400", "--duration", "10s", "--seed", "7"});
    log_ = LastOf(target_->TakeLog(), run_.scheduled);
  }

  // The run's samples that bound the distribution's percentile lie around it.
  void ExpectInterval(double percent) {
    const Ranks ranks = PercentileRanks(percent, run_.scheduled, 0.999);
    ASSERT_GT(ranks.low, 0u);
    ASSERT_LE(ranks.high, run_.scheduled);
    const double quantile = -InMicros(kMean) * std::log1p(-percent / 100);
    EXPECT_GE(run_.ValueAtRank(ranks.high), quantile) << "p" << percent;
    EXPECT_LE(run_.ValueAtRank(ranks.low), quantile * (1 + kBucketError) + AllowanceUs(log_))
        << "p" << percent;
  }

  std::unique_ptr<Target> target_;
  LoadRun run_;
  std::vector<ServedRequest> log_;
};

TEST_F(ExponentialService, PercentilesAreTheDrawnOnesAndTheDistributions) {
  ExpectTrusted(run_);
  EXPECT_EQ(run_.failed, 0u);
  ASSERT_GT(run_.scheduled, 3500u);
  ASSERT_EQ(log_.size(), run_.scheduled);
  const std::vector<Nanos> drawn = DrawnTimes(log_);
  ExpectTruth(run_.p50_us, InMicros(PercentileOf(drawn, 50)), AllowanceUs(log_), "p50");
  ExpectTruth(run_.p90_us, InMicros(PercentileOf(drawn, 90)), AllowanceUs(log_), "p90");
  ExpectTruth(run_.p99_us, InMicros(PercentileOf(drawn, 99)), AllowanceUs(log_), "p99");
  for (const double percent : {50.0, 90.0, 99.0}) ExpectInterval(percent);
}

// ----- (b) one thread that stalls once ------------------------------------------------------------------------------

// Requests are due every 8 ms and take 4 ms; one stalls for 200 ms. The k-th after it is answered (204 - 4 k) ms late,
// so 50 are late, 39 of them by more than 50 ms, and of 500 requests the 6th highest, the p99, took 184 ms. A
// generator that waits for replies would see one.
TEST(Stall, ShowsInEveryRequestThatWasDueMeanwhile) {
  constexpr Nanos kGap = milliseconds(8);
  const std::unique_ptr<Target> target =
      StartTarget({.service = milliseconds(4), .stall_at = 200, .stall = milliseconds(200)});
  ASSERT_NE(target, nullptr);
  const LoadRun run = MustRun(*target, {"--rps", "125", "--arrivals", "constant", "--duration", "4s"});
  ASSERT_GE(run.scheduled, 499u);
  EXPECT_EQ(run.sent, run.scheduled);
  EXPECT_EQ(run.failed, 0u);
  const std::vector<ServedRequest> log = LastOf(target->TakeLog(), run.scheduled);
  ASSERT_EQ(log.size(), run.scheduled);
  TimePoint start;
  const std::vector<Nanos> truth = LatenciesIn(log, kGap, &start);
  const double allowance_us = kFastestUs + AllowanceUs(log);
  ExpectTruth(run.p99_us, InMicros(PercentileOf(truth, 99)) - kFastestUs, allowance_us, "p99");
  ExpectTruth(run.max_us, InMicros(PercentileOf(truth, 100)) - kFastestUs, allowance_us, "max");
  EXPECT_GE(run.p99_us, 184'000);
  const auto late = static_cast<uint64_t>(
      std::count_if(truth.begin(), truth.end(), [](Nanos t) { return t > milliseconds(50); }));
  EXPECT_GE(late, 39u);
  // A request more or less at the edge of the bucket, and as many as become due in the time that is allowed.
  EXPECT_GE(run.CountAbove(50'000) + 1, late);
  EXPECT_LE(static_cast<double>(run.CountAbove(50'000)),
            static_cast<double>(late) + 1 + allowance_us / InMicros(kGap));
}

// ----- (c) one thread, overloaded -----------------------------------------------------------------------------------

// Requests are due every `gap` and take `service`, longer than that: a request due at t waits t (service / gap - 1), so
// those that end at T took T (1 - gap / service), until they take longer than the timeout.
class Overload : public testing::Test {
 protected:
  static constexpr double kRate = 260;
  static constexpr Nanos kGap{static_cast<int64_t>(1e9 / kRate)};
  static constexpr Nanos kService = milliseconds(5);

  void SetUp() override {
    target_ = StartTarget({.service = kService});
    ASSERT_NE(target_, nullptr);
    run_ = MustRun(*target_, {"--rps", absl::StrCat(kRate), "--arrivals", "constant", "--duration", "6s"});
    log_ = target_->TakeLog();
    ASSERT_GT(log_.size(), 300u);
    log_.erase(log_.begin());  // the call that tries the connection
    latencies_ = LatenciesIn(log_, kGap, &start_);
  }

  TimePoint EndOf(const LoadSecond& second) const {
    return start_ + Nanos(static_cast<int64_t>(second.end_s * 1e9));
  }

  // The median of the requests that ended in this second, and how many had not ended at its end.
  double MedianUs(const LoadSecond& second) const {
    const TimePoint end = EndOf(second);
    const TimePoint begin = end - Nanos(static_cast<int64_t>(second.length_s * 1e9));
    std::vector<Nanos> ended;
    for (size_t i = 0; i < log_.size(); ++i) {
      if (log_[i].ended > begin && log_[i].ended <= end) ended.push_back(latencies_[i]);
    }
    return InMicros(PercentileOf(ended, 50));
  }
  double Waiting(const LoadSecond& second) const {
    const auto ended = std::count_if(log_.begin(), log_.end(),
                                     [&](const ServedRequest& one) { return one.ended <= EndOf(second); });
    return kRate * second.end_s - static_cast<double>(ended);
  }

  std::unique_ptr<Target> target_;
  LoadRun run_;
  std::vector<ServedRequest> log_;
  std::vector<Nanos> latencies_;
  TimePoint start_;
};

TEST_F(Overload, ShowsTheQueueGrowing) {
  ExpectTrusted(run_);
  EXPECT_NEAR(run_.sent_per_s, kRate, 0.01 * kRate);
  ASSERT_GE(run_.series.size(), 5u);
  for (size_t i = 0; i < 3; ++i) {
    const LoadSecond& second = run_.series[i];
    const double middle_s = second.end_s - second.length_s / 2;
    // Nothing takes less than it should.
    EXPECT_GE(second.p50_us, 0.95e6 * middle_s * (1 - 1e6 / (kRate * InMicros(kService)))) << "second " << i;
    const double median_us = MedianUs(second);
    EXPECT_NEAR(second.p50_us, median_us, 0.05 * median_us + AllowanceUs(log_)) << "second " << i;
    const double waiting = Waiting(second);
    EXPECT_GT(waiting, 0.9 * second.end_s * (kRate - 1e6 / InMicros(kService))) << "second " << i;
    EXPECT_NEAR(static_cast<double>(second.in_flight), waiting,
                0.05 * waiting + 4 + kRate * AllowanceUs(log_) / 1e6)
        << "second " << i;
    EXPECT_NEAR(static_cast<double>(second.sent), kRate * second.length_s, 0.03 * kRate) << "second " << i;
  }
  EXPECT_GT(run_.deadline_exceeded, 0u) << "after 3.3 s a request waits for longer than the timeout of 1 s";
  EXPECT_EQ(run_.deadline_exceeded, run_.failed);
}

// ----- (d) a generator that gets no CPU -----------------------------------------------------------------------------

TEST(Starved, DeclaresItsNumbersVoid) {
  const std::unique_ptr<Target> target = StartTarget({});
  ASSERT_NE(target, nullptr);
  const int cpu = AnyCpu();
  std::vector<std::unique_ptr<deploy::Process>> busy;
  for (int i = 0; i < 3; ++i) {
    absl::StatusOr<std::unique_ptr<deploy::Process>> one = StartBusyProcess(cpu);
    ASSERT_TRUE(one.ok()) << one.status();
    busy.push_back(*std::move(one));
  }
  const LoadRun run = MustRun(*target, {"--rps", "1000", "--duration", "2s", "--no-realtime"}, cpu, 19);
  EXPECT_FALSE(run.valid);
  EXPECT_EQ(run.process.exit_code, kVoid);
  EXPECT_NE(run.process.out.find("VOID"), std::string::npos);
  EXPECT_GT(run.send_lag_p99_us, 50);
}

}  // namespace
}  // namespace curtail::bench
