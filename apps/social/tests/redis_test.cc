// SPDX-License-Identifier: Apache-2.0
//
// The graph, timelines and queues in a Redis, which dies, as those do that use it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "apps/social/data.h"
#include "apps/social/tests/social_testing.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/store/store_testing.h"

namespace curtail::social {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class SocialRedisTest : public testing::Test {
 protected:
  std::vector<uint64_t> Home(const Session& by) {
    std::vector<uint64_t> ids;
    const absl::Status status = app_.Home(by, &ids);
    EXPECT_TRUE(status.ok()) << status;
    return ids;
  }

  TempDir dir_;
  RedisProcess redis_{dir_.File("redis"),
                      {"--appendonly", "yes", "--appendfsync", "always", "--dir", dir_.File(".")}};
  SocialDeployment app_{"FDB1-2", /*monolith=*/false, {"--store", "redis=" + redis_.address()}};
};

TEST_F(SocialRedisTest, AnAcknowledgedPostOutlivesRedis) {
  const Session ann = app_.Register("ann"), bob = app_.Register("bob");
  ASSERT_TRUE(app_.Follow(bob, "ann").ok());
  const uint64_t first = app_.Compose(ann, "before").id();
  app_.AwaitQueue();
  EXPECT_THAT(Home(bob), ElementsAre(first));
  redis_.Kill();
  ComposeRequest request;
  request.set_text("meanwhile");
  Post post;
  EXPECT_TRUE(absl::IsUnavailable(app_.Compose(ann, request, &post)));
  redis_.Start();
  EXPECT_THAT(Home(bob), ElementsAre(first));
  const uint64_t second = app_.Compose(ann, "after").id();
  app_.AwaitQueue();
  EXPECT_THAT(Home(bob), ElementsAre(second, first));
  ASSERT_TRUE(app_.Delete(ann, first).ok());
  app_.AwaitQueue();
  std::vector<uint64_t> ids;
  ASSERT_TRUE(app_.Timeline(bob, "ann", &ids).ok());
  EXPECT_THAT(ids, ElementsAre(second));
  EXPECT_THAT(Home(ann), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(app_.DataFile("social-graph.db")));
  app_.Train();  // from the follow in Redis
  EXPECT_TRUE(std::filesystem::exists(app_.DataFile("follow.model")));
}

// The consumer dies with jobs that it took, and Redis dies after it.
TEST_F(SocialRedisTest, AnAcknowledgedPostOutlivesTheConsumerAndRedis) {
  const Session ann = app_.Register("ann"), bob = app_.Register("bob");
  ASSERT_TRUE(app_.Follow(bob, "ann").ok());
  app_.Kill("home-timeline");  // so that no job can be done
  std::vector<uint64_t> posts;
  for (int i = 0; i < 10; ++i) posts.insert(posts.begin(), app_.Compose(ann, "a post").id());
  app_.AwaitFailedAttempt();
  app_.Kill("write-home-timeline");
  redis_.Kill();
  redis_.Start();
  app_.Start("write-home-timeline");
  app_.Start("home-timeline");
  app_.AwaitQueue();
  app_.AwaitIndex();
  EXPECT_EQ(Home(bob), posts);
  std::vector<uint64_t> found;
  ASSERT_TRUE(app_.Search(bob, "post", /*newest=*/true, &found).ok());
  EXPECT_EQ(found, posts);
}

}  // namespace
}  // namespace curtail::social
