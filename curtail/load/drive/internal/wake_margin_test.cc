// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/drive/internal/wake_margin.h"

#include "curtail/base/rng.h"
#include "gtest/gtest.h"

namespace curtail::internal {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(WakeMargin, FindsTheP90OfTheLateness) {
  WakeMargin margin(std::nullopt);
  Rng rng(5);
  int later = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Nanos late(static_cast<int64_t>(rng.Exponential(50e3)));  // whose p90 is 115 us
    if (i >= 10'000 && late > margin.get()) ++later;
    margin.Fired(late);
  }
  EXPECT_NEAR(later, 1000, 150);
  EXPECT_NEAR(static_cast<double>(margin.get().count()) / 1e3, 115, 20);
}

TEST(WakeMargin, ComesNearWithinAHundredSends) {
  WakeMargin margin(std::nullopt);
  Rng rng(6);
  for (int i = 0; i < 100; ++i)
    margin.Fired(microseconds(20) + Nanos(static_cast<int64_t>(rng.Exponential(5e3))));
  EXPECT_LT(margin.get(), microseconds(60));
  EXPECT_GT(margin.get(), microseconds(20));
}

TEST(WakeMargin, OneHiccupDoesNotMoveItFar) {
  WakeMargin margin(std::nullopt);
  for (int i = 0; i < 200; ++i) margin.Fired(microseconds(i % 50));
  const Nanos before = margin.get();
  margin.Fired(milliseconds(50));
  EXPECT_LE(margin.get(), before + microseconds(10));
}

TEST(WakeMargin, StaysWithinItsBounds) {
  WakeMargin margin(std::nullopt);
  for (int i = 0; i < 10'000; ++i) margin.Fired(Nanos(0));
  EXPECT_EQ(margin.get(), microseconds(10));
  for (int i = 0; i < 10'000; ++i) margin.Fired(milliseconds(50));
  EXPECT_EQ(margin.get(), milliseconds(1));
}

TEST(WakeMargin, AFixedOneStays) {
  WakeMargin margin(Nanos(0));
  margin.Fired(milliseconds(50));
  EXPECT_EQ(margin.get(), Nanos(0));
}

}  // namespace
}  // namespace curtail::internal
