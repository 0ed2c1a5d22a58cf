// SPDX-License-Identifier: Apache-2.0
//
// Each limiter beside a service that is a formula: the limit decides the concurrency, the formula the throughput.
#include "curtail/fence/limiter/limiter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "curtail/base/rng.h"

namespace curtail {
namespace {

constexpr uint32_t kMost = 200;

// A service with CPUs, whose throughput also falls with each request beyond them.
struct Model {
  double cpus = 10;
  double service_s = 0.005;
  double contention = 0.01;
  double Throughput(double n) const {
    const double beyond = std::max(0.0, n - cpus);
    return std::min(n, cpus) / service_s / (1 + contention * beyond);
  }
};

class LimitedService {
 public:
  LimitedService(std::string_view name, uint32_t first, uint64_t seed)
      : limiter(MakeLimiter(name, first)), limit(first), rng_(seed) {}

  // `demand` requests would be there at once without a limit.
  void Run(int seconds, double demand) {
    for (int i = 0; i < seconds * 20; ++i) Bin(demand);
  }
  void Bin(double demand) {
    const double wanted = std::max(0.5, demand * (0.9 + 0.2 * rng_.Uniform01()));
    const double n = std::min<double>(limit, wanted);
    const double mean = model.Throughput(n) * 0.05;
    const double off = std::sqrt(mean) * 0.5 * (rng_.Uniform01() - 0.5);
    limit = limiter->Next({.length = kLoadBin,
                           .concurrency = n,
                           .completed = static_cast<uint64_t>(std::lround(std::max(0.0, mean + off))),
                           .dropped = drops,
                           .limited = wanted > limit,
                           .most = kMost});
    ASSERT_GE(limit, 1u);
    ASSERT_LE(limit, kMost);
  }

  std::unique_ptr<Limiter> limiter;
  uint32_t limit;
  Model model;
  uint64_t drops = 0;

 private:
  Rng rng_;
};

TEST(Limiters, AreKnownByName) {
  EXPECT_EQ(LimiterNames(), "fixed, sct, aimd, vegas, gradient2");
  EXPECT_TRUE(IsLimiter("fixed"));
  EXPECT_TRUE(IsLimiter("sct"));
  EXPECT_FALSE(IsLimiter(""));
  EXPECT_FALSE(IsLimiter("SCT"));
}

class EachLimiter : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Limiters, EachLimiter, testing::Values("sct", "aimd", "vegas", "gradient2"),
                         [](const auto& info) { return info.param; });

TEST_P(EachLimiter, StaysWithinItsBoundsWhateverComes) {
  Rng rng(3);
  const auto limiter = MakeLimiter(GetParam(), 20);
  for (int i = 0; i < 20'000; ++i) {
    const auto most = static_cast<uint32_t>(1 + rng.Below(300));
    const uint64_t completed = rng.Below(3) == 0 ? 0 : rng.Below(100'000);
    const uint32_t limit = limiter->Next({.length = Nanos(static_cast<int64_t>(rng.Below(2'000'000'000))),
                                          .concurrency = rng.Below(4) == 0 ? 0 : rng.Uniform01() * 1000,
                                          .completed = completed,
                                          .dropped = rng.Below(completed + 1),
                                          .limited = rng.Below(2) == 0,
                                          .most = most});
    ASSERT_GE(limit, 1u);
    ASSERT_LE(limit, most);
  }
}

TEST_P(EachLimiter, KeepsALimitThatBindsNothing) {
  LimitedService s(GetParam(), 40, 1);
  s.Run(60, 2);
  EXPECT_GE(s.limit, 10u) << "the load never came near it";
  EXPECT_LE(s.limit, 40u);
}

TEST_P(EachLimiter, FindsAServiceThatCanDoMore) {
  LimitedService s(GetParam(), 4, 2);
  s.Run(120, 9);
  EXPECT_GE(s.limit, 8u);
}

TEST(Sct, FindsTheKneeFromAboveAndBelow) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    for (const uint32_t first : {2u, 60u}) {
      LimitedService s("sct", first, seed);
      s.Run(90, 150);
      double sum = 0;
      for (int i = 0; i < 600; ++i) s.Bin(150), sum += s.limit;
      EXPECT_NEAR(sum / 600, 10, 3) << "from " << first << ", seed " << seed;
      EXPECT_GE(s.model.Throughput(sum / 600), 0.9 * s.model.Throughput(10)) << "seed " << seed;
    }
  }
}

TEST(Sct, AStepIsAQuarterAtMost) {
  LimitedService s("sct", 60, 1);
  uint32_t before = 60;
  for (int i = 0; i < 90; ++i) {
    s.Run(1, 150);
    EXPECT_LE(std::abs(static_cast<int>(s.limit) - static_cast<int>(before)),
              std::max(1.0, 0.25 * before) + 1);
    before = s.limit;
  }
}

TEST(Sct, TheGuardCutsTheLimitWithinASecondOfANoisyNeighbour) {
  LimitedService s("sct", 10, 1);
  s.Run(60, 150);
  const uint32_t before = s.limit;
  s.model.cpus = 3;
  for (int i = 0; i < 19; ++i) s.Bin(150);
  EXPECT_LE(s.limit, before * 0.85 + 1);
  s.Run(90, 150);
  double sum = 0;
  for (int i = 0; i < 600; ++i) s.Bin(150), sum += s.limit;
  EXPECT_NEAR(sum / 600, 3, 2) << "the knee of three CPUs";
  s.model.cpus = 10;
  s.Run(120, 150);
  sum = 0;
  for (int i = 0; i < 600; ++i) s.Bin(150), sum += s.limit;
  EXPECT_GE(sum / 600, 7) << "and back";
}

TEST(Sct, ASteadyLoadOfSlowRequestsIsNoPlateau) {
  Rng rng(5);
  const auto limiter = MakeLimiter("sct", 50);
  uint32_t limit = 50;
  for (int i = 0; i < 2400; ++i) {  // 20 a second that take 500 ms: concurrency varies, throughput does not
    limit = limiter->Next(
        {.length = kLoadBin, .concurrency = 6 + 8 * rng.Uniform01(), .completed = 1, .most = kMost});
  }
  EXPECT_EQ(limit, 50u);
}

TEST(Aimd, FallsByATenthWhenRequestsAreDropped) {
  LimitedService s("aimd", 100, 1);
  s.drops = 1;
  s.Run(1, 150);
  EXPECT_EQ(s.limit, 90u);
  s.drops = 0;
  s.Run(5, 150);
  EXPECT_EQ(s.limit, 95u);
}

TEST(Vegas, KeepsAShortQueueBeforeTheService) {
  LimitedService s("vegas", 10, 1);
  s.Run(120, 150);
  EXPECT_GE(s.limit, 9u);
  EXPECT_LE(s.limit, 30u) << "one in two waits, at most about";
}

TEST(Gradient2, FallsWhenResponseTimesRise) {
  LimitedService s("gradient2", 10, 1);
  s.Run(30, 9);
  s.model.service_s = 0.05;
  s.model.cpus = 5;
  const uint32_t before = s.limit;
  s.Run(20, 150);
  EXPECT_LT(s.limit, before);
}

}  // namespace
}  // namespace curtail
