// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/clock.h"

#include "gtest/gtest.h"

namespace curtail {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

TEST(Clock, NowNeverGoesBack) {
  TimePoint last = Now();
  for (int i = 0; i < 1000; ++i) {
    const TimePoint now = Now();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(Deadline, InTheFutureHasTimeLeft) {
  const Deadline d = Deadline::In(hours(1));
  EXPECT_FALSE(d.Expired());
  EXPECT_FALSE(d.infinite());
  EXPECT_GT(d.Remaining(), seconds(3590));
  EXPECT_LE(d.Remaining(), hours(1));
}

TEST(Deadline, PastIsExpiredWithNothingLeft) {
  for (const Deadline d : {Deadline::In(Nanos(0)), Deadline::In(-seconds(1)), Deadline::At(TimePoint())}) {
    EXPECT_TRUE(d.Expired());
    EXPECT_EQ(d.Remaining(), Nanos(0));
  }
}

TEST(Deadline, HugeTimeoutIsInfiniteNotOverflow) {
  for (const Nanos timeout : {Nanos::max(), Nanos::max() - Nanos(1)}) {
    const Deadline d = Deadline::In(timeout);
    EXPECT_TRUE(d.infinite());
    EXPECT_FALSE(d.Expired());
    EXPECT_EQ(d.Remaining(), Nanos::max());
  }
}

TEST(Deadline, OrdersByTime) {
  const TimePoint t(seconds(5));
  EXPECT_LT(Deadline::At(t), Deadline::At(t + Nanos(1)));
  EXPECT_EQ(Deadline::At(t), Deadline::At(t));
  EXPECT_EQ(std::min(Deadline::Infinite(), Deadline::At(t)), Deadline::At(t));
}

TEST(ManualTime, MovesOnlyByHand) {
  ManualTime time;
  const TimePoint start = time.Now();
  EXPECT_EQ(time.Now(), start);
  time.Advance(seconds(3));
  EXPECT_EQ(time.Now() - start, seconds(3));
}

TEST(RealTime, IsTheMonotonicClock) {
  const TimePoint before = Now();
  const TimePoint between = RealTime().Now();
  EXPECT_GE(between, before);
  EXPECT_LE(between, Now());
}

}  // namespace
}  // namespace curtail
