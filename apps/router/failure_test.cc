// SPDX-License-Identifier: Apache-2.0
//
// The router's answers when memcacheds die, stall and come back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

#include "apps/kit/testing/configs_to_test.h"
#include "apps/router/router_testing.h"
#include "curtail/base/rng.h"

namespace curtail::router {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FailureTest : public testing::TestWithParam<std::string> {
 protected:
  void ExpectAllTakePart(Deployment& deployment) {
    ASSERT_TRUE(deployment.replicas().WaitForAll(Deadline::In(kPatience)));
  }
};
INSTANTIATE_TEST_SUITE_P(Models, FailureTest,
                         testing::ValuesIn(apps::ConfigsToTest({"SDB1-4", "FIB1", "ADB1-2-2"},
                                                               {"SIB1", "FDB1-2", "AIB1-1"})),
                         [](const auto& info) { return info.param.substr(0, 3); });

TEST_P(FailureTest, AReplicaThatDiesIsEjectedAndComesBackEmpty) {
  Deployment deployment(GetParam(), 1, Impatient(2));
  deployment.Set("kept", "v");
  deployment.memcached(0).Kill();
  for (int i = 0; i < 6; ++i) ASSERT_EQ(deployment.Get("kept"), "v");
  SetReply reply = deployment.Set("k", "while one is gone");
  EXPECT_EQ(reply.taken(), 1u);
  EXPECT_EQ(reply.replicas(), 2u);
  const Replica gone = deployment.Replicas()[0];
  EXPECT_FALSE(gone.admitted());
  EXPECT_EQ(gone.ejections(), 1u);
  EXPECT_THAT(gone.reason(), HasSubstr(deployment.memcached(0).address()));
  EXPECT_TRUE(deployment.Replicas()[1].admitted());

  deployment.memcached(0).Start();
  ExpectAllTakePart(deployment);
  EXPECT_EQ(deployment.Set("k2", "v2").taken(), 2u);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(deployment.Get("kept"), "v");
  for (int i = 0; i < 4; ++i) ASSERT_EQ(deployment.Get("k"), "while one is gone");
  EXPECT_EQ(deployment.memcached(0).Look("kept"), "v");  // gets have filled it again
}

// It holds an old value and misses a write; then it must not be asked before it has forgotten the old one,
// and what was sent to it while it stalled must not land afterwards.
TEST_P(FailureTest, AReplicaThatMissedAWriteNeverServesTheOldValue) {
  Deployment deployment(GetParam(), 1, Impatient(2));
  ASSERT_EQ(deployment.Set("k", "old").taken(), 2u);
  deployment.memcached(1).Stall();
  const SetReply reply = deployment.Set("k", "new");
  EXPECT_EQ(reply.taken(), 1u);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(deployment.Get("k"), "new");
  EXPECT_EQ(deployment.Set("k", "newer").taken(), 1u);
  deployment.memcached(1).GoOn();
  for (int i = 0; i < 4; ++i) ASSERT_EQ(deployment.Get("k"), "newer");
  ExpectAllTakePart(deployment);
  const auto held = deployment.memcached(1).Look("k");
  EXPECT_TRUE(!held || held == "newer") << *held;
  for (int i = 0; i < 4; ++i) ASSERT_EQ(deployment.Get("k"), "newer");
  EXPECT_EQ(deployment.memcached(1).Look("k"), "newer");
  EXPECT_EQ(deployment.Set("k", "newest").taken(), 2u);
}

// The mid-tier that ejected it is gone, and it holds an old value.
TEST_P(FailureTest, AMidTierThatStartsKnowsWhoMissedAWrite) {
  Deployment deployment(GetParam(), 2, Impatient(2));
  for (const char* const key : {"a", "b", "c", "d"}) ASSERT_EQ(deployment.Set(key, "old").taken(), 2u);
  EXPECT_THAT(deployment.RestartMidTier(), IsEmpty());
  const size_t stalled = ShardOf(HashOf("a"), 2) * 2;
  deployment.memcached(stalled).Stall();
  EXPECT_EQ(deployment.Set("a", "new").taken(), 1u);
  EXPECT_THAT(deployment.RestartMidTier(),
              ElementsAre(HasSubstr(deployment.leaf(stalled)->target() + " missed writes")));
  for (int i = 0; i < 4; ++i) ASSERT_EQ(deployment.Get("a"), "new");
  deployment.memcached(stalled).GoOn();
  ExpectAllTakePart(deployment);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(deployment.Get("a"), "new");
  EXPECT_EQ(deployment.memcached(stalled).Look("a"), "new");
  for (const char* const key : {"b", "c", "d"}) EXPECT_EQ(deployment.Get(key), "old");
  EXPECT_THAT(deployment.RestartMidTier(), IsEmpty());
}

// It ended when one replica had taken the write and the other one had not been sent it yet.
TEST_P(FailureTest, AMidTierThatStartsMakesReplicasEqualThatHaveHalfAWrite) {
  Deployment deployment(GetParam(), 1, Impatient(2));
  ASSERT_EQ(deployment.Set("k", "old").taken(), 2u);
  StoreSet half;
  half.set_key("k"), half.set_value("new"), half.set_version(deployment.replicas().NextVersion());
  half.set_members(0b11);
  StoreReply reply;
  Context ctx(kPatience);
  ASSERT_TRUE(Store::Stub(deployment.leaf(1)).Set(ctx, half, &reply).ok());
  EXPECT_THAT(deployment.RestartMidTier(), ElementsAre(HasSubstr(" missed writes")));
  ExpectAllTakePart(deployment);
  // It was not acknowledged: both values are right, but not in turns.
  const std::string value = deployment.Get("k");
  EXPECT_THAT(value, AnyOf("old", "new"));
  for (int i = 0; i < 4; ++i) ASSERT_EQ(deployment.Get("k"), value);
  for (const size_t leaf : {0u, 1u}) EXPECT_EQ(deployment.memcached(leaf).Look("k"), value);
  // The part still on its way is refused.
  Context late_ctx(kPatience);
  ASSERT_TRUE(Store::Stub(deployment.leaf(0)).Set(late_ctx, half, &reply).ok());
  EXPECT_TRUE(reply.late());
}

TEST_P(FailureTest, AMidTierThatStartsLeavesOutWhoIsSilent) {
  constexpr Nanos kShort = std::chrono::milliseconds(500);
  Deployment deployment(GetParam(), 1, Impatient(2));
  ASSERT_EQ(deployment.Set("k", "v").taken(), 2u);
  deployment.StopLeaf(0);
  EXPECT_THAT(deployment.RestartMidTier(kShort), ElementsAre(HasSubstr(" did not say")));
  EXPECT_FALSE(deployment.Replicas()[0].admitted());
  EXPECT_EQ(deployment.Set("k", "w").taken(), 1u);
  EXPECT_EQ(deployment.Get("k"), "w");
  deployment.StopLeaf(1);
  EXPECT_THAT(deployment.RestartMidTier(kShort), ElementsAre(HasSubstr("shard 0: no leaf says")));
}

TEST_P(FailureTest, GetsGoToOthersWhileAReplicaStalls) {
  Deployment deployment(GetParam(), 1, Impatient(2));
  deployment.Set("k", "v");
  deployment.memcached(0).Stall();
  // Half of them time out there and are made again; the third in a row, or a later one on a slow machine,
  // ejects it.
  const Deadline deadline = Deadline::In(kPatience);
  while (deployment.Replicas()[0].admitted()) {
    ASSERT_EQ(deployment.Get("k"), "v");
    ASSERT_FALSE(deadline.Expired());
  }
  const Replica stalled = deployment.Replicas()[0];
  EXPECT_GE(stalled.gets(), 3u);
  EXPECT_THAT(stalled.reason(), HasSubstr(" gets in a row timed out"));
  deployment.memcached(0).GoOn();
  ExpectAllTakePart(deployment);
}

TEST_P(FailureTest, TheOnlyReplicaIsNeverEjected) {
  Deployment deployment(GetParam(), 1, Impatient(1));
  deployment.Set("k", "v");
  deployment.memcached(0).Kill();
  SetReply set;
  GetReply get;
  for (int i = 0; i < 5; ++i) {
    const absl::Status status = deployment.Set("k", "w", &set);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("leaf " + deployment.leaf(0)->target()));
    EXPECT_EQ(deployment.Get("k", &get).code(), absl::StatusCode::kUnavailable);
  }
  deployment.memcached(0).Start();
  EXPECT_EQ(deployment.Get("k"), "(none)");
  EXPECT_EQ(deployment.Set("k", "w").taken(), 1u);
  EXPECT_EQ(deployment.Get("k"), "w");
}

