// SPDX-License-Identifier: Apache-2.0
//
// The router's answers while nothing fails, under many threading models. When something fails:
// failure_test.cc.
#include "apps/router/router_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "apps/kit/testing/configs_to_test.h"
#include "apps/router/router_testing.h"
#include "apps/router/versions.h"
#include "curtail/base/rng.h"
#include "curtail/store/memcached.h"
#include "curtail/store/memcached_codec.h"

namespace curtail::router {
namespace {

using ::testing::HasSubstr;
using namespace std::string_literals;

class RouterTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, RouterTest,
                         testing::ValuesIn(apps::ConfigsToTest({"SDB1-4", "FIB1", "ADB1-2-2"},
                                                               {"SIB1", "SIP1", "FDB1-2", "FIP1", "AIB1-1"})),
                         [](const auto& info) { return info.param.substr(0, 3); });

TEST_P(RouterTest, EveryKeyThatIsSetIsReadBack) {
  Deployment deployment(GetParam(), 3, Patient(2));
  std::map<std::string, std::string> expected = {{std::string(250, 'k'), "long key"},
                                                 {"a b\r\n\0\x7f"s, "key that text cannot carry"},
                                                 {std::string(186, ' '), "the longest such"},
                                                 {"\xc3\xa4", "UTF-8"},
                                                 {"empty", ""},
                                                 {"binary", "\0\r\nEN\r\n\xff"s},
                                                 {"largest", std::string(memcached::kMaxValueBytes, 'x')}};
  for (int i = 0; i < 200; ++i) expected["user" + std::to_string(i)] = "value " + std::to_string(i);
  for (const auto& [key, value] : expected) {
    ASSERT_EQ(deployment.Get(key), "(none)");
    const SetReply reply = deployment.Set(key, value);
    ASSERT_EQ(reply.taken(), 2u);
    ASSERT_EQ(reply.replicas(), 2u);
  }
  for (const auto& [key, value] : expected) ASSERT_EQ(deployment.Get(key), value);
  for (int i = 0; i < 200; ++i) {
    const std::string key = "user" + std::to_string(i);
    const size_t shard = ShardOf(HashOf(key), 3);
    for (size_t leaf = 0; leaf < 6; ++leaf) {
      ASSERT_EQ(deployment.memcached(leaf).Look(key),
                leaf / 2 == shard ? std::optional(expected[key]) : std::nullopt);
    }
  }
}

TEST_P(RouterTest, DoesWhatAMapDoes) {
  constexpr uint64_t kSeed = 20260731;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Deployment deployment(GetParam(), 2, Patient(2));
  std::map<std::string, std::string> model;
  Rng rng(kSeed);
  for (int i = 0; i < 1500; ++i) {
    const std::string key = "key" + std::to_string(rng.Below(60));
    switch (rng.Below(4)) {
      case 0: {
        const std::string value(rng.Below(3000), static_cast<char>(rng.Below(256)));
        deployment.Set(key, value);
        model[key] = value;
        break;
      }
      case 1: {
        DeleteReply reply;
        ASSERT_TRUE(deployment.Delete(key, &reply).ok());
        ASSERT_EQ(reply.taken(), 2u);
        ASSERT_EQ(reply.found(), model.erase(key) == 1) << i;
        break;
      }
      default:
        ASSERT_EQ(deployment.Get(key), model.contains(key) ? model[key] : "(none)") << i;
    }
  }
}

// Writers of the same keys run into each other; whichever write of a key came last, it did so at all
// replicas.
TEST_P(RouterTest, ReplicasEndEqualAfterConcurrentWritesStress) {
  constexpr size_t kReplicas = 3;
  constexpr int kWriters = 6, kKeys = 5;
  Deployment deployment(GetParam(), 1, Patient(kReplicas));
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      Rng rng(static_cast<uint64_t>(w));
      for (int i = 0; i < 150; ++i) {
        const std::string key = "key" + std::to_string(rng.Below(kKeys));
        if (rng.Below(8) == 0) {
          DeleteReply reply;
          ASSERT_TRUE(deployment.Delete(key, &reply).ok());
        } else {
          ASSERT_EQ(deployment.Set(key, std::to_string(w) + "/" + std::to_string(i)).taken(), kReplicas);
        }
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  for (int k = 0; k < kKeys; ++k) {
    const std::string key = "key" + std::to_string(k);
    const auto first = deployment.memcached(0).Look(key);
    for (size_t leaf = 1; leaf < kReplicas; ++leaf)
      EXPECT_EQ(deployment.memcached(leaf).Look(key), first) << key;
    EXPECT_EQ(deployment.Get(key), first.value_or("(none)"));
  }
}

TEST_P(RouterTest, GetsAreSpreadOverReplicas) {
  Deployment deployment(GetParam(), 1, Patient(3));
  deployment.Set("k", "v");
  for (int i = 0; i < 30; ++i) ASSERT_EQ(deployment.Get("k"), "v");
  for (const Replica& replica : deployment.Replicas()) EXPECT_EQ(replica.gets(), 10u) << replica.replica();
}

// A replica may have evicted a key. It is found at another one, and given back.
TEST_P(RouterTest, AReplicaThatHasForgottenAKeyGetsItBack) {
  Deployment deployment(GetParam(), 1, Patient(2));
  deployment.Set("k", "v");
  for (const size_t forgetful : {0u, 1u}) {
    Memcached memcached(*StoreAddress::Parse(deployment.memcached(forgetful).address()));
    ASSERT_TRUE(memcached.Flush(Deadline::In(kPatience)).ok());
    EXPECT_EQ(deployment.memcached(forgetful).Look("k"), std::nullopt);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(deployment.Get("k"), "v");  // one of them asks that one first
    EXPECT_EQ(deployment.memcached(forgetful).Look("k"), "v");
  }
  DeleteReply reply;
  ASSERT_TRUE(deployment.Delete("k", &reply).ok());
  EXPECT_TRUE(reply.found());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(deployment.Get("k"), "(none)");
}

TEST_P(RouterTest, BadRequestsAreInvalidArgument) {
  Deployment deployment(GetParam(), 1, Patient(2));
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "the key is empty"},
      {std::string(251, 'k'), "the key has 251 bytes"},
      {std::string(187, '\n'), "want at most 186"},
  };
  GetReply got;
  SetReply set;
  DeleteReply deleted;
  for (const auto& [key, says] : cases) {
    for (const absl::Status& status :
         {deployment.Get(key, &got), deployment.Set(key, "v", &set), deployment.Delete(key, &deleted)}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << says << ": " << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(says));
    }
  }
  const absl::Status status = deployment.Set("k", std::string(memcached::kMaxValueBytes + 1, 'x'), &set);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the value has 1048577 bytes; want at most 1048576"));
  for (const Replica& replica : deployment.Replicas()) EXPECT_TRUE(replica.admitted());
}

