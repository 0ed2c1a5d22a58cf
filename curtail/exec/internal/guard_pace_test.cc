// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/internal/guard_pace.h"

#include <gtest/gtest.h>

namespace curtail {
namespace {

using std::chrono::milliseconds;

TEST(GuardPace, LooksLessOftenAtAThreadThatMostlyWaits) {
  GuardPace pace;
  for (const int ms : {4, 8, 16, 32, 64, 128, 128}) EXPECT_EQ(pace.Next({.ran = true}), milliseconds(ms));
  EXPECT_EQ(pace.Next({.running = true, .ran = true}), milliseconds(2)) << "the run may last";
  EXPECT_EQ(pace.Next({.ran = true}), milliseconds(128)) << "it did not";
}

TEST(GuardPace, LooksTwiceAtAThreadThatIsBusy) {
  GuardPace pace;
  for (const int ms : {2, 4, 2, 8, 2, 16, 2, 32, 2, 64, 2, 128, 2, 128}) {
    EXPECT_EQ(pace.Next({.running = true, .ran = true}), milliseconds(ms));
  }
}

TEST(GuardPace, LooksOftenForAWhileAfterAThreadWasHeldUp) {
  GuardPace pace;
  pace.Next({.ran = true}), pace.Next({.ran = true});
  EXPECT_EQ(pace.Next({.running = true, .ran = true, .held = true}), GuardPace::kShort);
  for (Nanos time = GuardPace::kShort; time < GuardPace::kWary; time += GuardPace::kShort) {
    ASSERT_EQ(pace.Next({.ran = true}), GuardPace::kShort) << time;
  }
  EXPECT_EQ(pace.Next({.ran = true}), milliseconds(4));
}

TEST(GuardPace, SleepsWhereNothingRuns) {
  GuardPace pace;
  Nanos time{0};
  int looks = 1;
  while (const auto next = pace.Next({})) time += *next, ++looks;
  EXPECT_GE(time + GuardPace::kShort, GuardPace::kQuiet);
  EXPECT_LE(time, GuardPace::kQuiet + GuardPace::kLong);
  EXPECT_LT(looks, 10);
  EXPECT_EQ(pace.Next({.ran = true}), milliseconds(4)) << "a run woke it";
  EXPECT_EQ(pace.Next({}), milliseconds(8));
}

TEST(GuardPace, SleepsSoonerAfterAHoldThanItIsWary) {
  GuardPace pace;
  pace.Next({.running = true, .ran = true, .held = true});
  int looks = 0;
  while (pace.Next({})) ++looks;
  EXPECT_LE(looks, GuardPace::kQuiet / GuardPace::kShort);
  EXPECT_EQ(pace.Next({.ran = true}), GuardPace::kShort) << "it still is";
}

}  // namespace
}  // namespace curtail
