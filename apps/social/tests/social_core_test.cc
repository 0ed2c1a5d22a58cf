// SPDX-License-Identifier: Apache-2.0
//
// The parts below the services: secrets, timelines on disk, generated people, the requests of load tests.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "apps/kit/accounts/gone.h"
#include "apps/kit/data/folder.h"
#include "apps/kit/index/text_index.h"
#include "apps/kit/once.h"
#include "apps/kit/run_here.h"
#include "apps/social/common/page.h"
#include "apps/social/common/timeline_store.h"
#include "apps/social/data.h"
#include "apps/social/load/people.h"
#include "apps/social/load/workload.h"
#include "apps/social/tests/social_testing.h"
#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"
#include "curtail/rpc/jwt.h"
#include "curtail/store/store_testing.h"
#include "social.curtail.h"

namespace curtail::social {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

enum class Kept { kInAFile, kInRedis };

class TimelineStoreTest : public testing::TestWithParam<Kept> {
 protected:
  using Entry = TimelineStore::Entry;

  void Add(std::vector<Entry> entries) {
    Context ctx(kMaxTestWait);
    const absl::Status status = apps::RunHere(store_->Add(ctx, std::move(entries)));
    EXPECT_TRUE(status.ok()) << status;
  }
  void Remove(std::vector<Entry> entries) {
    Context ctx(kMaxTestWait);
    const absl::Status status = apps::RunHere(store_->Remove(ctx, std::move(entries)));
    EXPECT_TRUE(status.ok()) << status;
  }
  std::vector<Entry> Page(uint64_t user, uint64_t before = 0, uint32_t limit = 100, uint32_t skip = 0) {
    TimelinePage page;
    page.set_user(user), page.set_before(before), page.set_limit(limit), page.set_skip(skip);
    Context ctx(kMaxTestWait);
    std::vector<Entry> entries;
    const absl::Status status = apps::RunHere(store_->Read(ctx, page, &entries));
    EXPECT_TRUE(status.ok()) << status;
    return entries;
  }
  std::vector<uint64_t> Read(uint64_t user, uint64_t before = 0, uint32_t limit = 100) {
    const ViewRequest view = ViewOf(0, Page(user, before, limit));
    return {view.ids().begin(), view.ids().end()};
  }
  // One that keeps so many.
  std::unique_ptr<TimelineStore> Open(uint64_t length) {
    if (GetParam() == Kept::kInAFile) {
      if (db_ == nullptr)
        db_ = *apps::OpenData({.folder = dir_.File("data"), .no_sync = true}, "test", {kTimelineSchema});
      return MakeSqlTimelines(db_.get(), length);
    }
    if (!redis_) redis_.emplace(dir_.File("redis"));
    return MakeRedisTimelines(*StoreAddress::Parse(redis_->address()), "test", length);
  }

