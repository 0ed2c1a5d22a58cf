// SPDX-License-Identifier: Apache-2.0
#include "curtail/gateway/internal/token_bucket.h"

#include "curtail/base/strings.h"
#include "curtail/gateway/testing/gateway_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail::gateway::internal {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

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

TEST_F(GatewayTest, CallsBeyondTheRateGet429) {
  options_.max_rate = 1e-3;
  options_.max_burst = 2;
  Peer peer = Connect();
  const auto ask = [&](const char* path) {
    peer.Write(Join("GET ", path, " HTTP/1.1\r\nhost: x\r\n\r\n"));
    return peer.Read();
  };
  for (int i = 0; i < 2; ++i) EXPECT_THAT(ask("/v1/shelves/1/books/2"), StartsWith("HTTP/1.1 200")) << i;
  EXPECT_THAT(ask("/v1/shelves/1/books/2"),
              AllOf(StartsWith("HTTP/1.1 429"), HasSubstr("retry-after: 1000\r\n"), HasSubstr("\"code\":8")));
  EXPECT_THAT(ask("/nowhere"), StartsWith("HTTP/1.1 404")) << "no call";
  EXPECT_EQ(gateway().stats().refused, 1u);
}

}  // namespace
}  // namespace curtail::gateway::internal
