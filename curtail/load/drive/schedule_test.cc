// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/drive/schedule.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "curtail/base/rng.h"
#include "curtail/load/report/statistics.h"
#include "gtest/gtest.h"

namespace curtail {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

// The Anderson-Darling statistic of 1 in 1000 true samples is above this (Stephens 1974). Seeds are fixed, so
// each check holds or it does not; no seed was picked for it.
constexpr double kCritical = 6.0;

Schedule Make(std::vector<RatePoint> points, Nanos length, uint64_t seed, Gaps gaps = Gaps::kPoisson) {
  absl::StatusOr<RateCurve> curve = RateCurve::Make(std::move(points), length);
  EXPECT_TRUE(curve.ok()) << curve.status();
  absl::StatusOr<Schedule> schedule = Schedule::Make(*std::move(curve), gaps, seed);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return *std::move(schedule);
}

Schedule Steady(double rate, Nanos length, uint64_t seed, Gaps gaps = Gaps::kPoisson) {
  return Make({{Nanos(0), rate}}, length, seed, gaps);
}

std::vector<Nanos> All(const Schedule& schedule) {
  std::vector<Nanos> all;
  Arrivals arrivals = schedule.arrivals();
  while (const std::optional<Nanos> due = arrivals.Next()) all.push_back(*due);
  return all;
}

// The gaps in units of requests expected within them: exponential with mean 1 for every shape, if the time
// change is right.
std::vector<double> UnitGaps(const Schedule& schedule) {
  std::vector<double> gaps;
  double last = 0;
  for (const Nanos due : All(schedule)) {
    const double now = schedule.curve().Expected(due);
    // Times are whole ns; half of one keeps a gap of zero finite in the logarithm.
    gaps.push_back(std::max(schedule.curve().RateAt(due) * 0.5e-9, now - last));
    last = now;
  }
  return gaps;
}

struct NamedShape {
  std::string name;
  std::vector<RatePoint> points;
};

std::vector<NamedShape> Shapes() {
  std::vector<NamedShape> shapes;
  shapes.push_back({"level", {{Nanos(0), 2000}}});
  shapes.push_back({"step", {{Nanos(0), 200}, {seconds(5), 200}, {seconds(5), 4000}}});
  shapes.push_back({"ramp up", {{Nanos(0), 0}, {seconds(10), 4000}}});
  shapes.push_back({"ramp down", {{Nanos(0), 4000}, {seconds(10), 0}}});
  shapes.push_back(
      {"pause",
       {{Nanos(0), 3000}, {seconds(3), 3000}, {seconds(3), 0}, {seconds(7), 0}, {seconds(7), 3000}}});
  std::vector<RatePoint> teeth;
  for (int i = 0; i <= 2000; ++i) teeth.push_back({milliseconds(5) * i, i % 2 == 0 ? 100.0 : 4000.0});
  shapes.push_back({"teeth shorter than a gap", teeth});
  return shapes;
}

TEST(Schedule, SameSeedSameArrivals) {
  EXPECT_EQ(All(Steady(1000, seconds(5), 11)), All(Steady(1000, seconds(5), 11)));
  EXPECT_NE(All(Steady(1000, seconds(5), 11)), All(Steady(1000, seconds(5), 12)));
}

TEST(Schedule, ACopiedReaderGoesOnFromWhereItWas) {
  const Schedule schedule = Steady(1000, seconds(1), 4);
  Arrivals first = schedule.arrivals();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(first.Next().has_value());
  Arrivals second = first;
  while (const std::optional<Nanos> due = first.Next()) EXPECT_EQ(second.Next(), due);
  EXPECT_EQ(second.Next(), std::nullopt);
  EXPECT_EQ(second.Next(), std::nullopt) << "the end stays the end";
}

TEST(Schedule, IsSortedAndWithinItsLength) {
  for (const NamedShape& shape : Shapes()) {
    for (const Gaps gaps : {Gaps::kPoisson, Gaps::kConstant}) {
      SCOPED_TRACE(shape.name + ", seed 3");
      const std::vector<Nanos> all = All(Make(shape.points, seconds(10), 3, gaps));
      ASSERT_FALSE(all.empty());
      EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
      EXPECT_GE(all.front(), Nanos(0));
      EXPECT_LT(all.back(), seconds(10));
    }
  }
}

TEST(Schedule, UnitGapsAreExponentialForEveryShape) {
  for (const NamedShape& shape : Shapes()) {
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      SCOPED_TRACE(testing::Message() << shape.name << ", seed " << seed);
      const Schedule schedule = Make(shape.points, seconds(10), seed);
      const std::vector<double> gaps = UnitGaps(schedule);
      EXPECT_LT(AndersonDarlingExponential(gaps), kCritical);
      const double total = schedule.curve().total();
      EXPECT_NEAR(static_cast<double>(gaps.size()), total, 4 * std::sqrt(total));
    }
  }
}

