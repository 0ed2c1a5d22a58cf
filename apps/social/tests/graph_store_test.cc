// SPDX-License-Identifier: Apache-2.0
//
// Who follows whom, in a file and in a real Redis.
#include <gmock/gmock.h>

#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apps/kit/accounts/gone.h"
#include "apps/kit/once_testing.h"
#include "apps/kit/run_here.h"
#include "apps/social/common/graph_store.h"
#include "apps/social/common/page.h"
#include "apps/social/data.h"
#include "apps/social/tests/social_testing.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"
#include "curtail/store/redis/redis.h"
#include "curtail/store/store_testing.h"

namespace curtail::social {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

enum class GraphIn { kFile, kRedis };
using Edges = std::set<std::pair<uint64_t, uint64_t>>;

class GraphStoreTest : public testing::TestWithParam<GraphIn> {
 protected:
  GraphStoreTest() {
    if (GetParam() == GraphIn::kFile) {
      db_ = *apps::OpenData({.folder = dir_.File("data"), .no_sync = true}, kGraphService,
                            {kGraphSchema, apps::kGoneSchema, apps::kOnceSchema});
      store_ = MakeSqlGraph(db_.get());
    } else {
      redis_.emplace(dir_.File("redis"));
      store_ = MakeRedisGraph(*StoreAddress::Parse(redis_->address()));
    }
  }

  // A request of that name. Returns what it changed, and in `*once` whether it is a repetition.
  absl::StatusOr<bool> FollowOnce(const char* name, uint64_t from, uint64_t to, apps::Once* once,
                                  bool follow = true) {
    const Edge edge = EdgeOf(from, to);
    const apps::NamedRequest request(name, Join(from, follow ? "+" : "-", to));
    *once = apps::Once(request.ctx(), from);
    Context ctx(kMaxTestWait);
    bool changed = false;
    const absl::Status status = apps::RunHere(follow ? store_->Follow(ctx, edge, *once, &changed)
                                                     : store_->Unfollow(ctx, edge, *once, &changed));
    if (!status.ok()) return status;
    return changed;
  }
  bool Follow(uint64_t from, uint64_t to, bool follow = true) {
    Context ctx(kMaxTestWait);
    bool changed = false;
    apps::Once none;
    const Edge edge = EdgeOf(from, to);
    const absl::Status status = apps::RunHere(follow ? store_->Follow(ctx, edge, none, &changed)
                                                     : store_->Unfollow(ctx, edge, none, &changed));
    EXPECT_TRUE(status.ok()) << status;
    return changed;
  }
  void Part(uint64_t one, uint64_t other) {
    Context ctx(kMaxTestWait);
    apps::Once none;
    const Edge edge = EdgeOf(one, other);
    const absl::Status status = apps::RunHere(store_->Part(ctx, edge, none));
    EXPECT_TRUE(status.ok()) << status;
  }
  absl::Status Refused(uint64_t from, uint64_t to) {
    Context ctx(kMaxTestWait);
    bool changed = false;
    apps::Once none;
    const Edge edge = EdgeOf(from, to);
    return apps::RunHere(store_->Follow(ctx, edge, none, &changed));
  }
  void Forget(uint64_t user) {
    Context ctx(kMaxTestWait);
    const absl::Status status = apps::RunHere(store_->Forget(ctx, user));
    EXPECT_TRUE(status.ok()) << status;
  }
  std::vector<uint64_t> Followers(uint64_t user, uint64_t after = 0, uint32_t limit = 0) {
    return Page(user, after, limit, /*followers=*/true);
  }
  std::vector<uint64_t> Followees(uint64_t user, uint64_t after = 0, uint32_t limit = 0) {
    return Page(user, after, limit, /*followers=*/false);
  }
  std::vector<uint64_t> Followed(uint64_t viewer, const std::vector<uint64_t>& authors) {
    Context ctx(kMaxTestWait);
    LookRequest look;
    look.set_viewer(viewer);
    look.mutable_authors()->Assign(authors.begin(), authors.end());
    Ids ids;
    const absl::Status status = apps::RunHere(store_->Followed(ctx, look, &ids));
    EXPECT_TRUE(status.ok()) << status;
    return {ids.ids().begin(), ids.ids().end()};
  }
  std::pair<uint64_t, uint64_t> Count(uint64_t user) {
    Context ctx(kMaxTestWait);
    GraphCounts counts;
    const absl::Status status = apps::RunHere(store_->Count(ctx, user, &counts));
    EXPECT_TRUE(status.ok()) << status;
    return {counts.followers(), counts.following()};
  }
  Edges All() {
    Edges edges;
    const auto add = [&](uint64_t user, uint64_t other) { EXPECT_TRUE(edges.emplace(user, other).second); };
    const absl::Status status = redis_ ? ForEachRedisFollow(*StoreAddress::Parse(redis_->address()), add)
                                       : ForEachSqlFollow(dir_.File("data"), add);
    EXPECT_TRUE(status.ok()) << status;
    return edges;
  }

