// SPDX-License-Identifier: Apache-2.0
#include "curtail/deploy/restart_pace.h"

#include <gtest/gtest.h>

namespace curtail::deploy {
namespace {

using std::chrono::milliseconds;

TEST(RestartPace, GrowsFromEndToEndAndBeginsAnewOnceItHasSettled) {
  RestartPace pace;
  for (const Nanos settled : {RestartPace::kSettled, 2 * RestartPace::kSettled}) {
    for (const int expected : {100, 200, 400, 800, 1600, 3200, 5000, 5000}) {
      pace.Ended(expected == 100 ? settled : RestartPace::kSettled - Nanos(1));
      EXPECT_EQ(pace.wait(), milliseconds(expected));
    }
  }
}

TEST(RestartPace, AFirstEndWaitsShortlyAndAFailedStartLongest) {
  RestartPace pace;
  pace.Ended(Nanos(0));
  EXPECT_EQ(pace.wait(), RestartPace::kFirst);
  pace.Failed();
  EXPECT_EQ(pace.wait(), RestartPace::kLongest);
  pace.Ended(Nanos(0));
  EXPECT_EQ(pace.wait(), RestartPace::kLongest);
}

}  // namespace
}  // namespace curtail::deploy
