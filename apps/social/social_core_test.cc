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

#include "apps/kit/once.h"
#include "apps/kit/temp_dir.h"
#include "apps/social/data.h"
#include "apps/social/folder.h"
#include "apps/social/gone.h"
#include "apps/social/page.h"
#include "apps/social/people.h"
#include "apps/social/post_index.h"
#include "apps/social/run_here.h"
#include "apps/social/secrets.h"
#include "apps/social/social_testing.h"
#include "apps/social/timeline_store.h"
#include "apps/social/workload.h"
#include "curtail/base/strings.h"
#include "curtail/base/testing.h"
#include "curtail/rpc/jwt.h"
#include "curtail/store/store_testing.h"
#include "social.curtail.h"

namespace curtail::social {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Gone, TakesTheNamesOfItsRequestsAlong) {
  const apps::TempDir dir;
  const auto db =
      *OpenData({.folder = dir.File("data"), .no_sync = true}, "test", {kGoneSchema, apps::kOnceSchema});
  std::vector<uint64_t> left;
  const absl::Status status = db->Write(Deadline::In(kMaxTestWait), [&](SqlSession& s) {
    absl::Status each;
    for (const uint64_t caller : {7, 8})
      each.Update(s.Execute("INSERT INTO requests VALUES (?1, 'a name', '', x'00', 1, 0)", {caller}));
    each.Update(NoteGone(s, 7));
    each.Update(s.Query("SELECT caller FROM requests", {},
                        [&](const SqlRow& row) { left.push_back(row.Unsigned(0)); }));
    return each;
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(left, ElementsAre(8u));
}

TEST(SocialSecrets, AllProcessesGetOneSecretThatOthersCannotRead) {
  const apps::TempDir dir;
  const std::string path = dir.File("secret");
  const auto first = SecretOf(path);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->size(), 32u);
  EXPECT_EQ(*SecretOf(path), *first);
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(SecretOf(path).status()));
  EXPECT_FALSE(SecretOf(dir.Write("short", "secret")).ok());
  EXPECT_FALSE(SecretOf(dir.File("no/such/folder")).ok());
}

TEST(SocialSecrets, ATokenNamesItsUserUntilItExpires) {
  const std::string secret(32, 's');
  auto verifier = JwtVerifier::Load({.secret = secret, .issuer = kIssuer, .leeway_s = 0});
  ASSERT_TRUE(verifier.ok()) << verifier.status();
  const std::string token = SignToken(secret, 42, "3.17", 1000, 2000);
  const auto claims = (*verifier)->Verify(token, 1500);
  ASSERT_TRUE(claims.ok()) << claims.status();
  EXPECT_EQ(claims->subject, "42");
  EXPECT_EQ(claims->id, "3.17");
  EXPECT_FALSE((*verifier)->Verify(token, 2001).ok());
  EXPECT_FALSE((*verifier)->Verify(SignToken(std::string(32, 'o'), 42, "3.17", 1000, 2000), 1500).ok());
}

TEST(SocialSecrets, OnlyThePasswordFitsItsHash) {
  const auto hash = HashPassword("a password");
  ASSERT_TRUE(hash.ok()) << hash.status();
  EXPECT_NE(*HashPassword("a password"), *hash);  // salted
  EXPECT_TRUE(IsPassword("a password", *hash));
  EXPECT_FALSE(IsPassword("b password", *hash));
  EXPECT_FALSE(IsPassword("a password", ""));
  EXPECT_FALSE(IsPassword("a password", hash->substr(1)));
}

