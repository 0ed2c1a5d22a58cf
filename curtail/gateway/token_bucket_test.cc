// SPDX-License-Identifier: Apache-2.0
#include "curtail/gateway/internal/token_bucket.h"

#include <gtest/gtest.h>

namespace curtail::gateway::internal {
namespace {

using std::chrono::milliseconds;

constexpr TimePoint kStart{std::chrono::hours(1)};

TEST(TokenBucket, GivesABurstAndThenTheRate) {
  TokenBucket bucket(/*rate=*/10, /*burst=*/3);
  TimePoint now = kStart;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(bucket.Take(now), Nanos::zero()) << i;
  EXPECT_EQ(bucket.Take(now), milliseconds(100));
  now += milliseconds(60);
  EXPECT_EQ(bucket.Take(now), milliseconds(40)) << "a refusal takes no token";
  now += milliseconds(40);
  EXPECT_EQ(bucket.Take(now), Nanos::zero());
  EXPECT_EQ(bucket.Take(now), milliseconds(100));
}

TEST(TokenBucket, IsNeverFullerThanABurst) {
  TokenBucket bucket(/*rate=*/10, /*burst=*/3);
  const TimePoint late = kStart + std::chrono::hours(24);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(bucket.Take(late), Nanos::zero()) << i;
  EXPECT_GT(bucket.Take(late), Nanos::zero());
}

TEST(TokenBucket, TakesExtremeRates) {
  TokenBucket never(/*rate=*/1e-300, /*burst=*/1);
  EXPECT_EQ(never.Take(kStart), Nanos::zero());
  EXPECT_GT(never.Take(kStart + std::chrono::hours(24)), std::chrono::hours(24));
  TokenBucket always(/*rate=*/1e300, /*burst=*/1e300);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(always.Take(kStart), Nanos::zero());
}

}  // namespace
}  // namespace curtail::gateway::internal
