// SPDX-License-Identifier: Apache-2.0
//
// The yardstick itself: what truth.h computes, against cases whose answer is known.
#include "truth.h"

#include "gtest/gtest.h"

namespace curtail::bench {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(Truth, ARequestWaitsForThoseBeforeIt) {
  // Every 10 ms; the second takes 25 ms, so the third waits 15 and the fourth 9.
  const std::vector<Nanos> service = {milliseconds(4), milliseconds(25), milliseconds(4),
                                      milliseconds(4), milliseconds(1),  milliseconds(1)};
  const std::vector<Nanos> expected = {milliseconds(4),  milliseconds(25), milliseconds(19),
                                       milliseconds(13), milliseconds(4),  milliseconds(1)};
  EXPECT_EQ(FifoLatencies(milliseconds(10), service, service), expected);
}

TEST(Truth, WhatPassesBetweenTwoRequestsDelaysTheSecond) {
  const TimePoint start{};
  const auto at = [&](int us) { return start + std::chrono::microseconds(us); };
  const std::vector<ServedRequest> log = {
      {0, Nanos(0), at(0), at(1000)}, {1, Nanos(0), at(1100), at(2100)}, {2, Nanos(0), at(5000), at(6000)}};
  const std::vector<Nanos> expected = {microseconds(1100), milliseconds(1), milliseconds(1)};
  EXPECT_EQ(OccupiedTimes(log), expected);
  const std::vector<Nanos> latencies = {milliseconds(1), microseconds(1600), microseconds(2100)};
  EXPECT_EQ(FifoLatencies(microseconds(500), ServiceTimes(log), OccupiedTimes(log)), latencies);
}

TEST(Truth, PercentileIsTheNearestRank) {
  const std::vector<Nanos> values = {Nanos(30), Nanos(10), Nanos(20), Nanos(40)};
  EXPECT_EQ(PercentileOf(values, 50), Nanos(20));
  EXPECT_EQ(PercentileOf(values, 51), Nanos(30));
  EXPECT_EQ(PercentileOf(values, 100), Nanos(40));
  EXPECT_EQ(PercentileOf({}, 50), Nanos(0));
}

// Conover, "Practical Nonparametric Statistics": the median of 16 samples lies between the 4th and the 13th with 95 %
// confidence; of 5 samples no two do.
TEST(Truth, RanksAreThoseOfTheBinomialDistribution) {
  const Ranks sixteen = PercentileRanks(50, 16, 0.95);
  EXPECT_EQ(sixteen.low, 4u);
  EXPECT_EQ(sixteen.high, 13u);
  const Ranks five = PercentileRanks(50, 5, 0.95);
  EXPECT_EQ(five.low, 0u);
  EXPECT_EQ(five.high, 6u);
}

}  // namespace
}  // namespace curtail::bench
