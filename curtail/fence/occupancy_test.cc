// SPDX-License-Identifier: Apache-2.0
#include "curtail/fence/occupancy.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "curtail/base/rng.h"

namespace curtail {
namespace {

constexpr TimePoint kOrigin = TimePoint() + std::chrono::hours(100);

TimePoint At(int64_t us) { return kOrigin + std::chrono::microseconds(us); }

TEST(Occupancy, IsTheTimeThatRequestsWereIn) {
  Occupancy o(kOrigin);
  EXPECT_EQ(o.Read(At(1000)), 0);
  o.Come(At(2000));
  EXPECT_DOUBLE_EQ(o.Read(At(5000)), 0.003);
  o.Come(At(6000));
  o.Leave(At(8000));
  EXPECT_DOUBLE_EQ(o.Read(At(10'000)), 0.007) << "one all the time, another 2 ms";
  o.Leave(At(10'500));
  EXPECT_DOUBLE_EQ(o.Read(At(20'000)), 0.0005);
  EXPECT_EQ(o.Read(At(30'000)), 0);
}

TEST(Occupancy, TimesThatAreALittleOffLoseNothing) {
  Occupancy o(kOrigin);
  o.Come(At(2000));
  EXPECT_EQ(o.Read(At(1990)), 0) << "the thread's clock was read later";
  EXPECT_DOUBLE_EQ(o.Read(At(3000)), 0.001);
  o.Leave(At(2900));  // it began to end before the reading
  EXPECT_EQ(o.Read(At(4000)), 0);
  o.Come(At(5000));
  EXPECT_NEAR(o.Read(At(6000)), 0.0009, 1e-12) << "what was read too much is taken off";
}

// Beside a sum that a plain loop makes, over some days.
TEST(Occupancy, RandomLivesGiveTheIntegral) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    Occupancy o(kOrigin);
    int64_t now = 0;
    int64_t in = 0;
    int64_t area = 0;
    for (int i = 0; i < 20'000; ++i) {
      const auto step = static_cast<int64_t>(rng.Below(i % 100 == 0 ? 200'000'000'000 / 100 : 100'000));
      now += step;
      area += in * step;
      if (in > 0 && rng.Below(2) == 0) {
        --in;
        o.Leave(At(now));
      } else if (in < 300) {
        ++in;
        o.Come(At(now));
      }
      if (rng.Below(3) != 0 && i % 100 != 0) continue;
      ASSERT_DOUBLE_EQ(o.Read(At(now)), static_cast<double>(area) / 1e6) << "seed " << seed << ", " << i;
      area = 0;
    }
  }
}

// Property: what all readings add up to is what the threads spent, whatever the reader saw in between.
TEST(Occupancy, ReadingsOfManyThreadsAddUpStress) {
  constexpr int kThreads = 4, kRequests = 20'000;
  const TimePoint origin = Now();
  Occupancy o(origin);
  std::atomic<int> running{kThreads};
  std::vector<int64_t> spent(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRequests; ++i) {
        // As the order and the enders do: each time is cut to us since the origin.
        const TimePoint begin = Now(), end = Now();
        o.Come(begin);
        o.Leave(end);
        using std::chrono::duration_cast, std::chrono::microseconds;
        spent[static_cast<size_t>(t)] +=
            (duration_cast<microseconds>(end - origin) - duration_cast<microseconds>(begin - origin)).count();
      }
      --running;
    });
  }
  double sum = 0;
  while (running > 0) sum += o.Read(Now());
  for (std::thread& thread : threads) thread.join();
  // A thread may have slept between its clock and its Leave(), so a reading was too large, and the next ones make up for
  // it. One more request has them all made up.
  constexpr Nanos kLong = std::chrono::seconds(1000);
  const TimePoint last = Now();
  o.Come(last);
  sum += o.Read(last + kLong);
  double all = InSeconds(kLong);
  for (const int64_t us : spent) all += static_cast<double>(us) / 1e6;
  EXPECT_NEAR(sum, all, 1e-5);
}

}  // namespace
}  // namespace curtail