  TempDir dir_;
  std::unique_ptr<SqlDatabase> db_;
  std::optional<RedisProcess> redis_;
  std::unique_ptr<GraphStore> store_;

  static Edge EdgeOf(uint64_t from, uint64_t to) {
    Edge edge;
    edge.set_from(from);
    edge.set_to(to);
    return edge;
  }

 private:
  std::vector<uint64_t> Page(uint64_t user, uint64_t after, uint32_t limit, bool followers) {
    Context ctx(kMaxTestWait);
    EdgePage page;
    page.set_user(user);
    page.set_after(after);
    page.set_limit(limit);
    Ids ids;
    const absl::Status status =
        apps::RunHere(followers ? store_->Followers(ctx, page, &ids) : store_->Followees(ctx, page, &ids));
    EXPECT_TRUE(status.ok()) << status;
    return {ids.ids().begin(), ids.ids().end()};
  }
};

TEST_P(GraphStoreTest, ARepetitionChangesNothing) {
  apps::Once once;
  EXPECT_TRUE(*FollowOnce("a", 1, 2, &once));
  EXPECT_FALSE(once.repeated());
  EXPECT_TRUE(*FollowOnce("b", 1, 2, &once, /*follow=*/false));
  EXPECT_TRUE(*FollowOnce("a", 1, 2, &once));  // late: it follows no longer
  EXPECT_TRUE(once.repeated());
  EXPECT_THAT(Followers(2), IsEmpty());
  EXPECT_TRUE(absl::IsAlreadyExists(FollowOnce("a", 1, 3, &once).status()));
  EXPECT_TRUE(*FollowOnce("a", 2, 1, &once));  // of another caller
  // A follow that is taken back leaves no name.
  EXPECT_TRUE(*FollowOnce("c", 1, 2, &once));
  Context ctx(kMaxTestWait);
  ASSERT_TRUE(apps::RunHere(store_->TakeBack(ctx, EdgeOf(1, 2), once)).ok());
  EXPECT_THAT(Followers(2), IsEmpty());
  EXPECT_TRUE(*FollowOnce("c", 1, 2, &once));
  EXPECT_THAT(Followers(2), ElementsAre(1));
}

INSTANTIATE_TEST_SUITE_P(Stores, GraphStoreTest, testing::Values(GraphIn::kFile, GraphIn::kRedis),
                         [](const auto& info) { return info.param == GraphIn::kFile ? "File" : "Redis"; });

TEST_P(GraphStoreTest, AFollowIsThereInBothDirections) {
  constexpr uint64_t kLarge = (uint64_t{1} << 63) - 1;
  EXPECT_TRUE(Follow(1, 2));
  EXPECT_FALSE(Follow(1, 2));
  EXPECT_TRUE(Follow(3, 2));
  EXPECT_TRUE(Follow(1, kLarge));
  EXPECT_THAT(Followers(2), ElementsAre(1, 3));
  EXPECT_THAT(Followees(1), ElementsAre(2, kLarge));
  EXPECT_THAT(Followed(1, {5, kLarge, 1, 2}), ElementsAre(kLarge, 2));
  EXPECT_THAT(Followed(2, {1, 3}), IsEmpty());
  EXPECT_EQ(Count(2), std::pair(uint64_t{2}, uint64_t{0}));
  EXPECT_EQ(Count(1), std::pair(uint64_t{0}, uint64_t{2}));
  EXPECT_TRUE(Follow(1, 2, false));
  EXPECT_FALSE(Follow(1, 2, false));
  EXPECT_THAT(Followers(2), ElementsAre(3));
  EXPECT_THAT(Followees(1), ElementsAre(kLarge));
}

TEST_P(GraphStoreTest, PartingEndsBothFollows) {
  Follow(1, 2), Follow(2, 1), Follow(2, 3);
  Part(2, 1);
  Part(2, 1);
  EXPECT_EQ(All(), (Edges{{2, 3}}));
}

// With more follows than are ended at once.
TEST_P(GraphStoreTest, AForgottenUserFollowsNoUserAndNoneFollowsIt) {
  constexpr uint64_t kUser = 7;
  Follow(1, 2);
  for (uint64_t other = 1000; other < 1000 + apps::kMostForgotten + 50; ++other) {
    Follow(kUser, other), Follow(other, kUser);
  }
  for (int twice = 0; twice < 2; ++twice) {
    Forget(kUser);
    EXPECT_EQ(All(), (Edges{{1, 2}}));
    EXPECT_TRUE(absl::IsUnauthenticated(Refused(kUser, 1)));
    EXPECT_TRUE(absl::IsNotFound(Refused(1, kUser)));
    EXPECT_EQ(Count(kUser), std::pair(uint64_t{0}, uint64_t{0}));
    EXPECT_THAT(Followees(1), ElementsAre(2));
  }
}

TEST_P(GraphStoreTest, PagesAreInTheOrderOfIds) {
  for (uint64_t id : {300, 2, 70'000, 41}) Follow(id, 7);
  EXPECT_THAT(Followers(7, 0, 2), ElementsAre(2, 41));
  EXPECT_THAT(Followers(7, 41, 2), ElementsAre(300, 70'000));
  EXPECT_THAT(Followers(7, 70'000, 2), IsEmpty());
}

// Ids that follow each other, by pages of one.
TEST_P(GraphStoreTest, EachIdIsOnOnePage) {
  for (uint64_t id = 1; id <= 5; ++id) Follow(id, 7), Follow(7, id);
  for (uint64_t id = 1; id <= 5; ++id) {
    EXPECT_THAT(Followers(7, id - 1, 1), ElementsAre(id));
    EXPECT_THAT(Followees(7, id - 1, 1), ElementsAre(id));
  }
  EXPECT_THAT(Followers(7, 5, 1), IsEmpty());
  EXPECT_THAT(Followees(7, 5, 1), IsEmpty());
}

// One more than the largest page has.
TEST_P(GraphStoreTest, TheLargestPageHasAThousandOfAThousandAndOne) {
  constexpr uint64_t kUser = 5000;
  std::vector<uint64_t> all;
  for (uint64_t id = 1; id <= apps::kMostIds + 1; ++id) {
    Follow(id, kUser);
    all.push_back(id);
  }
  for (const uint32_t limit : {uint32_t{0}, uint32_t{apps::kMostIds}, uint32_t{apps::kMostIds + 1}}) {
    std::vector<uint64_t> paged = Followers(kUser, 0, limit);
    EXPECT_EQ(paged.size(), size_t{apps::kMostIds}) << limit;
    const std::vector<uint64_t> rest = Followers(kUser, paged.back(), limit);
    paged.insert(paged.end(), rest.begin(), rest.end());
    EXPECT_EQ(paged, all) << limit;
  }
  EXPECT_EQ(Count(kUser), std::pair(uint64_t{apps::kMostIds + 1}, uint64_t{0}));
}

// Property: when several threads have changed a graph at once, both directions, the counts and the look at all agree.
TEST_P(GraphStoreTest, BothDirectionsAgreeStress) {
  constexpr uint64_t kUsers = 6;
  const uint64_t seed = TestSeed();
  const auto run = [&](uint64_t thread) {
    Rng rng(seed + thread);
    for (int i = 0; i < 100; ++i) {
      const uint64_t from = 1 + rng.Below(kUsers), to = 1 + rng.Below(kUsers);
      if (rng.Below(10) == 0) {
        Part(from, to);
      } else {
        Follow(from, to, rng.Below(3) > 0);
      }
    }
  };
  run(0);  // alone first
  std::vector<std::thread> threads;
  for (uint64_t t = 1; t < 4; ++t) threads.emplace_back(run, t);
  for (std::thread& thread : threads) thread.join();
  Edges out, in;
  for (uint64_t user = 1; user <= kUsers; ++user) {
    const std::vector<uint64_t> followees = Followees(user), followers = Followers(user);
    for (const uint64_t other : followees) out.emplace(user, other);
    for (const uint64_t other : followers) in.emplace(other, user);
    EXPECT_EQ(Count(user), std::pair(followers.size(), followees.size()));
  }
  EXPECT_EQ(out, in);
  EXPECT_EQ(out, All());
}

}  // namespace
}  // namespace curtail::social
