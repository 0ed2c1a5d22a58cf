// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/drive/rate_curve.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "curtail/base/rng.h"
#include "gtest/gtest.h"

namespace curtail {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

RateCurve Make(std::vector<RatePoint> points, Nanos length) {
  absl::StatusOr<RateCurve> curve = RateCurve::Make(std::move(points), length);
  EXPECT_TRUE(curve.ok()) << curve.status();
  return *std::move(curve);
}

std::string ErrorOf(std::vector<RatePoint> points, Nanos length) {
  const absl::Status status = RateCurve::Make(std::move(points), length).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return status.ToString();
}

TEST(RateCurve, ConstantHasOneRate) {
  const absl::StatusOr<RateCurve> curve = RateCurve::Constant(250, seconds(8));
  ASSERT_TRUE(curve.ok()) << curve.status();
  EXPECT_DOUBLE_EQ(curve->total(), 2000);
  EXPECT_DOUBLE_EQ(curve->mean_per_s(), 250);
  EXPECT_DOUBLE_EQ(curve->peak_per_s(), 250);
  EXPECT_DOUBLE_EQ(curve->RateAt(seconds(3)), 250);
  EXPECT_DOUBLE_EQ(curve->Expected(seconds(3)), 750);
  EXPECT_EQ(curve->TimeOf(750), seconds(3));
  EXPECT_EQ(curve->RateAt(seconds(8)), 0) << "the end is not within";
  EXPECT_EQ(curve->RateAt(-seconds(1)), 0);
}

TEST(RateCurve, ARampIsTheIntegralOfALine) {
  // 100/s to 500/s in 10 s: Expected(t) = 100 t + 20 t^2.
  const RateCurve ramp = Make({{Nanos(0), 100}, {seconds(10), 500}}, seconds(10));
  EXPECT_DOUBLE_EQ(ramp.total(), 3000);
  EXPECT_DOUBLE_EQ(ramp.Expected(seconds(4)), 720);
  EXPECT_NEAR(ramp.RateAt(milliseconds(2500)), 200, 1e-9);
  EXPECT_NEAR(static_cast<double>(ramp.TimeOf(720).count()), 4e9, 2);
  EXPECT_DOUBLE_EQ(ramp.peak_per_s(), 500);
}

TEST(RateCurve, TwoPointsAtOneTimeMakeAStep) {
  const RateCurve step = Make({{Nanos(0), 100}, {seconds(5), 100}, {seconds(5), 900}}, seconds(10));
  EXPECT_DOUBLE_EQ(step.RateAt(seconds(5) - Nanos(1)), 100);
  EXPECT_DOUBLE_EQ(step.RateAt(seconds(5)), 900);
  EXPECT_DOUBLE_EQ(step.Expected(seconds(5)), 500);
  EXPECT_DOUBLE_EQ(step.total(), 5000);
}

TEST(RateCurve, IsLevelOutsideItsPointsAndCutAtItsLength) {
  const RateCurve level = Make({{seconds(2), 10}, {seconds(4), 30}}, seconds(6));
  EXPECT_DOUBLE_EQ(level.RateAt(Nanos(0)), 10);
  EXPECT_DOUBLE_EQ(level.RateAt(seconds(5)), 30);
  EXPECT_DOUBLE_EQ(level.total(), 20 + 40 + 60);
  // Cut in the middle of a slope: it still rises to 20 there.
  const RateCurve cut = Make({{seconds(2), 10}, {seconds(4), 30}, {seconds(5), 0}}, seconds(3));
  EXPECT_DOUBLE_EQ(cut.total(), 20 + 15);
  EXPECT_EQ(cut.length(), seconds(3));
  // A step at the very end is after it; a point beyond it may be the only one.
  EXPECT_DOUBLE_EQ(Make({{Nanos(0), 5}, {seconds(3), 5}, {seconds(3), 900}}, seconds(3)).total(), 15);
  EXPECT_DOUBLE_EQ(Make({{seconds(9), 7}}, seconds(3)).total(), 21);
}

TEST(RateCurve, NothingIsExpectedWhileTheRateIsZero) {
  const RateCurve gap = Make(
      {{Nanos(0), 100}, {seconds(1), 100}, {seconds(1), 0}, {seconds(3), 0}, {seconds(3), 100}}, seconds(4));
  EXPECT_DOUBLE_EQ(gap.Expected(seconds(2)), 100);
  EXPECT_EQ(gap.RateAt(seconds(2)), 0);
  EXPECT_EQ(gap.TimeOf(100), seconds(1)) << "the earliest time";
  EXPECT_GE(gap.TimeOf(100.001), seconds(3));
  EXPECT_EQ(gap.TimeOf(1e9), seconds(4));
  EXPECT_EQ(gap.TimeOf(0), Nanos(0));
}

TEST(RateCurve, TimeOfIsTheInverseOfExpectedForAnyCurve) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    std::vector<RatePoint> points;
    Nanos at(0);
    for (int i = 0; i < 20; ++i) {
      points.push_back({at, rng.Below(4) == 0 ? 0 : rng.Uniform01() * std::pow(10, rng.Below(6))});
      if (rng.Below(5) == 0) points.push_back({at, rng.Uniform01() * 1000});
      at += Nanos(1 + static_cast<int64_t>(rng.Below(1'000'000'000)));
    }
    const RateCurve curve = Make(points, at);
    double last = 0, sum = 0;
    for (const RateCurve::Piece& piece : curve.pieces()) sum += piece.area;
    EXPECT_NEAR(sum, curve.total(), 1e-9 * curve.total());
    for (int i = 0; i <= 200; ++i) {
      const double requests = curve.total() * i / 200;
      const Nanos time = curve.TimeOf(requests);
      const double ns = curve.peak_per_s() / 1e9;  // what one ns of rounding may add
      EXPECT_NEAR(curve.Expected(time), requests, 2 * ns + 1e-9 * curve.total()) << i;
      EXPECT_GE(curve.Expected(time + Nanos(1)), last);
      last = curve.Expected(time);
    }
  }
}

TEST(RateCurve, ScalesRatesAndTimes) {
  const RateCurve curve = Make({{Nanos(0), 100}, {seconds(5), 300}, {seconds(5), 50}}, seconds(10));
  const absl::StatusOr<RateCurve> scaled = curve.Scaled(2, 0.1);
  ASSERT_TRUE(scaled.ok()) << scaled.status();
  EXPECT_EQ(scaled->length(), seconds(1));
  EXPECT_DOUBLE_EQ(scaled->peak_per_s(), 600);
  EXPECT_NEAR(scaled->total(), curve.total() * 0.2, 1e-9 * curve.total());
  EXPECT_NEAR(scaled->RateAt(milliseconds(250)), 400, 1e-6);
  EXPECT_NEAR(scaled->RateAt(milliseconds(500)), 100, 1e-6);
  // So small that all corners fall together.
  const absl::StatusOr<RateCurve> tiny = curve.Scaled(1, 1e-10);
  ASSERT_TRUE(tiny.ok()) << tiny.status();
  EXPECT_EQ(tiny->length(), Nanos(1));
  EXPECT_EQ(curve.Scaled(1, 1e-12).status().code(), absl::StatusCode::kInvalidArgument);
  for (const double factor : {0.0, -1.0, std::nan(""), HUGE_VAL, 1e300}) {
    EXPECT_FALSE(curve.Scaled(factor, 1).ok()) << factor;
    EXPECT_FALSE(curve.Scaled(1, factor).ok()) << factor;
  }
}

TEST(RateCurve, ALeadInIsAtTheFirstRate) {
  const RateCurve ramp = Make({{Nanos(0), 100}, {seconds(10), 500}}, seconds(10));
  const absl::StatusOr<RateCurve> warmed = ramp.WithLeadIn(seconds(2));
  ASSERT_TRUE(warmed.ok()) << warmed.status();
  EXPECT_EQ(warmed->length(), seconds(12));
  EXPECT_DOUBLE_EQ(warmed->RateAt(seconds(1)), 100);
  EXPECT_NEAR(warmed->Expected(seconds(6)), 200 + 720, 1e-6);
  EXPECT_NEAR(warmed->total(), 3200, 1e-6);
  EXPECT_EQ(ramp.WithLeadIn(Nanos(0))->length(), seconds(10));
  EXPECT_EQ(ramp.WithLeadIn(Nanos(0))->total(), ramp.total());
  EXPECT_EQ(ramp.WithLeadIn(-seconds(1)).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ramp.WithLeadIn(Nanos::max()).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(RateCurve, RefusesWhatCannotBe) {
  EXPECT_NE(ErrorOf({}, seconds(1)).find("no points"), std::string::npos);
  EXPECT_NE(
      ErrorOf({{seconds(1), 1}, {seconds(3), 1}, {seconds(2), 1}}, seconds(5)).find("point 2 is at 2 s"),
      std::string::npos);
  EXPECT_NE(ErrorOf({{-seconds(1), 1}}, seconds(5)).find("before time 0"), std::string::npos);
  EXPECT_NE(ErrorOf({{seconds(1), 1}, {seconds(1), 2}, {seconds(1), 3}}, seconds(5)).find("third"),
            std::string::npos);
  for (const double rate : {-1.0, std::nan(""), HUGE_VAL, -HUGE_VAL, 1.1e7}) {
    EXPECT_NE(ErrorOf({{Nanos(0), 1}, {seconds(1), rate}}, seconds(5)).find("point 1 has a rate"),
              std::string::npos)
        << rate;
    EXPECT_FALSE(RateCurve::Constant(rate, seconds(1)).ok());
  }
  EXPECT_FALSE(RateCurve::Constant(0, seconds(1)).ok());
  EXPECT_NE(ErrorOf({{Nanos(0), 0}, {seconds(1), 0}}, seconds(5)).find("0 all the time"), std::string::npos);
  EXPECT_NE(ErrorOf({{Nanos(0), 0}, {seconds(5), 0}, {seconds(5), 7}}, seconds(5)).find("0 all the time"),
            std::string::npos)
      << "a step at the end never comes";
  for (const Nanos length : {Nanos(0), Nanos(-1), Nanos::min(), Nanos::max()}) {
    EXPECT_FALSE(ErrorOf({{Nanos(0), 1}}, length).empty());
  }
  EXPECT_FALSE(ErrorOf(std::vector<RatePoint>(RateCurve::kMaxPoints + 1, {Nanos(0), 1}), seconds(1)).empty());
}

}  // namespace
}  // namespace curtail
