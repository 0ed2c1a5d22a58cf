// SPDX-License-Identifier: Apache-2.0
#include "curtail/fence/shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace curtail {
namespace {

using ::testing::ElementsAre;

std::vector<uint32_t> Fitted(std::vector<uint32_t> claims, uint32_t total) {
  FitClaims(claims, total);
  return claims;
}

TEST(Shares, LeaveClaimsThatFit) { EXPECT_THAT(Fitted({2, 3, 1}, 7), ElementsAre(2, 3, 1)); }

TEST(Shares, CutTheLargestClaimsToOneLevel) {
  EXPECT_THAT(Fitted({7, 7, 7}, 7), ElementsAre(3, 2, 2));
  EXPECT_THAT(Fitted({1, 100, 5}, 12), ElementsAre(1, 6, 5));
  EXPECT_THAT(Fitted({100, 2, 100}, 11), ElementsAre(5, 2, 4));
}

TEST(Shares, GiveEachClassOneAtLeast) {
  EXPECT_THAT(Fitted({5, 5, 5}, 2), ElementsAre(1, 1, 1));
  EXPECT_THAT(Fitted({}, 2), ElementsAre());
}

TEST(Shares, KeepAReserveOfRunners) {
  EXPECT_EQ(PermitsOf(1), 1u);
  EXPECT_EQ(PermitsOf(2), 1u);
  EXPECT_EQ(PermitsOf(8), 7u);
  EXPECT_EQ(PermitsOf(10), 9u);
  EXPECT_EQ(PermitsOf(11), 9u);
  EXPECT_EQ(PermitsOf(64), 57u);
}

TEST(Shares, FollowLimitsAndThreads) {
  Fence fence({.mode = FenceMode::kStrict, .permits = 20});
  FenceShares shares(&fence);
  fence.SetPresent(0b111010);  // unknown, and the classes 3, 4, 5
  shares.Refresh();
  EXPECT_EQ(shares.permits(), 18u);
  EXPECT_EQ(shares.share(Fence::kUnknown), 4u) << "a quarter";
  EXPECT_EQ(shares.share(3) + shares.share(4) + shares.share(5), 14u);
  fence.SetLimit(4, 2);
  shares.Refresh();
  EXPECT_EQ(shares.share(4), 2u);
  EXPECT_EQ(shares.share(3), 6u);
  shares.SetThreads(8);
  shares.Refresh();
  EXPECT_EQ(shares.share(3) + shares.share(4) + shares.share(5) + shares.share(Fence::kUnknown), 7u);
}

}  // namespace
}  // namespace curtail