TEST(SocialFolder, IsPrivateAndFoundFromTheEnvironment) {
  const apps::TempDir dir;
  ASSERT_EQ(setenv("XDG_STATE_HOME", dir.File("state").c_str(), 1), 0);
  const auto folder = DataFolder("auto");
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(*folder, dir.File("state/curtail/social"));
  struct stat info;
  ASSERT_EQ(stat(folder->c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  EXPECT_TRUE(absl::IsFailedPrecondition(DataFolder(dir.Write("file", "")).status()));
}

enum class Kept { kInAFile, kInRedis };

class TimelineStoreTest : public testing::TestWithParam<Kept> {
 protected:
  using Entry = TimelineStore::Entry;

  void Add(std::vector<Entry> entries) {
    Context ctx(kMaxTestWait);
    const absl::Status status = RunHere(store_->Add(ctx, std::move(entries)));
    EXPECT_TRUE(status.ok()) << status;
  }
  void Remove(std::vector<Entry> entries) {
    Context ctx(kMaxTestWait);
    const absl::Status status = RunHere(store_->Remove(ctx, std::move(entries)));
    EXPECT_TRUE(status.ok()) << status;
  }
  std::vector<Entry> Page(uint64_t user, uint64_t before = 0, uint32_t limit = 100, uint32_t skip = 0) {
    TimelinePage page;
    page.set_user(user), page.set_before(before), page.set_limit(limit), page.set_skip(skip);
    Context ctx(kMaxTestWait);
    std::vector<Entry> entries;
    const absl::Status status = RunHere(store_->Read(ctx, page, &entries));
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
        db_ = *OpenData({.folder = dir_.File("data"), .no_sync = true}, "test", {kTimelineSchema});
      return MakeSqlTimelines(db_.get(), length);
    }
    if (!redis_) redis_.emplace(dir_.File("redis"));
    return MakeRedisTimelines(*StoreAddress::Parse(redis_->address()), "test", length);
  }

  apps::TempDir dir_;
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
}

TEST_P(TimelineStoreTest, AForgottenTimelineIsEmpty) {
  for (uint64_t post = 1; post <= 17; ++post)
    Add({{.user = 1, .post = post, .author = 7}, {.user = 2, .post = post, .author = 7, .mentioned = true}});
  for (int twice = 0; twice < 2; ++twice) {
    Context ctx(kMaxTestWait);
    const absl::Status status = RunHere(store_->Forget(ctx, 1));
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

class PostIndexTest : public testing::Test {
 protected:
  std::unique_ptr<PostIndex> Open() {
    auto index = PostIndex::Open(dir_.File("index"), /*sync=*/false);
    EXPECT_TRUE(index.ok()) << index.status();
    return *std::move(index);
  }
  static std::vector<uint64_t> Find(const PostIndex& index, const PostIndex::Query& query) {
    std::vector<PostIndex::Hit> hits;
    const absl::Status status = index.Find(query, &hits);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(std::ranges::is_sorted(hits, std::greater<>(), &PostIndex::Hit::score));
    std::vector<uint64_t> ids;
    for (const PostIndex::Hit& hit : hits) ids.push_back(hit.post);
    return ids;
  }
  static void Apply(PostIndex& index, const std::vector<PostIndex::Change>& changes) {
    const absl::Status status = index.Apply(changes);
    EXPECT_TRUE(status.ok()) << status;
  }
  apps::TempDir dir_;
};

TEST_F(PostIndexTest, FindsPostsThatHoldAllWords) {
  auto index = Open();
  const uint64_t late = uint64_t{1} << 62;
  Apply(*index,
        {{1, "The quick brown fox"}, {2, "the fox, the fox, the FOX!"}, {late, "a quick dog; ähnlich 東京"}});
  EXPECT_THAT(Find(*index, {.text = "quick", .newest = true, .limit = 9}), ElementsAre(late, 1));
  EXPECT_THAT(Find(*index, {.text = "fox THE", .limit = 9}), ElementsAre(2, 1));  // it is all of post 2
  EXPECT_THAT(Find(*index, {.text = "fox dog", .limit = 9}), IsEmpty());
  EXPECT_THAT(Find(*index, {.text = "ÄHNLICH", .limit = 9}), ElementsAre(late));
  EXPECT_THAT(Find(*index, {.text = "quick -fox OR Q1 fo*", .limit = 9}), IsEmpty());  // no syntax
  std::vector<PostIndex::Hit> hits;
  EXPECT_TRUE(absl::IsInvalidArgument(index->Find({.text = " ... ", .limit = 9}, &hits)));
  EXPECT_TRUE(
      absl::IsInvalidArgument(index->Find({.text = "a b c d e f g h i j k l m n o p q", .limit = 9}, &hits)));
}

TEST_F(PostIndexTest, KeepsWhatWasAppliedLast) {
  auto index = Open();
  Apply(*index, {{1, "one"}, {2, "one"}});
  Apply(*index, {{2, "two"}, {1, "", /*remove=*/true}, {7, "", /*remove=*/true}});
  EXPECT_TRUE(absl::IsUnavailable(PostIndex::Open(dir_.File("index"), false).status()));  // in use
  index = nullptr;
  index = Open();
  EXPECT_THAT(Find(*index, {.text = "one", .limit = 9}), IsEmpty());
  EXPECT_THAT(Find(*index, {.text = "two", .limit = 9}), ElementsAre(2));
  EXPECT_FALSE(PostIndex::Open(dir_.Write("file", "no index"), false).ok());
}

// Property: by time, a query finds what a look at every post finds, page after page.
TEST_F(PostIndexTest, AgreesWithALookAtEveryPost) {
  Rng rng(TestSeed());
  auto index = Open();
  std::map<uint64_t, std::set<uint64_t>> posts;
  for (int round = 0; round < 20; ++round) {
    std::vector<std::string> texts(20);
    std::vector<PostIndex::Change> changes;
    for (std::string& text : texts) {
      const uint64_t post = 1 + rng.Below(100);
      const bool remove = rng.Below(4) == 0;
      posts[post].clear();
      for (uint64_t i = rng.Below(5); i > 0 && !remove; --i) {
        const uint64_t word = rng.Below(6);
        text += Join(" w", word);
        posts[post].insert(word);
      }
      changes.push_back({post, text, remove});
    }
    Apply(*index, changes);
    const uint64_t a = rng.Below(6), b = rng.Below(6);
    std::vector<uint64_t> expected, found;
    for (auto post = posts.rbegin(); post != posts.rend(); ++post) {
      if (post->second.contains(a) && post->second.contains(b)) expected.push_back(post->first);
    }
    std::vector<uint64_t> page;
    uint64_t before = 0;
    do {
      page = Find(*index, {.text = Join("w", a, " w", b), .newest = true, .before = before, .limit = 3});
      found.insert(found.end(), page.begin(), page.end());
      if (!page.empty()) before = page.back();
    } while (page.size() == 3);
    EXPECT_EQ(found, expected) << a << " " << b;
  }
}

// Property: with more posts than a block has, which come in about the order of their ids, a query finds what a look at
// every post finds, by time and by score.
TEST_F(PostIndexTest, AgreesWithALookAtVeryManyPosts) {
  Rng rng(TestSeed());
  auto index = Open();
  constexpr uint64_t kPosts = 5000, kTogether = 50;
  std::vector<uint64_t> ids(kPosts);
  for (uint64_t i = 0; i < kPosts; ++i) ids[i] = i + 1;
  for (uint64_t i = 0; i + kTogether < kPosts; ++i) std::swap(ids[i], ids[i + rng.Below(kTogether)]);
  std::swap(ids[10], ids[kPosts - 10]);  // one is very late, and one very early
  std::map<std::string, std::vector<std::pair<uint64_t, uint64_t>>> expected;  // how often, and the post
  std::vector<std::string> texts;
  for (const uint64_t id : ids) {
    texts.emplace_back("all");
    for (const auto& [word, one_in] : {std::pair("all", 20), {"rare", 700}, {"some", 9}}) {
      const uint64_t times = rng.Below(one_in) == 0 ? 1 + rng.Below(3) : 0;
      for (uint64_t i = 0; i < times; ++i) texts.back() += Join(" ", word);
      const uint64_t all = times + (std::string_view(word) == "all" ? 1 : 0);
      if (all > 0) expected[word].emplace_back(all, id);
    }
  }
  for (uint64_t i = 0; i < kPosts; i += 500) {
    std::vector<PostIndex::Change> changes;
    for (uint64_t j = i; j < i + 500; ++j) changes.push_back({ids[j], texts[j]});
    Apply(*index, changes);
  }
  for (auto& [word, posts] : expected) {
    const auto found = [&](bool newest, uint64_t before) {
      return Find(*index, {.text = word, .newest = newest, .before = before, .limit = 40});
    };
    const auto first = [&](uint64_t before) {
      std::vector<uint64_t> most;
      for (const auto& [times, post] : posts) {
        if (post < before && most.size() < 40) most.push_back(post);
      }
      return most;
    };
    std::ranges::sort(posts, std::greater<>());
    EXPECT_EQ(found(/*newest=*/false, 0), first(kPosts + 1)) << word;
    std::ranges::sort(posts, std::greater<>(), [](const auto& one) { return one.second; });
    EXPECT_EQ(found(/*newest=*/true, 0), first(kPosts + 1)) << word;
    for (const uint64_t before : {uint64_t{4000}, kPosts / 2, uint64_t{1025}, uint64_t{30}, uint64_t{1}})
      EXPECT_EQ(found(/*newest=*/true, before), first(before)) << word << " before " << before;
  }
}

// Property: whoever searches while others change the index finds each post that stays.
TEST_F(PostIndexTest, SearchesWhileItChangesStress) {
  auto index = Open();
  Apply(*index, {{1, "stays here"}});
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 50; ++i) {
        if (t == 0) {
          Apply(*index, {{2 + i, "stays away"}, {i == 0 ? 999 : 1 + i, "", /*remove=*/true}});
        } else {
          EXPECT_THAT(Find(*index, {.text = "here stays", .limit = 9}), ElementsAre(1));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

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

TEST(SocialIds, TellHowLongAgoTheyWereGiven) {
  constexpr std::chrono::hours kDay(24);
  constexpr uint64_t kMs = uint64_t{1} << 22;
  const uint64_t id = 86'400'000 * kMs + 4097;
  EXPECT_EQ(IdBefore(id, std::chrono::milliseconds(0)), id);
  EXPECT_EQ(IdBefore(id, kDay), 4097u);
  EXPECT_EQ(IdBefore(id + kMs, kDay), kMs + 4097);
  EXPECT_EQ(IdBefore(id - kMs, kDay), 0u);
}

TEST(SocialPeople, ReadsEdgeLists) {
  const apps::TempDir dir;
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
  const apps::TempDir dir;
  std::vector<LoadUser> users;
  for (uint64_t i = 0; i < 10; ++i)
    users.push_back({.id = 100 + i, .name = NameOf(i), .token = "t" + NameOf(i)});
  ASSERT_TRUE(WriteLoadUsers(dir.File("."), users).ok());
  auto read = ReadLoadUsers(dir.File("."));
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

  EXPECT_TRUE(absl::IsNotFound(ReadLoadUsers(dir.File("nothing")).status()));
  EXPECT_THAT(std::string(Message(ReadLoadUsers(dir.File("nothing")).status())), HasSubstr("social fill"));
  EXPECT_FALSE(MakeSocialWorkload(users, {.mix = "none"}).ok());
  EXPECT_FALSE(MakeSocialWorkload(users, {.users = "none"}).ok());
}

}  // namespace
}  // namespace curtail::social