TEST(Schedule, TheTestTellsExponentialFromOtherGaps) {
  EXPECT_GT(AndersonDarlingExponential(UnitGaps(Steady(2000, seconds(10), 1, Gaps::kConstant))), 100.0);
  std::vector<double> slower = UnitGaps(Steady(2000, seconds(10), 1));
  for (double& gap : slower) gap *= 1.1;
  EXPECT_GT(AndersonDarlingExponential(slower), kCritical) << "10 % off the rate";
  // A ramp taken for a level load of the same mean.
  const Schedule ramp = Make({{Nanos(0), 0}, {seconds(10), 4000}}, seconds(10), 1);
  std::vector<double> level;
  Nanos last(0);
  for (const Nanos due : All(ramp)) {
    level.push_back(std::max(1e-9, static_cast<double>((due - last).count()) * 2000 / 1e9));
    last = due;
  }
  EXPECT_GT(AndersonDarlingExponential(level), 100.0);
}

TEST(Schedule, EachPartOfAShapeGetsItsShare) {
  for (const NamedShape& shape : Shapes()) {
    for (uint64_t seed = 21; seed <= 25; ++seed) {
      SCOPED_TRACE(testing::Message() << shape.name << ", seed " << seed);
      const Schedule schedule = Make(shape.points, seconds(10), seed);
      const std::vector<Nanos> all = All(schedule);
      for (Nanos from(0); from < seconds(10); from += milliseconds(500)) {
        const Nanos to = from + milliseconds(500);
        const double expected = schedule.curve().Expected(to) - schedule.curve().Expected(from);
        const auto count =
            std::lower_bound(all.begin(), all.end(), to) - std::lower_bound(all.begin(), all.end(), from);
        // Poisson: of 600 counts none is 5 standard deviations off; the 3 is for the few of a small mean.
        EXPECT_NEAR(static_cast<double>(count), expected, 5 * std::sqrt(expected) + (expected > 0 ? 3 : 0))
            << "from " << from.count();
      }
    }
  }
}

TEST(Schedule, PoissonGapsAreIndependent) {
  const std::vector<double> gaps = UnitGaps(Steady(2000, seconds(10), 5));
  double covariance = 0, variance = 0;
  for (size_t i = 0; i + 1 < gaps.size(); ++i) {
    covariance += (gaps[i] - 1) * (gaps[i + 1] - 1);
    variance += (gaps[i] - 1) * (gaps[i] - 1);
  }
  EXPECT_LT(std::abs(covariance / variance), 0.03) << "seed 5";
}

TEST(Schedule, ConstantGapsKeepTheRateExactly) {
  const std::vector<Nanos> all = All(Steady(3, seconds(100), 1, Gaps::kConstant));  // a gap of no whole ns
  ASSERT_EQ(all.size(), 300u);
  EXPECT_EQ(all[0], Nanos(166'666'666));
  EXPECT_NEAR(static_cast<double>(all[149].count()), (150 - 0.5) / 3 * 1e9, 2);
  // The third arrival would be at the very end.
  EXPECT_EQ(All(Steady(5, milliseconds(500), 1, Gaps::kConstant)).size(), 2u);
}

