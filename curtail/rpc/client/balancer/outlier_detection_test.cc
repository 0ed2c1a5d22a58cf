// SPDX-License-Identifier: Apache-2.0
//
// Which servers a sweep ejects, and for how long, without any call or clock.
#include "curtail/rpc/client/balancer/outlier_detection.h"

#include <gtest/gtest.h>

#include "curtail/base/strings.h"
#include "curtail/rpc/client/balancer/balancer.h"

namespace curtail::internal {
namespace {

using std::chrono::seconds;

class OutlierTest : public testing::Test {
 protected:
  OutlierTest() {
    for (int i = 0; i < 10; ++i) backends_.push_back(std::make_shared<Backend>(Join("10.0.0.", i, ":80")));
  }
  // 100 calls of each server, of which `failures` of the named one fail.
  void Calls(size_t server, uint32_t failures) {
    for (size_t i = 0; i < backends_.size(); ++i) {
      const uint32_t failed = i == server ? failures : 0;
      backends_[i]->outliers.failed = failed;
      backends_[i]->outliers.succeeded = 100 - failed;
    }
  }
  void Sweep(uint64_t intervals = 1) { SweepOutliers(options_, backends_, now_, intervals, 1); }
  bool Ejected(size_t i) const { return backends_[i]->outliers.Ejected(now_) && !backends_[i]->Up(now_); }
  int CountEjected() const {
    int count = 0;
    for (size_t i = 0; i < backends_.size(); ++i) count += Ejected(i);
    return count;
  }

  Backends backends_;
  OutlierOptions options_;
  TimePoint now_{seconds(1000)};
};

TEST_F(OutlierTest, WithoutARuleNoneIsEjected) {
  Calls(3, 100);
  Sweep();
  EXPECT_EQ(CountEjected(), 0);
}

TEST_F(OutlierTest, AFailurePercentageAboveTheThresholdEjects) {
  options_.failure_percentage.emplace();
  Calls(3, 85);
  Sweep();
  EXPECT_EQ(CountEjected(), 0);
  Calls(3, 86);
  Sweep();
  EXPECT_TRUE(Ejected(3));
  EXPECT_EQ(CountEjected(), 1);
  EXPECT_EQ(backends_[3]->outliers.failed, 0u) << "the next interval begins anew";
}

TEST_F(OutlierTest, ASuccessRateFarBelowTheOthersEjects) {
  options_.success_rate.emplace();
  Calls(3, 5);  // 95 % beside nine of 100 %: 1.5 % deviation, and 3 of it below the mean
  Sweep();
  EXPECT_TRUE(Ejected(3));
  EXPECT_EQ(CountEjected(), 1);
}

TEST_F(OutlierTest, ServersThatFailAlikeAreNoOutliers) {
  options_.success_rate.emplace();
  for (const auto& backend : backends_) backend->outliers.failed = backend->outliers.succeeded = 100;
  Sweep();
  EXPECT_EQ(CountEjected(), 0);
}

TEST_F(OutlierTest, TooFewServersOrCallsSayNothing) {
  options_.failure_percentage = {.minimum_hosts = 11};
  options_.success_rate = {.minimum_hosts = 11};
  Calls(3, 100);
  Sweep();
  EXPECT_EQ(CountEjected(), 0);
  options_.failure_percentage = {.minimum_hosts = 1, .request_volume = 101};
  options_.success_rate.reset();
  Calls(3, 100);
  Sweep();
  EXPECT_EQ(CountEjected(), 0);
  Calls(3, 100);
  backends_[3]->outliers.failed = 101;
  Sweep();
  EXPECT_EQ(CountEjected(), 1);
}

TEST_F(OutlierTest, NoMoreThanTheLimitAreEjected) {
  options_.failure_percentage.emplace();
  for (const auto& [percent, expected] : {std::pair{0u, 0}, {10u, 1}, {11u, 2}, {50u, 5}, {100u, 10}}) {
    options_.max_percent = percent;
    now_ += std::chrono::hours(1);
    for (const auto& backend : backends_) backend->outliers.failed = 100;
    Sweep(1000);
    EXPECT_EQ(CountEjected(), expected) << percent;
  }
}

TEST_F(OutlierTest, EnforcementIsAShare) {
  options_.failure_percentage = {.enforcement = 0};
  Calls(3, 100);
  Sweep();
  EXPECT_EQ(CountEjected(), 0);
}

TEST_F(OutlierTest, EachEjectionIsLongerUpToTheLongest) {
  options_.failure_percentage.emplace();
  options_.base_ejection = seconds(30);
  options_.max_ejection = seconds(80);
  for (const int expected : {30, 60, 80, 80}) {
    Calls(3, 100);
    Sweep(0);
    now_ += seconds(expected) - Nanos(1);
    EXPECT_TRUE(Ejected(3)) << expected;
    now_ += Nanos(1);
    EXPECT_FALSE(Ejected(3)) << expected;
  }
  // Intervals without one forgive.
  Sweep(3);
  Calls(3, 100);
  Sweep(0);
  now_ += seconds(60);
  EXPECT_FALSE(Ejected(3));
  EXPECT_EQ(backends_[3]->outliers.ejections, 2u);
}

TEST_F(OutlierTest, IntervalsOfAnEjectionForgiveNothing) {
  options_.failure_percentage.emplace();
  for (const int expected : {30, 60, 90}) {
    Calls(3, 100);
    for (int passed = 0; passed < expected; passed += 10) {
      Sweep();
      EXPECT_TRUE(Ejected(3)) << passed << " of " << expected;
      now_ += seconds(10);
    }
    EXPECT_FALSE(Ejected(3)) << expected;
  }
}

TEST_F(OutlierTest, FailuresInARowEjectWithinTheSameLimits) {
  options_.consecutive_failures.emplace();
  options_.max_percent = 20;
  for (const size_t server : {3u, 4u, 5u}) EjectForFailures(options_, backends_, *backends_[server], now_, 1);
  EXPECT_EQ(CountEjected(), 2);
  EXPECT_FALSE(Ejected(5));
  EjectForFailures(options_, backends_, *backends_[3], now_, 1);
  EXPECT_EQ(backends_[3]->outliers.ejections, 1u) << "it is ejected already";
  now_ += options_.base_ejection;
  options_.consecutive_failures->enforcement = 0;
  EjectForFailures(options_, backends_, *backends_[3], now_, 1);
  EXPECT_EQ(CountEjected(), 0);
}

}  // namespace
}  // namespace curtail::internal
