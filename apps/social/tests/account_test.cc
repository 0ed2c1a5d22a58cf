// SPDX-License-Identifier: Apache-2.0
//
// The end of an account, as other users see it.
#include <gmock/gmock.h>

#include <optional>
#include <vector>

#include "apps/social/data.h"
#include "apps/social/tests/account_testing.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"
#include "curtail/store/store_testing.h"

namespace curtail::social {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

enum class AccountIn : uint8_t { kFiles, kFilesAsync, kRedis, kPostgresql };

std::string NameOf(AccountIn kept) {
  constexpr const char* kNames[] = {"Files", "FilesAsync", "Redis", "Postgresql"};
  return kNames[static_cast<size_t>(kept)];
}

class AccountTest : public testing::TestWithParam<AccountIn> {
 protected:
  // Names the store, which it starts.
  std::vector<std::string> Flags() {
    if (GetParam() == AccountIn::kRedis) {
      redis_.emplace(dir_.File("redis"));
      return {"--store", "redis=" + redis_->address()};
    }
    if (GetParam() == AccountIn::kPostgresql) {
      postgresql_.emplace(dir_.File("s"), PostgresqlWords(dir_.File("s"), dir_.File("data")));
      return {"--store", "postgresql=" + postgresql_->address()};
    }
    return {};
  }
  Post Refer(const Session& by, const std::string& text, uint64_t reply_to, uint64_t repost_of) {
    Post post;
    const absl::Status status = app_.Compose(by, DraftOf(text, reply_to, repost_of), &post);
    EXPECT_TRUE(status.ok()) << status;
    return post;
  }
  std::vector<uint64_t> Home(const Session& by) {
    std::vector<uint64_t> ids;
    const absl::Status status = app_.Home(by, &ids);
    EXPECT_TRUE(status.ok()) << status;
    return ids;
  }
  std::vector<uint64_t> Find(const std::string& text) {
    std::vector<uint64_t> ids;
    const absl::Status status = app_.Search(Session(), text, /*newest=*/true, &ids);
    EXPECT_TRUE(status.ok()) << status;
    return ids;
  }
  bool Hides(const Session& viewer, const Session& author) {
    LookRequest look;
    look.set_viewer(viewer.user());
    look.add_authors(author.user());
    return !MustCall(app_, BlockUser::kHidden, look).ids().empty();
  }

