// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/drive/internal/sampler.h"

#include <functional>
#include <optional>

#include "curtail/base/rng.h"
#include "curtail/load/drive/schedule.h"
#include "curtail/load/report/statistics.h"
#include "gtest/gtest.h"

namespace curtail::internal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kSeed = 11;

// Sends a whole schedule, each request `late` after it was due.
LoadChecks Play(const Schedule& schedule, Nanos late, const std::function<Nanos(uint64_t, Nanos)>& latency) {
  Sampler sampler(&schedule.curve());
  Arrivals arrivals = schedule.arrivals();
  uint64_t number = 0;
  while (const std::optional<Nanos> due = arrivals.Next()) {
    // Late sends leave in bursts.
    sampler.Sent(number, late == Nanos(0) ? *due : Nanos((due->count() / late.count() + 1) * late.count()));
    sampler.Done(number, latency(number, *due));
    ++number;
  }
  return sampler.Check(true);
}

Nanos Independent(uint64_t number, Nanos) {
  Rng rng(kSeed + number);
  return Nanos(static_cast<int64_t>(rng.Exponential(1e6)));
}

TEST(Sampler, FindsNothingWrongWithAGoodRun) {
  const Schedule schedule = *Schedule::Poisson(2000, seconds(60), kSeed);
  const LoadChecks checks = Play(schedule, Nanos(0), Independent);
  ASSERT_TRUE(checks.gaps_a2 && checks.neighbours && checks.trend);
  EXPECT_LT(*checks.gaps_a2, kAndersonDarling1Percent);
  EXPECT_NEAR(*checks.neighbours, 0, 0.1);
  EXPECT_NEAR(*checks.trend, 0, 0.1);
}

TEST(Sampler, ScalesGapsByARateThatChanges) {
  const RateCurve ramp = *RateCurve::Make({{Nanos(0), 10}, {seconds(60), 4000}}, seconds(60));
  const Schedule schedule = *Schedule::Make(ramp, Gaps::kPoisson, kSeed);
  EXPECT_LT(*Play(schedule, Nanos(0), Independent).gaps_a2, kAndersonDarling1Percent);
}

TEST(Sampler, SeesBursts) {
  const Schedule schedule = *Schedule::Poisson(2000, seconds(60), kSeed);
  EXPECT_GT(*Play(schedule, milliseconds(2), Independent).gaps_a2, 10 * kAndersonDarling1Percent);
}

TEST(Sampler, SeesAGrowingQueue) {
  const Schedule schedule = *Schedule::Poisson(2000, seconds(60), kSeed);
  const LoadChecks checks = Play(schedule, Nanos(0), [](uint64_t, Nanos due) { return due / 10; });
  EXPECT_GT(*checks.trend, 0.99);
  EXPECT_GT(*checks.neighbours, 0.99);
}

TEST(Sampler, SaysNothingOfAFewRequests) {
  const LoadChecks checks = Play(*Schedule::Poisson(50, seconds(1), kSeed), Nanos(0), Independent);
  EXPECT_FALSE(checks.gaps_a2 || checks.neighbours || checks.trend);
}

TEST(Sampler, AClosedLoopHasNoGaps) {
  Sampler sampler(nullptr);
  for (uint64_t i = 0; i < 1000; ++i) {
    sampler.Sent(i, milliseconds(i));
    sampler.Done(i, Independent(i, Nanos(0)));
  }
  const LoadChecks checks = sampler.Check(false);
  EXPECT_FALSE(checks.gaps_a2);
  EXPECT_TRUE(checks.trend);
}

}  // namespace
}  // namespace curtail::internal
