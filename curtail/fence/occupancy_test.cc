// SPDX-License-Identifier: Apache-2.0
#include "curtail/fence/occupancy.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>
#include <vector>

#include "curtail/base/clock.h"
#include "curtail/base/rng.h"

namespace curtail {
namespace {

TEST(Occupancy, IsTheTimeThatRequestsWereIn) {
  Occupancy o;
  EXPECT_EQ(o.Read(1000), 0u);
  o.Come(2000);
  EXPECT_EQ(o.Read(5000), 3000u);
  o.Come(6000);
  o.Leave(8000);
  EXPECT_EQ(o.Read(10'000), 7000u) << "one all the time, another for 2000";
  o.Leave(10'500);
  EXPECT_EQ(o.Read(20'000), 500u);
  EXPECT_EQ(o.Read(30'000), 0u);
}

TEST(Occupancy, TimesThatAreALittleOffLoseNothing) {
  Occupancy o;
  o.Come(2000);
  EXPECT_EQ(o.Read(1990), 0u) << "the thread's clock was read later";
  EXPECT_EQ(o.Read(3000), 1000u);
  o.Leave(2900);  // it began to end before the reading
  EXPECT_EQ(o.Read(4000), 0u);
  o.Come(5000);
  EXPECT_EQ(o.Read(6000), 900u) << "what was read too much is taken off";
}

// Beside a sum that a plain loop makes, over some days.
TEST(Occupancy, RandomLivesGiveTheIntegral) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    Occupancy o;
    uint64_t now = 0;
    uint64_t in = 0;
    uint64_t area = 0;
    for (int i = 0; i < 20'000; ++i) {
      const uint64_t step = rng.Below(i % 100 == 0 ? 200'000'000'000 / 100 : 100'000);
      now += step;
      area += in * step;
      if (in > 0 && rng.Below(2) == 0) {
        --in;
        o.Leave(now);
      } else if (in < 300) {
        ++in;
        o.Come(now);
      }
      if (rng.Below(3) != 0 && i % 100 != 0) continue;
      ASSERT_EQ(o.Read(now), area) << "seed " << seed << ", " << i;
      area = 0;
    }
  }
}

// Property: what all readings add up to is what the threads spent, whatever the reader saw in between.
TEST(Occupancy, ReadingsOfManyThreadsAddUpStress) {
  constexpr int kThreads = 4, kRequests = 20'000;
  const TimePoint origin = Now();
  const auto ticks = [origin] { return static_cast<uint64_t>((Now() - origin).count()) >> 10; };
  Occupancy o;
  std::atomic<int> running{kThreads};
  std::vector<uint64_t> spent(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRequests; ++i) {
        const uint64_t begin = ticks(), end = ticks();
        o.Come(begin);
        o.Leave(end);
        spent[static_cast<size_t>(t)] += end - begin;
      }
      --running;
    });
  }
  uint64_t sum = 0;
  while (running > 0) sum += o.Read(ticks());
  for (std::thread& thread : threads) thread.join();
  // A thread may have slept between its clock and its Leave(), so a reading was too large, and the next ones make up for
  // it. One more request has them all made up.
  constexpr uint64_t kLong = 1'000'000'000;
  const uint64_t last = ticks();
  o.Come(last);
  sum += o.Read(last + kLong);
  EXPECT_EQ(sum, std::accumulate(spent.begin(), spent.end(), kLong));
}

}  // namespace
}  // namespace curtail