  TempDir dir_;
  std::unique_ptr<SqlDatabase> db_;
  std::optional<RedisProcess> redis_;
  std::unique_ptr<TimelineStore> store_ = Open(16);
};

TEST_P(TimelineStoreTest, KeepsTheNewestOfEachUser) {
  std::vector<Entry> entries;
  for (uint64_t post = 1; post <= 1000; ++post) {
    entries.push_back({.user = post % 2, .post = post, .author = 7});
    entries.push_back({.user = post % 2, .post = post, .author = 7});
  }
  Add(entries);
  for (uint64_t user : {0, 1}) {
    const std::vector<uint64_t> ids = Read(user);
    EXPECT_GE(ids.size(), 16u);
    EXPECT_LE(ids.size(), 19u);
    for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(ids[i], (user == 0 ? 1000 : 999) - 2 * i);
  }
  EXPECT_EQ(Read(0, 998, 2), (std::vector<uint64_t>{996, 994}));
}

// Ids that follow each other, by pages of one. The page behind the last one is empty.
TEST_P(TimelineStoreTest, KeepsAllIfItIsMadeForZero) {
  store_ = Open(0);
  for (uint64_t post = 1; post <= 3000; post += 1000) {
    std::vector<Entry> entries;
    for (uint64_t i = 0; i < 1000; ++i) entries.push_back({.user = 1, .post = post + i, .author = 1});
    Add(entries);
  }
  EXPECT_EQ(Read(1, /*before=*/3, /*limit=*/5), (std::vector<uint64_t>{2, 1}));
  const std::vector<Entry> skipped = Page(1, /*before=*/0, /*limit=*/2, /*skip=*/2500);
  ASSERT_EQ(skipped.size(), 2u);
  EXPECT_EQ(skipped[0].post, 500u);
  EXPECT_EQ(skipped[1].post, 499u);
  Remove({{.user = 1, .post = 500, .author = 1}});
  EXPECT_EQ(Read(1, 501, 1), (std::vector<uint64_t>{499}));
}

TEST_P(TimelineStoreTest, EachEntryIsOnOnePage) {
  for (uint64_t post = 1; post <= 5; ++post) Add({{.user = 1, .post = post, .author = 7}});
  TimelinePage page;
  page.set_limit(1);
  uint64_t before = 0;
  for (uint64_t post = 5; post >= 1; --post) {
    const std::vector<Entry> entries = Page(1, before, 1);
    ASSERT_EQ(entries.size(), 1u);
    EXPECT_EQ(entries[0].post, post);
    before = NextOf(entries, page);
    EXPECT_EQ(before, post);
  }
  EXPECT_EQ(Page(1, before, 1).size(), 0u);
}

TEST_P(TimelineStoreTest, RemovedEntriesMakeRoom) {
  for (uint64_t post = 1; post <= 50; ++post) {
    const Entry entry{.user = 1, .post = post, .author = 7};
    Add({entry});
    if (post > 10) Remove({entry, entry});
  }
  EXPECT_EQ(Read(1).size(), 10u);
  for (uint64_t post = 51; post <= 57; ++post) Add({{.user = 1, .post = post, .author = 7}});
  EXPECT_EQ(Read(1).size(), 17u) << "what was removed does not count";
}

TEST_P(TimelineStoreTest, AForgottenTimelineIsEmpty) {
  for (uint64_t post = 1; post <= 17; ++post)
    Add({{.user = 1, .post = post, .author = 7}, {.user = 2, .post = post, .author = 7, .mentioned = true}});
  for (int twice = 0; twice < 2; ++twice) {
    Context ctx(kMaxTestWait);
    const absl::Status status = apps::RunHere(store_->Forget(ctx, 1));
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(Read(1).size(), 0u);
    EXPECT_EQ(Read(2).size(), 17u);
  }
  for (uint64_t post = 1; post <= 17; ++post) Add({{.user = 1, .post = post, .author = 7}});
  EXPECT_EQ(Read(1).size(), 17u);  // of which none counts twice
}

TEST_P(TimelineStoreTest, AMentionStays) {
  Add({{.user = 1, .post = 5, .author = 7}});
  Add({{.user = 1, .post = 5, .author = 7, .mentioned = true}});
  Add({{.user = 1, .post = 5, .author = 7}, {.user = 1, .post = 6, .author = 8}});
  const std::vector<Entry> entries = Page(1, 0, 2);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_FALSE(entries[0].mentioned);
  EXPECT_EQ(entries[1].post, 5u);
  EXPECT_EQ(entries[1].author, 7u);
  EXPECT_TRUE(entries[1].mentioned);
  Remove({{.user = 1, .post = 5, .author = 7}});
  EXPECT_EQ(Read(1), std::vector<uint64_t>{6});
}

TEST_P(TimelineStoreTest, ARemovalOfOneAuthorsPostLeavesThatOfAnother) {
  Add({{.user = 1, .post = 5, .author = 7}, {.user = 1, .post = 6, .author = 8}});
  Remove({{.user = 1, .post = 5, .author = 6}, {.user = 1, .post = 5, .author = 8}});
  EXPECT_EQ(Read(1), (std::vector<uint64_t>{6, 5}));
}

TEST_P(TimelineStoreTest, LargeIdsKeepTheirOrder) {
  constexpr uint64_t kFirst = (uint64_t{1} << 62) + 1;
  Add({{.user = 1, .post = kFirst + 1},
       {.user = 1, .post = kFirst},
       {.user = 1, .post = 255},
       {.user = 1, .post = 256}});
  EXPECT_EQ(Read(1), (std::vector<uint64_t>{kFirst + 1, kFirst, 256, 255}));
}

INSTANTIATE_TEST_SUITE_P(Stores, TimelineStoreTest, testing::Values(Kept::kInAFile, Kept::kInRedis),
                         [](const auto& info) { return info.param == Kept::kInAFile ? "File" : "Redis"; });

TEST(SocialPeople, GeneratedFollowsAreSkewedAndRepeatable) {
  const auto follows = GenerateFollows(3, 1000, 20'000);
  EXPECT_EQ(follows, GenerateFollows(3, 1000, 20'000));
  EXPECT_NE(follows, GenerateFollows(4, 1000, 20'000));
  ASSERT_EQ(follows.size(), 20'000u);
  size_t popular = 0;
  for (const auto& [from, to] : follows) {
    ASSERT_NE(from, to);
    ASSERT_LT(std::max(from, to), 1000u);
    if (to < 100) ++popular;
  }
  EXPECT_NEAR(static_cast<double>(popular) / 20'000, 0.5, 0.1);
}

TEST(SocialPeople, ReadsEdgeLists) {
  const TempDir dir;
  uint64_t users = 0;
  const std::vector<Follow> both = {{0, 1}, {1, 0}, {1, 2}, {2, 1}};
  EXPECT_EQ(*ReadFollows(dir.Write("a", "# edges\n1 2\n2 3\n3 3\n\n"), &users), both);
  EXPECT_EQ(users, 3u);
  EXPECT_EQ(*ReadFollows(dir.Write("b", "%%MatrixMarket matrix\n% c\n3 3 2\n2 1\n3 2\n"), &users), both);
  EXPECT_EQ(users, 3u);
  EXPECT_EQ(*ReadFollows(dir.Write("z", "1 0\n2 1\n3 3\n"), &users), both);  // from 0 on
  EXPECT_EQ(users, 4u);
  EXPECT_EQ(*ReadFollows(dir.Write("n", "# none\n"), &users), std::vector<Follow>());
  EXPECT_EQ(users, 0u);
  for (const char* bad : {"1\n", "1 x\n", "1 999999999999\n"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ReadFollows(dir.Write("c", bad), &users).status())) << bad;
  }
  EXPECT_TRUE(absl::IsNotFound(ReadFollows(dir.File("d"), &users).status()));
}

TEST(SocialWorkload, SendsTheMixAndJudgesReplies) {
  const TempDir dir;
  std::vector<apps::LoadUser> users;
  for (uint64_t i = 0; i < 10; ++i)
    users.push_back({.id = 100 + i, .name = NameOf(i), .token = "t" + NameOf(i)});
  ASSERT_TRUE(apps::WriteLoadUsers(dir.File("."), users).ok());
  auto read = apps::ReadLoadUsers(dir.File("."), kApplication);
  ASSERT_TRUE(read.ok()) << read.status();
  auto workload = MakeSocialWorkload(*std::move(read), {});
  ASSERT_TRUE(workload.ok()) << workload.status();
  std::map<std::string_view, int> methods;
  uint64_t composed = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    ++methods[(*workload)->MethodOf(i)];
    EXPECT_EQ((*workload)->Request(i), (*workload)->Request(i));
    if ((*workload)->MethodOf(i) == Social::kCompose.path) composed = i;
  }
  EXPECT_NEAR(methods[Social::kReadHomeTimeline.path], 600, 60);
  EXPECT_NEAR(methods[Social::kReadUserTimeline.path], 300, 60);
  EXPECT_NEAR(methods[Social::kCompose.path], 100, 40);
  ComposeRequest request;
  ASSERT_TRUE(request.ParseFromString((*workload)->Request(composed)));
  EXPECT_GE(request.text().size(), 256u);
  EXPECT_GE(request.media_size(), 1);
  EXPECT_EQ((*workload)->Score(composed, ""), 0);

  EXPECT_TRUE(absl::IsNotFound(apps::ReadLoadUsers(dir.File("nothing"), kApplication).status()));
  EXPECT_THAT(std::string(Message(apps::ReadLoadUsers(dir.File("nothing"), kApplication).status())),
              HasSubstr("social fill"));
  EXPECT_FALSE(MakeSocialWorkload(users, {.mix = "none"}).ok());
  EXPECT_FALSE(MakeSocialWorkload(users, {.users = "none"}).ok());
}

}  // namespace
}  // namespace curtail::social