TEST(Schedule, ConstantGapsFollowTheShape) {
  // Expected(t) = 20 t^2: arrival i is due at sqrt((i + 1/2) / 20), whatever the seed.
  const std::vector<Nanos> all =
      All(Make({{Nanos(0), 0}, {seconds(10), 400}}, seconds(10), 9, Gaps::kConstant));
  ASSERT_EQ(all.size(), 2000u);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(all[i].count()), std::sqrt((static_cast<double>(i) + 0.5) / 20) * 1e9, 2)
        << i;
  }
}

TEST(Schedule, RoundingLeadsNoArrivalToTheEnd) {
  // Ramps on which a little over half a request is expected, whose one arrival is due just before the end.
  Rng rng(1);
  int arrivals = 0;
  for (int i = 0; i < 2000; ++i) {
    const Nanos length(1 + static_cast<int64_t>(rng.Below(1'000'000'000)));
    const absl::StatusOr<RateCurve> ramp =
        RateCurve::Make({{Nanos(0), rng.Uniform01()}, {length, rng.Uniform01()}}, length);
    ASSERT_TRUE(ramp.ok()) << ramp.status();
    absl::StatusOr<RateCurve> half = ramp->Scaled(0.5 / ramp->total() * (1 + 3e-16), 1);
    ASSERT_TRUE(half.ok()) << half.status();
    for (const Nanos due : All(*Schedule::Make(*std::move(half), Gaps::kConstant, 1))) {
      EXPECT_LT(due, length) << "seed 1, " << i;
      ++arrivals;
    }
  }
  EXPECT_GT(arrivals, 1000);
}

TEST(Schedule, TakesSlowAndFastLoads) {
  // 3.6 requests are expected in an hour; ten seeds together, 36.
  size_t slow = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) slow += All(Steady(1e-3, hours(1), seed)).size();
  EXPECT_NEAR(static_cast<double>(slow), 36, 4 * 6) << "seeds 1 to 10";
  const Schedule fast = Steady(1e6, seconds(1), 2);
  EXPECT_NEAR(static_cast<double>(All(fast).size()), 1e6, 4e3) << "seed 2";
  EXPECT_LT(AndersonDarlingExponential(UnitGaps(Steady(1e6, milliseconds(20), 2))), kCritical) << "seed 2";
  EXPECT_TRUE(All(Steady(0.001, Nanos(1000), 1)).empty());
}

TEST(Schedule, ALongRunTakesNoMoreMemory) {
  // Ten days at 10,000/s: nothing is drawn until it is read.
  const Schedule schedule = Steady(10'000, hours(240), 6);
  Arrivals arrivals = schedule.arrivals();
  Nanos last(0);
  for (int i = 0; i < 10'000; ++i) last = arrivals.Next().value();
  EXPECT_NEAR(static_cast<double>(last.count()), 1e9, 4e7) << "seed 6";
  EXPECT_LE(sizeof(Arrivals), 128u);
}

TEST(Schedule, SaysWhatItIs) {
  const absl::StatusOr<Schedule> schedule = Schedule::Poisson(500, seconds(4), 17);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(schedule->gaps_name(), "poisson");
  EXPECT_EQ(schedule->seed(), 17u);
  EXPECT_EQ(schedule->length(), seconds(4));
  EXPECT_DOUBLE_EQ(schedule->rate_per_s(), 500);
  EXPECT_EQ(All(*schedule), All(Steady(500, seconds(4), 17)));
  EXPECT_EQ(*ParseGaps("poisson"), Gaps::kPoisson);
  EXPECT_EQ(*ParseGaps("constant"), Gaps::kConstant);
  for (const char* bad : {"", "Poisson", "uniform"}) {
    EXPECT_EQ(ParseGaps(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(Schedule, RefusesWhatCannotBe) {
  for (const double rate : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    EXPECT_EQ(Schedule::Poisson(rate, seconds(1), 1).status().code(), absl::StatusCode::kInvalidArgument)
        << rate;
  }
  EXPECT_FALSE(Schedule::Poisson(10, Nanos(0), 1).ok());
  EXPECT_FALSE(Schedule::Poisson(10, seconds(-1), 1).ok());
  const absl::Status huge = Schedule::Poisson(1e7, hours(1), 1).status();
  EXPECT_EQ(huge.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(huge.ToString().find("at most 10 billion"), std::string::npos) << huge;
}

}  // namespace
}  // namespace curtail
