// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/mix.h"

#include <gtest/gtest.h>

namespace curtail {
namespace {

// The first numbers of the authors' program (https://prng.di.unimi.it/splitmix64.c) from the state 1234567.
TEST(Mix, IsSplitMix64) {
  uint64_t state = 1234567;
  EXPECT_EQ(NextMix(state), 6457827717110365317u);
  EXPECT_EQ(NextMix(state), 3203168211198807973u);
  EXPECT_EQ(NextMix(state), 9817491932198370423u);
  EXPECT_EQ(Mix(1234567), 6457827717110365317u);
  EXPECT_EQ(Scramble(1234567 + 2 * kMixStep), 3203168211198807973u);
}

TEST(Mix, TellsPairsApart) {
  EXPECT_NE(Mix(1, 2), Mix(2, 1));
  EXPECT_NE(Mix(1, 2), Mix(1, 3));
}

}  // namespace
}  // namespace curtail