TEST_P(FailureTest, DeadlinesHoldWhenTheOnlyMemcachedStalls) {
  constexpr Nanos kShort = std::chrono::milliseconds(100);
  Deployment deployment(GetParam(), 1, Impatient(1));
  deployment.Set("k", "v");
  deployment.memcached(0).Stall();
  GetReply get;
  SetReply set;
  const TimePoint before = Now();
  EXPECT_EQ(deployment.Get("k", &get, kShort).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(deployment.Set("k", "given up", &set, kShort).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_LT(Now() - before, std::chrono::seconds(5));
  deployment.memcached(0).GoOn();
  const Deadline deadline = Deadline::In(kPatience);
  while (!deployment.Set("k", "later", &set).ok()) ASSERT_FALSE(deadline.Expired());
  EXPECT_EQ(deployment.memcached(0).Look("k"), "later");
}

TEST_P(FailureTest, ALeafThatIsGoneIsEjectedToo) {
  Deployment deployment(GetParam(), 1, Impatient(2));
  deployment.Set("k", "v");
  deployment.StopLeaf(1);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(deployment.Get("k"), "v");
  EXPECT_EQ(deployment.Set("k", "w").taken(), 1u);
  EXPECT_FALSE(deployment.Replicas()[1].admitted());
}

// While a fiber waits for memcached its thread, the only one, answers others.
TEST(Fibers, GoOnWhileMemcachedStalls) {
  Deployment deployment("FIB1", 1, Patient(1));
  deployment.Set("k", "v");
  deployment.memcached(0).Stall();
  std::thread waits([&] { EXPECT_EQ(deployment.Get("k"), "v"); });
  const Deadline deadline = Deadline::In(kPatience);
  while (deployment.leaf_server(0).Sample().open_calls == 0) {
    ASSERT_FALSE(deadline.Expired());
    BetweenLooks();
  }
  Context ctx(kPatience);
  GetReply reply;
  const absl::Status status = Store::Stub(deployment.leaf(0)).Get(ctx, GetRequest(), &reply);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_EQ(deployment.leaf_server(0).Sample().open_calls, 1u);
  deployment.memcached(0).GoOn();
  waits.join();
}

// One replica never fails, the other does at random: whatever was acknowledged is read back, as from a map.
TEST_P(FailureTest, DoesWhatAMapDoesWhileAReplicaFailsAtRandomStress) {
  constexpr uint64_t kSeed = 7;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  // No timeouts, which a slow machine could make the good replica miss: one that stalls is ejected by hand.
  ReplicaOptions options = Patient(2);
  options.probe_interval = std::chrono::milliseconds(20);
  Deployment deployment(GetParam(), 1, options);
  std::map<std::string, std::string> model;
  Rng rng(kSeed);
  enum { kRuns, kStalled, kDead } other = kRuns;
  for (int i = 0; i < 1500; ++i) {
    if (rng.Below(40) == 0) {
      MemcachedProcess& process = deployment.memcached(1);
      if (other == kStalled) process.GoOn();
      if (other == kDead) process.Start();
      if (other == kRuns) {
        other = rng.Below(2) == 0 ? kStalled : kDead;
        if (other == kDead) process.Kill();
        if (other == kStalled) {
          // Nothing may be on its way that would admit it after it has been ejected.
          ExpectAllTakePart(deployment);
          process.Stall();
          ASSERT_TRUE(deployment.replicas().Eject(1, "stalls"));
        }
      } else {
        other = kRuns;
      }
    }
    // Not while it stalls: the new mid-tier would not know that, and wait for it as long as it waits for the good one.
    if (other != kStalled && rng.Below(100) == 0) deployment.RestartMidTier();
    const std::string key = "key" + std::to_string(rng.Below(20));
    switch (rng.Below(5)) {
      case 0:
      case 1:
        model[key] = std::to_string(i);
        ASSERT_GE(deployment.Set(key, model[key]).taken(), 1u);
        break;
      case 2: {
        DeleteReply reply;
        ASSERT_TRUE(deployment.Delete(key, &reply).ok());
        model.erase(key);
        break;
      }
      default:
        ASSERT_EQ(deployment.Get(key), model.contains(key) ? model[key] : "(none)") << i;
    }
  }
  if (other == kStalled) deployment.memcached(1).GoOn();
  if (other == kDead) deployment.memcached(1).Start();
  ExpectAllTakePart(deployment);
  EXPECT_GE(deployment.Replicas()[1].ejections(), 1u);
  for (int k = 0; k < 20; ++k) {
    const std::string key = "key" + std::to_string(k);
    const std::string expected = model.contains(key) ? model[key] : "(none)";
    for (int i = 0; i < 2; ++i) ASSERT_EQ(deployment.Get(key), expected);
    EXPECT_EQ(deployment.memcached(1).Look(key).value_or("(none)"), expected);
  }
}

}  // namespace
}  // namespace curtail::router
