// SPDX-License-Identifier: Apache-2.0
//
// The parts below the services: secrets, timelines on disk, generated people, the requests of load tests.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <map>

#include "apps/kit/temp_dir.h"
#include "apps/social/data.h"
#include "apps/social/folder.h"
#include "apps/social/people.h"
#include "apps/social/secrets.h"
#include "apps/social/timeline_store.h"
#include "apps/social/workload.h"
#include "curtail/base/strings.h"
#include "curtail/base/testing.h"
#include "curtail/rpc/jwt.h"
#include "social.curtail.h"

namespace curtail::social {
namespace {

using testing::HasSubstr;

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
  const std::string token = SignToken(secret, 42, 1000, 2000);
  const auto claims = (*verifier)->Verify(token, 1500);
  ASSERT_TRUE(claims.ok()) << claims.status();
  EXPECT_EQ(claims->subject, "42");
  EXPECT_FALSE((*verifier)->Verify(token, 2001).ok());
  EXPECT_FALSE((*verifier)->Verify(SignToken(std::string(32, 'o'), 42, 1000, 2000), 1500).ok());
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

class TimelineStoreTest : public testing::Test {
 protected:
  absl::Status Write(const std::function<absl::Status(SqlSession&)>& work) {
    return db_->Write(Deadline::In(kMaxTestWait), work);
  }
  std::vector<uint64_t> Read(uint64_t user, uint64_t before = 0, uint32_t limit = 100) {
    TimelinePage page;
    page.set_user(user), page.set_before(before), page.set_limit(limit);
    std::vector<TimelineStore::Entry> entries;
    EXPECT_TRUE(
        db_->Read(Deadline::In(kMaxTestWait), [&](SqlSession& s) { return store_.Read(s, page, &entries); })
            .ok());
    const Ids ids = IdsOf(entries);
    return {ids.ids().begin(), ids.ids().end()};
  }
  apps::TempDir dir_;
  const TimelineStore store_{16};
  std::unique_ptr<SqlDatabase> db_ =
      *OpenData({.folder = dir_.File("data"), .no_sync = true}, "test", {TimelineStore::kSchema});
};

TEST_F(TimelineStoreTest, KeepsTheNewestOfEachUser) {
  ASSERT_TRUE(Write([&](SqlSession& s) {
                absl::Status status;
                for (uint64_t post = 1; post <= 1000; ++post) {
                  status.Update(store_.Add(s, {.user = post % 2, .post = post, .author = 7}));
                  status.Update(store_.Add(s, {.user = post % 2, .post = post, .author = 7}));
                }
                return status;
              }).ok());
  for (uint64_t user : {0, 1}) {
    const std::vector<uint64_t> ids = Read(user);
    EXPECT_GE(ids.size(), 16u);
    EXPECT_LE(ids.size(), 19u);
    for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(ids[i], (user == 0 ? 1000 : 999) - 2 * i);
  }
  EXPECT_EQ(Read(0, 998, 2), (std::vector<uint64_t>{996, 994}));
}

TEST_F(TimelineStoreTest, RemovedEntriesMakeRoom) {
  ASSERT_TRUE(Write([&](SqlSession& s) {
                absl::Status status;
                for (uint64_t post = 1; post <= 500; ++post) {
                  status.Update(store_.Add(s, {.user = 1, .post = post, .author = 7}));
                  if (post > 10) status.Update(store_.Remove(s, 1, post));
                  if (post > 10) status.Update(store_.Remove(s, 1, post));
                }
                return status;
              }).ok());
  EXPECT_EQ(Read(1).size(), 10u);
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

TEST(SocialPeople, ReadsEdgeLists) {
  const apps::TempDir dir;
  uint64_t users = 0;
  const std::vector<Follow> both = {{1, 2}, {2, 1}, {2, 3}, {3, 2}};
  EXPECT_EQ(*ReadFollows(dir.Write("a", "# edges\n1 2\n2 3\n3 3\n\n"), &users), both);
  EXPECT_EQ(users, 4u);
  EXPECT_EQ(*ReadFollows(dir.Write("b", "%%MatrixMarket matrix\n% c\n3 3 2\n2 1\n3 2\n"), &users), both);
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