// A write that comes after a later one of its key is not done, and says how much later it would have to be.
TEST(Leaf, RefusesLateWrites) {
  Deployment deployment("SIB1", 1, Patient(1));
  const Store::Stub leaf(deployment.leaf(0));
  const uint64_t base = VersionOfNow();
  const auto set = [&](uint64_t version, const std::string& value) {
    StoreSet request;
    request.set_key("k"), request.set_value(value), request.set_version(base + version);
    StoreReply reply;
    Context ctx(kPatience);
    EXPECT_TRUE(leaf.Set(ctx, request, &reply).ok());
    return reply;
  };
  EXPECT_FALSE(set(5, "five").late());
  EXPECT_TRUE(set(5, "five again").late());
  const StoreReply late = set(4, "four");
  EXPECT_TRUE(late.late());
  EXPECT_EQ(late.newest(), base + 5);
  EXPECT_EQ(deployment.memcached(0).Look("k"), "five");
  StoreFlush flush;
  flush.set_version(base + 9);
  StoreReply reply;
  Context ctx(kPatience);
  ASSERT_TRUE(leaf.Flush(ctx, flush, &reply).ok());
  EXPECT_FALSE(reply.late());
  EXPECT_EQ(deployment.memcached(0).Look("k"), std::nullopt);
  EXPECT_TRUE(set(8, "before the flush").late());
  EXPECT_FALSE(set(10, "ten").late());
  EXPECT_EQ(deployment.memcached(0).Look("k"), "ten");
}

// Its versions are higher than those of the mid-tier, as another mid-tier's, or its own before the clock was
// set back.
TEST(Router, ASetThatIsLateIsDoneAgain) {
  Deployment deployment("SIB1", 1, Patient(2));
  StoreSet request;
  request.set_key("k"), request.set_value("theirs");
  request.set_version(deployment.replicas().NextVersion() + 1'000'000'000'000);
  StoreReply reply;
  Context ctx(kPatience);
  ASSERT_TRUE(Store::Stub(deployment.leaf(1)).Set(ctx, request, &reply).ok());
  EXPECT_EQ(deployment.Set("k", "ours").taken(), 2u);
  for (const size_t leaf : {0u, 1u}) EXPECT_EQ(deployment.memcached(leaf).Look("k"), "ours");
}

TEST(Replicas, MustMakeWholeShards) {
  Client client;
  Channel channel(&client, "127.0.0.1:1");
  const auto error = [&](size_t leaves, int replicas) {
    const auto set = ReplicaSet::Create(std::vector<Channel*>(leaves, &channel), {.replicas = replicas});
    EXPECT_EQ(set.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(set.status().message());
  };
  EXPECT_THAT(error(0, 1), HasSubstr("0 leaves"));
  EXPECT_THAT(error(5, 2), HasSubstr("5 leaves do not make shards of 2 replicas"));
  EXPECT_THAT(error(2, 0), HasSubstr("--replicas is 0; want 1 to 16"));
  EXPECT_THAT(error(17, 17), HasSubstr("want 1 to 16"));
}

}  // namespace
}  // namespace curtail::router
