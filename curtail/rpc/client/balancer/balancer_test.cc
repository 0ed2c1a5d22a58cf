// SPDX-License-Identifier: Apache-2.0
//
// The strategies as functions: how they spread calls, which backends they leave out, and what moves when the servers change.
#include "curtail/rpc/client/balancer/balancer.h"
#include "curtail/base/mix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "curtail/base/rng.h"
#include "curtail/base/strings.h"

namespace curtail::internal {
namespace {

constexpr TimePoint kNow = TimePoint(Nanos(1000));
constexpr const char* kAll[] = {"pick_first", "round_robin", "least_request", "ring_hash",
                                "weighted_round_robin"};

Backends Make(size_t n) {
  Backends backends;
  for (size_t i = 0; i < n; ++i) backends.push_back(std::make_shared<Backend>(Join("10.0.0.", i, ":80")));
  return backends;
}

std::unique_ptr<Balancer> Named(const char* name, const Backends& backends) {
  return *MakeBalancer({.name = name}, backends);
}

// Makes `calls` choices, and counts those of each backend. `each` sees each.
template <class Each>
std::vector<int> Spread(const Balancer& balancer, const Backends& backends, int calls, const Each& each) {
  std::vector<int> counts(backends.size());
  size_t last = 0;
  for (int i = 0; i < calls; ++i) {
    Choice choice{.now = kNow, .sequence = static_cast<uint64_t>(i), .last = last};
    choice.random = Mix(choice.sequence);
    if (balancer.UsesKey()) choice.key = HashOf(Join("user-", i));
    const size_t chosen = balancer.Choose(choice);
    EXPECT_LT(chosen, backends.size());
    EXPECT_TRUE(backends[chosen]->Up(kNow));
    ++counts[chosen];
    last = chosen;
    each(chosen);
  }
  return counts;
}
std::vector<int> Spread(const Balancer& balancer, const Backends& backends, int calls) {
  return Spread(balancer, backends, calls, [](size_t) {});
}

TEST(Balancer, RefusesUnknownNames) {
  const absl::Status status = MakeBalancer({.name = "robin"}, Make(2)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(status)),
              testing::HasSubstr("\"robin\"; there are pick_first, round_robin, least_request, ring_hash, "
                                 "weighted_round_robin"));
}

TEST(Balancer, NoneChoosesABackendThatIsDown) {
  for (const char* name : kAll) {
    const Backends backends = Make(5);
    const auto balancer = Named(name, backends);
    for (size_t up = 5; up > 0; --up) {
      EXPECT_EQ(Spread(*balancer, backends, 1000).size(), 5u) << name;
      backends[(up * 3) % 5]->down_until = kNow.time_since_epoch().count() + 1;
    }
    EXPECT_EQ(balancer->Choose({.now = kNow, .key = 7}), Balancer::kNone) << name;
    // ... and all are chosen again when it is over.
    EXPECT_LT(balancer->Choose({.now = kNow + Nanos(1), .key = 7}), 5u) << name;
  }
}

TEST(PickFirst, StaysUntilTheBackendFails) {
  const Backends backends = Make(3);
  const auto balancer = Named("pick_first", backends);
  EXPECT_THAT(Spread(*balancer, backends, 100), testing::ElementsAre(100, 0, 0));
  EXPECT_EQ(balancer->Choose({.now = kNow, .last = 2}), 2u);
  backends[2]->down_until = 2000;
  EXPECT_EQ(balancer->Choose({.now = kNow, .last = 2}), 0u);
}

TEST(RoundRobin, GivesEachTheSame) {
  const Backends backends = Make(3);
  EXPECT_THAT(Spread(*Named("round_robin", backends), backends, 300), testing::ElementsAre(100, 100, 100));
}

TEST(RoundRobin, SpreadsTheShareOfOneThatIsDown) {
  const Backends backends = Make(10);
  backends[4]->down_until = 2000;
  for (const int count : Spread(*Named("round_robin", backends), backends, 10'000)) {
    EXPECT_TRUE(count == 0 || (count >= 1050 && count <= 1280)) << count;
  }
}

// Property: with calls that never end, the difference between the fullest and the emptiest stays small; random choice
// alone would leave some hundreds.
TEST(LeastRequest, EvensOutOutstandingCalls) {
  const Backends backends = Make(10);
  const auto counts = Spread(*Named("least_request", backends), backends, 100'000,
                             [&](size_t i) { ++backends[i]->outstanding; });
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
  EXPECT_LE(*most - *least, 20);
}

// Property: where no server has a queue, any few calls are shared evenly; random choices would be off by some tens.
TEST(LeastRequest, SharesAnyFewCallsEvenly) {
  for (const size_t n : {2, 3, 7}) {
    const Backends backends = Make(n);
    const auto balancer = Named("least_request", backends);
    std::vector<int> in_window(n);
    for (uint64_t i = 0; i < 70'000; ++i) {
      ++in_window[balancer->Choose({.now = kNow, .sequence = i, .random = Mix(i)})];
      if (i % (100 * n) != 100 * n - 1) continue;
      for (const int count : in_window) ASSERT_NEAR(count, 100, 2) << n;
      in_window.assign(n, 0);
    }
  }
}

// Property: calls of which each third is dear do not meet the same one of three servers.
TEST(LeastRequest, DoesNotFollowThePeriodOfItsCalls) {
  const Backends backends = Make(3);
  const auto balancer = Named("least_request", backends);
  std::vector<int> dear(3);
  for (uint64_t i = 0; i < 9000; i += 3)
    ++dear[balancer->Choose({.now = kNow, .sequence = i, .random = Mix(i)})];
  for (const int count : dear) EXPECT_NEAR(count, 1000, 150);
}

TEST(LeastRequest, LeavesOutOneThatHangs) {
  const Backends backends = Make(3);
  backends[1]->outstanding = 1000;
  // Only when both choices are it: one in nine.
  EXPECT_LE(Spread(*Named("least_request", backends), backends, 9000)[1], 1200);
}

TEST(RingHash, SpreadsKeysEvenly) {
  const Backends backends = Make(8);
  for (const int count : Spread(*Named("ring_hash", backends), backends, 80'000)) {
    EXPECT_NEAR(count, 10'000, 2500);
  }
}

// The backend of each key, by name.
std::map<std::string, std::string> Owners(const Backends& backends, int keys) {
  const auto balancer = Named("ring_hash", backends);
  std::map<std::string, std::string> owners;
  for (int i = 0; i < keys; ++i) {
    const std::string key = Join("user-", i);
    owners[key] = backends[balancer->Choose({.now = kNow, .key = HashOf(key)})]->name;
  }
  return owners;
}

// Property: when a backend comes, keys move only to it, and about its share of them.
TEST(RingHash, MovesOnlyTheKeysOfTheBackendThatComesOrGoes) {
  constexpr int kKeys = 20'000;
  for (const size_t n : {2, 3, 7, 12}) {
    Backends many = Make(n + 1);
    const auto after = Owners(many, kKeys);
    const std::string newcomer = many.back()->name;
    many.pop_back();
    std::reverse(many.begin(), many.end());  // the order of the list does not matter
    int moved = 0;
    for (const auto& [key, owner] : Owners(many, kKeys)) {
      if (owner == after.at(key)) continue;
      EXPECT_EQ(after.at(key), newcomer);
      ++moved;
    }
    EXPECT_NEAR(moved, kKeys / static_cast<int>(n + 1), kKeys / static_cast<int>(n + 1) / 4) << n;
  }
}

// Property: the keys of a backend that is down go elsewhere, those of the others stay.
TEST(RingHash, LeavesTheOthersAloneWhenOneIsDown) {
  const Backends backends = Make(5);
  const auto before = Owners(backends, 5000);
  backends[2]->down_until = 2000;
  const auto after = Owners(backends, 5000);
  std::map<std::string, int> heirs;
  for (const auto& [key, owner] : before) {
    if (owner != backends[2]->name) {
      EXPECT_EQ(after.at(key), owner);
    } else {
      ++heirs[after.at(key)];
    }
  }
  EXPECT_EQ(heirs.size(), 4u);
}

TEST(RingHash, ACallWithoutAKeyGoesAnywhere) {
  const Backends backends = Make(4);
  const auto balancer = Named("ring_hash", backends);
  std::map<size_t, int> counts;
  for (uint64_t i = 0; i < 4000; ++i) ++counts[balancer->Choose({.now = kNow, .random = Mix(i)})];
  ASSERT_EQ(counts.size(), 4u);
  for (const auto& [backend, count] : counts) EXPECT_NEAR(count, 1000, 150);
}

constexpr TimePoint kLater = kNow + std::chrono::seconds(100);

class WeightedRoundRobinTest : public testing::Test {
 protected:
  void Make(size_t n, WeightOptions options = {.blackout = Nanos(0)}) {
    backends_ = internal::Make(n);
    balancer_ = *MakeBalancer({.name = "weighted_round_robin", .weights = options}, backends_);
  }
  void Report(size_t i, ServerLoad load, TimePoint now = kLater) {
    backends_[i]->load.Report(WriteLoad(load), 1, now);
  }
  // The choices of each backend, of so many.
  std::vector<int> Shares(int calls, TimePoint now = kLater) {
    std::vector<int> counts(backends_.size());
    for (int i = 0; i < calls; ++i) ++counts[balancer_->Choose({.now = now})];
    return counts;
  }

  Backends backends_;
  std::unique_ptr<Balancer> balancer_;
};

TEST_F(WeightedRoundRobinTest, GivesEachTheSameWithoutReportsOfTwo) {
  Make(3);
  EXPECT_THAT(Shares(300), testing::ElementsAre(100, 100, 100));
  Report(1, {.cpu = 0.1, .qps = 1000});
  EXPECT_THAT(Shares(300, kLater + std::chrono::seconds(1)), testing::ElementsAre(100, 100, 100));
}

TEST_F(WeightedRoundRobinTest, GivesEachItsCallsForItsLoad) {
  Make(3);
  Report(0, {.cpu = 0.5, .qps = 100});
  Report(1, {.cpu = 0.5, .qps = 200});
  Report(2, {.cpu = 0.9, .application = 0.25, .qps = 200});
  const std::vector<int> shares = Shares(7000);
  EXPECT_NEAR(shares[0], 1000, 10);
  EXPECT_NEAR(shares[1], 2000, 10);
  EXPECT_NEAR(shares[2], 4000, 10);
}

TEST_F(WeightedRoundRobinTest, OneWithoutAReportHasTheMean) {
  Make(3);
  Report(0, {.cpu = 0.5, .qps = 100});
  Report(2, {.cpu = 0.5, .qps = 300});
  EXPECT_NEAR(Shares(6000)[1], 2000, 10);
}

TEST_F(WeightedRoundRobinTest, NoWeightIsFarFromTheMean) {
  Make(2);
  Report(0, {.cpu = 1, .qps = 1});
  Report(1, {.cpu = 1e-6, .qps = 1e6});
  const std::vector<int> shares = Shares(21'000);
  EXPECT_NEAR(shares[0], 1000, 10);  // a tenth of the mean, which is half of the other
}

TEST_F(WeightedRoundRobinTest, CallsThatFailCountAsLoad) {
  Make(2);
  Report(0, {.cpu = 0.5, .qps = 100});
  Report(1, {.cpu = 0.5, .qps = 100, .eps = 50});
  EXPECT_NEAR(Shares(3000)[0], 2000, 10);
}

TEST_F(WeightedRoundRobinTest, AWeightHoldsFromTheBlackoutToItsExpiration) {
  using std::chrono::seconds;
  Make(2, {});
  const auto report = [&](TimePoint now) {
    Report(0, {.cpu = 0.5, .qps = 300}, now);
    Report(1, {.cpu = 0.5, .qps = 100}, now);
  };
  const auto first = [&](TimePoint now) { return Shares(400, now)[0]; };
  report(kLater);
  EXPECT_EQ(first(kLater + seconds(9)), 200);
  report(kLater + seconds(9));
  EXPECT_NEAR(first(kLater + seconds(10)), 300, 4);
  EXPECT_NEAR(first(kLater + seconds(188)), 300, 4);
  EXPECT_EQ(first(kLater + seconds(189)), 200);
  report(kLater + seconds(190));
  EXPECT_EQ(first(kLater + seconds(199)), 200) << "the blackout begins anew";
  EXPECT_NEAR(first(kLater + seconds(200)), 300, 4);
  for (const auto& backend : backends_) backend->load.Forget();  // connections were lost
  report(kLater + seconds(201));
  EXPECT_EQ(first(kLater + seconds(202)), 200);
}

TEST_F(WeightedRoundRobinTest, WhatIsNoReportChangesNothing) {
  Make(2);
  const std::string good = WriteLoad({.cpu = 0.5, .qps = 100});
  ServerLoad read;
  EXPECT_TRUE(ReadLoad(good + std::string("\x42\x03\x0a\x01x\x10\x01", 7), &read))
      << "other fields are passed over";
  EXPECT_EQ(read.qps, 100);
  EXPECT_EQ(read.cpu, 0.5);
  const double infinite = std::numeric_limits<double>::infinity();
  for (const std::string& bad :
       {std::string(), std::string("\xff"), good.substr(0, good.size() - 1), WriteLoad({.cpu = -1, .qps = 5}),
        WriteLoad({.cpu = infinite, .qps = 5}), WriteLoad({.cpu = std::nan(""), .qps = 5}),
        WriteLoad({.cpu = 1}), WriteLoad({.qps = 1}), WriteLoad({.cpu = 1e-300, .qps = 1e300})}) {
    backends_[0]->load.Report(bad, 1, kLater);
    EXPECT_EQ(backends_[0]->load.Weight({.blackout = Nanos(0)}, kLater), 0);
  }
}

}  // namespace
}  // namespace curtail::internal