  const TempDir dir_;
  std::optional<RedisProcess> redis_;
  std::optional<PostgresqlProcess> postgresql_;
  SocialDeployment app_{GetParam() == AccountIn::kFilesAsync ? "ADB1-2-2" : "FDB1-2", /*monolith=*/true,
                        Flags()};
  const Session ann_ = app_.Register("ann"), bob_ = app_.Register("bob"), eve_ = app_.Register("eve");
};

INSTANTIATE_TEST_SUITE_P(Stores, AccountTest,
                         testing::Values(AccountIn::kFiles, AccountIn::kFilesAsync, AccountIn::kRedis,
                                         AccountIn::kPostgresql),
                         [](const auto& info) { return NameOf(info.param); });

TEST_P(AccountTest, AllThatADeletedUserMadeIsGone) {
  ASSERT_TRUE(app_.Follow(bob_, "ann").ok());
  ASSERT_TRUE(app_.Follow(ann_, "bob").ok());
  ASSERT_TRUE(app_.Block(ann_, "eve").ok());
  const uint64_t bobs = app_.Compose(bob_, "bob's").id();
  std::vector<uint64_t> anns;
  for (int i = 0; i < kPosts; ++i) anns.push_back(app_.Compose(ann_, "pears for @bob and @eve").id());
  anns.push_back(Refer(ann_, "an answer", bobs, 0).id());
  anns.push_back(Refer(ann_, "", 0, bobs).id());
  const uint64_t repost = Refer(bob_, "", 0, anns[0]).id(), quote = Refer(bob_, "see", 0, anns[1]).id();
  ASSERT_TRUE(app_.Like(ann_, bobs).ok());
  ASSERT_TRUE(app_.Like(bob_, anns[2]).ok());
  MustCall(app_, Social::kSendMessage, MessageOf(ann_, "bob"));
  MustCall(app_, Social::kSendMessage, MessageOf(bob_, "ann"));
  MustCall(app_, Social::kSendMessage, MessageOf(eve_, "bob"));
  const uint64_t ad = MustCall(app_, Social::kCreateAd, AdOf(ann_)).id();
  MustCall(app_, Social::kCreateAd, AdOf(bob_));
  EXPECT_EQ(MustCall(app_, Social::kShowAds, FirstPage(bob_)).ads_size(), 2);
  EXPECT_EQ(MustCall(app_, Social::kShowAds, FirstPage(ann_)).ads_size(), 2);
  app_.AwaitQueue();
  app_.AwaitIndex();
  EXPECT_EQ(Home(bob_).size(), anns.size());
  EXPECT_EQ(Find("pears").size(), static_cast<size_t>(kPosts));
  EXPECT_TRUE(Hides(eve_, ann_));
  Post seen;
  ASSERT_TRUE(app_.Get(eve_, bobs, &seen).ok());
  EXPECT_EQ(seen.favorites() + seen.replies() + seen.reposts(), 3u);

  ASSERT_TRUE(MustCall(app_, Social::kDeleteUser, CredentialsOf("ann")).changed());
  app_.AwaitQueue();
  app_.AwaitIndex();

  for (const uint64_t post : anns) EXPECT_TRUE(absl::IsNotFound(app_.Get(bob_, post, &seen)));
  EXPECT_TRUE(absl::IsNotFound(app_.Get(bob_, repost, &seen)));
  ASSERT_TRUE(app_.Get(bob_, quote, &seen).ok());
  EXPECT_FALSE(seen.has_original());
  ASSERT_TRUE(app_.Get(bob_, bobs, &seen).ok());
  EXPECT_EQ(seen.favorites() + seen.replies() + seen.reposts(), 0u);
  EXPECT_THAT(Home(bob_), IsEmpty());
  EXPECT_THAT(Home(eve_), IsEmpty());
  EXPECT_THAT(Find("pears"), IsEmpty());
  std::vector<uint64_t> ids;
  EXPECT_TRUE(absl::IsNotFound(app_.Timeline(bob_, "ann", &ids)));
  ASSERT_TRUE(app_.Favorites(bob_, "bob", &ids).ok());
  EXPECT_THAT(ids, IsEmpty());
  std::vector<std::string> names;
  ASSERT_TRUE(app_.FavoredBy(bob_, bobs, &names).ok());
  EXPECT_THAT(names, IsEmpty());
  ASSERT_TRUE(app_.SearchUsers(bob_, "an", &names).ok());
  EXPECT_THAT(names, IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(Call(app_, Social::kGetStatistics, StatisticsOf("ann")).status()));
  const Statistics statistics = MustCall(app_, Social::kGetStatistics, StatisticsOf("bob"));
  EXPECT_EQ(statistics.followers() + statistics.following() + statistics.likes_received(), 0u);
  EXPECT_THAT(NamesIn(MustCall(app_, Social::kListFollowers, FirstPage(Session(), "bob"))), IsEmpty());
  EXPECT_THAT(NamesIn(MustCall(app_, Social::kListFollowing, FirstPage(Session(), "bob"))), IsEmpty());
  EXPECT_THAT(NamesIn(MustCall(app_, Social::kListConversations, FirstPage(bob_))), ElementsAre("eve"));
  EXPECT_EQ(MustCall(app_, Social::kShowAds, FirstPage(bob_)).ads_size(), 1);
  EXPECT_FALSE(Hides(eve_, ann_));

  // The old token writes nothing, and the password is that of no user.
  Post post;
  EXPECT_TRUE(absl::IsUnauthenticated(app_.Compose(ann_, DraftOf("late", 0, 0), &post)));
  EXPECT_TRUE(absl::IsUnauthenticated(app_.Follow(ann_, "bob")));
  EXPECT_TRUE(absl::IsUnauthenticated(app_.Block(ann_, "bob")));
  EXPECT_TRUE(absl::IsUnauthenticated(app_.Like(ann_, bobs)));
  const auto refused = [&](const auto& method, const auto& request) {
    const absl::Status status = Call(app_, method, request).status();
    EXPECT_TRUE(absl::IsUnauthenticated(status)) << method.path << ": " << status;
  };
  refused(Social::kSendMessage, MessageOf(ann_, "bob"));
  refused(Social::kCreateAd, AdOf(ann_));
  refused(Social::kShowAds, FirstPage(ann_));
  refused(Social::kClickAd, IdRequestOf(ann_, ad));
  refused(Social::kUploadMedia, UploadOf(ann_));
  refused(Social::kLogin, CredentialsOf("ann"));
  refused(Social::kDeleteUser, CredentialsOf("ann"));

  // The name is another user's, who has nothing of the old one.
  const Session fresh = app_.Register("ann");
  EXPECT_NE(fresh.user(), ann_.user());
  EXPECT_THAT(Home(fresh), IsEmpty());
  ASSERT_TRUE(app_.Timeline(fresh, "ann", &ids).ok());
  EXPECT_THAT(ids, IsEmpty());
  EXPECT_THAT(NamesIn(MustCall(app_, Social::kListFollowing, FirstPage(Session(), "ann"))), IsEmpty());
  EXPECT_THAT(NamesIn(MustCall(app_, Social::kListConversations, FirstPage(fresh))), IsEmpty());
  EXPECT_EQ(MustCall(app_, Social::kReadConversation, FirstPage(fresh, "bob")).messages_size(), 0);
  ASSERT_TRUE(app_.Follow(bob_, "ann").ok());
  const uint64_t first = app_.Compose(fresh, "the first").id();
  app_.AwaitQueue();
  EXPECT_THAT(Home(bob_), ElementsAre(first));
}

TEST_P(AccountTest, WhatADeletedUserDidLateIsRefused) {
  ASSERT_TRUE(app_.Follow(bob_, "ann").ok());
  MustCall(app_, Social::kDeleteUser, CredentialsOf("ann"));
  const auto refused = [&](const auto& method, const auto& request) {
    const absl::Status status = Call(app_, method, request).status();
    EXPECT_TRUE(absl::IsUnauthenticated(status)) << method.path << ": " << status;
  };
  const auto in_vain = [&](const auto& method, const auto& request) {
    const absl::Status status = Call(app_, method, request).status();
    EXPECT_TRUE(absl::IsNotFound(status)) << method.path << ": " << status;
  };
  Post post;
  post.set_id(77);
  post.mutable_author()->set_id(ann_.user());
  AdOfUser ad;
  ad.set_user(ann_.user());
  *ad.mutable_ad() = AdOf(ann_).ad();
  refused(PostStorage::kStore, post);
  refused(Favorite::kAdd, LikeOf(ann_, 77));
  refused(Ads::kCreate, ad);
  refused(SocialGraph::kFollow, EdgeOf(ann_, bob_));
  refused(SocialGraph::kBlock, EdgeOf(ann_, bob_));
  refused(DirectMessaging::kSend, DraftOf(ann_, bob_));
  in_vain(SocialGraph::kFollow, EdgeOf(bob_, ann_));
  in_vain(SocialGraph::kBlock, EdgeOf(bob_, ann_));
  in_vain(DirectMessaging::kSend, DraftOf(bob_, ann_));
  const GraphCounts counts = MustCall(app_, SocialGraph::kCountOf, UserOf(ann_));
  EXPECT_EQ(counts.followers() + counts.following(), 0u);
  EXPECT_EQ(MustCall(app_, PostStorage::kCountOf, UserOf(ann_)).count(), 0u);
}

TEST(Account, AWrongPasswordDeletesNothing) {
  SocialDeployment app("FIB1", /*monolith=*/true);
  const Session ann = app.Register("ann");
  const auto deleted = [&](const Credentials& credentials) {
    return Call(app, Social::kDeleteUser, credentials).status();
  };
  EXPECT_TRUE(absl::IsUnauthenticated(deleted(CredentialsOf("ann", "another password"))));
  EXPECT_TRUE(absl::IsUnauthenticated(deleted(CredentialsOf("bob"))));
  EXPECT_TRUE(absl::IsInvalidArgument(deleted(CredentialsOf("ann", "short"))));
  EXPECT_TRUE(absl::IsInvalidArgument(deleted(CredentialsOf("No Name"))));
  MustCall(app, Social::kLogin, CredentialsOf("ann"));
  app.Compose(ann, "here still");
}

}  // namespace
}  // namespace curtail::social
