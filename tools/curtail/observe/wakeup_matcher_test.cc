// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/observe/wakeup_matcher.h"

#include "gtest/gtest.h"

namespace curtail::tool {
namespace {

using Kind = WakeupEvent::Kind;

TEST(WakeupMatcher, PairsAWakeUpWithTheRunThatFollows) {
  WakeupMatcher matcher;
  matcher.Add({.at_ns = 130, .thread = 7, .kind = Kind::kIn});  // of another CPU, which was read first
  matcher.Add({.at_ns = 100, .thread = 7, .kind = Kind::kWaking});
  matcher.Add({.at_ns = 110, .thread = 8, .kind = Kind::kWaking});
  matcher.Add({.at_ns = 120, .thread = 7, .kind = Kind::kWaking});  // again: it is ready already
  matcher.JudgeUntil(1'000);
  EXPECT_EQ(matcher.latencies().count(), 1u);
  EXPECT_EQ(matcher.latencies().max(), Nanos(30));
}

TEST(WakeupMatcher, KeepsWhatIsTooFreshToJudge) {
  WakeupMatcher matcher;
  matcher.Add({.at_ns = 100, .thread = 7, .kind = Kind::kWaking});
  matcher.Add({.at_ns = 200, .thread = 7, .kind = Kind::kIn});
  matcher.JudgeUntil(200);
  EXPECT_TRUE(matcher.latencies().empty());
  matcher.Add({.at_ns = 201, .thread = 7, .kind = Kind::kOut});
  matcher.JudgeUntil(202);
  EXPECT_EQ(matcher.latencies().max(), Nanos(100));
}

TEST(WakeupMatcher, AThreadThatDidNotSleepHasNoLatency) {
  WakeupMatcher matcher;
  matcher.Add({.at_ns = 90, .thread = 7, .kind = Kind::kIn});
  matcher.Add({.at_ns = 100, .thread = 7, .kind = Kind::kWaking});  // while it runs
  matcher.Add({.at_ns = 150, .thread = 7, .kind = Kind::kOut});
  matcher.Add({.at_ns = 900, .thread = 7, .kind = Kind::kIn});  // after it was preempted
  matcher.JudgeUntil(1'000);
  EXPECT_TRUE(matcher.latencies().empty());
}

}  // namespace
}  // namespace curtail::tool
