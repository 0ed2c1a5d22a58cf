// SPDX-License-Identifier: Apache-2.0
//
// The end of an account, as other users see it.
#include <gmock/gmock.h>

#include <functional>
#include <initializer_list>
#include <optional>
#include <thread>
#include <vector>

#include "apps/kit/temp_dir.h"
#include "apps/social/social_testing.h"
#include "content.curtail.h"
#include "curtail/base/strings.h"
#include "curtail/base/testing.h"
#include "curtail/store/sql/sqlite.h"
#include "curtail/store/store_testing.h"
#include "messages.curtail.h"
#include "models.curtail.h"
#include "reactions.curtail.h"
#include "users.curtail.h"

namespace curtail::social {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Lt;

// More than are deleted at once.
constexpr int kPosts = 40;

// The front end's methods, and those of the other services of a monolith, which have the same address.
template <class Request, class Reply>
absl::StatusOr<Reply> Call(const SocialDeployment& app, const Method<Request, Reply>& method,
                           const std::type_identity_t<Request>& request) {
  Context ctx(kMaxTestWait);
  Reply reply;
  absl::Status status = app.Front().channel()->Call(ctx, method.path, request, &reply);
  if (!status.ok()) return status;
  return reply;
}
template <class Request, class Reply>
Reply MustCall(const SocialDeployment& app, const Method<Request, Reply>& method,
               const std::type_identity_t<Request>& request) {
  const absl::StatusOr<Reply> reply = Call(app, method, request);
  EXPECT_TRUE(reply.ok()) << method.path << ": " << reply.status();
  return reply.ok() ? *reply : Reply();
}

// Requests of the front end's.
Credentials CredentialsOf(const std::string& name, const std::string& password = kTestPassword) {
  Credentials credentials;
  credentials.set_name(name), credentials.set_password(password);
  return credentials;
}
PostRequest IdRequestOf(const Session& by, uint64_t id) {
  PostRequest request;
  request.set_token(by.token()), request.set_id(id);
  return request;
}
HomePage FirstPage(const Session& by) {
  HomePage page;
  page.set_token(by.token()), page.set_limit(10);
  return page;
}
UserPage FirstPage(const Session& by, const std::string& name) {
  UserPage page;
  page.set_token(by.token()), page.set_name(name);
  return page;
}
UserRequest StatisticsOf(const std::string& name) {
  UserRequest request;
  request.set_name(name);
  return request;
}
MessageRequest MessageOf(const Session& by, const std::string& to) {
  MessageRequest request;
  request.set_token(by.token()), request.set_to(to), request.set_text("a word");
  return request;
}
AdRequest AdOf(const Session& by) {
  AdRequest request;
  request.set_token(by.token());
  request.mutable_ad()->set_title("Pears");
  request.mutable_ad()->set_url("http://example.org/");
  request.mutable_ad()->set_topic("fruit");
  return request;
}
MediaUpload UploadOf(const Session& by) {
  MediaUpload request;
  request.set_token(by.token());
  request.mutable_file()->set_data(std::string("\x89PNG\r\n\x1a\n\0pixels", 15));
  return request;
}
ComposeRequest DraftOf(const std::string& text, uint64_t reply_to, uint64_t repost_of) {
  ComposeRequest request;
  request.set_text(text), request.set_reply_to(reply_to), request.set_repost_of(repost_of);
  return request;
}

// Requests of other services'.
UserId UserOf(const Session& of) {
  UserId user;
  user.set_user(of.user());
  return user;
}
Edge EdgeOf(const Session& from, const Session& to) {
  Edge edge;
  edge.set_from(from.user()), edge.set_to(to.user());
  return edge;
}
Liking LikeOf(const Session& by, uint64_t post) {
  Liking like;
  like.set_user(by.user()), like.set_post(post), like.set_author(1);
  return like;
}
MessageDraft DraftOf(const Session& from, const Session& to) {
  MessageDraft draft;
  draft.set_from(from.user()), draft.set_to(to.user()), draft.set_text("a word");
  return draft;
}
Ids IdsOf(const std::vector<uint64_t>& all) {
  Ids ids;
  ids.mutable_ids()->Assign(all.begin(), all.end());
  return ids;
}

std::vector<std::string> NamesIn(const People& people) {
  std::vector<std::string> names;
  for (const Person& person : people.people()) names.push_back(person.name());
  return names;
}
std::vector<std::string> NamesIn(const Conversations& listed) {
  std::vector<std::string> names;
  for (const Conversation& one : listed.conversations()) names.push_back(one.with().name());
  return names;
}

// Changes the file of a service, which goes on.
void Alter(const SocialDeployment& app, const std::string& service, const std::string& sql,
           std::initializer_list<SqlValue> values = {}) {
  const auto session = internal::SqliteSession::Open({.path = app.DataFile(service + ".db")});
  ASSERT_TRUE(session.ok()) << session.status();
  const absl::Status status = (*session)->Execute(sql, values);
  EXPECT_TRUE(status.ok()) << status;
}

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

  const apps::TempDir dir_;
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

// First a service is down, then one stands still at each step in turn.
TEST(Account, ADeletionThatFailedGoesOnWhenItIsCalledAgain) {
  SocialDeployment app("FIB1", /*monolith=*/false);
  const Session ann = app.Register("ann"), bob = app.Register("bob");
  ASSERT_TRUE(app.Follow(bob, "ann").ok());
  for (int i = 0; i < kPosts; ++i) app.Compose(ann, "a post");
  MustCall(app, Social::kCreateAd, AdOf(ann));
  const auto expect_closed = [&] {
    std::vector<uint64_t> ids;
    EXPECT_TRUE(absl::IsNotFound(app.Timeline(bob, "ann", &ids)));
    EXPECT_TRUE(absl::IsUnauthenticated(Call(app, Social::kLogin, CredentialsOf("ann")).status()));
    EXPECT_TRUE(absl::IsAlreadyExists(Call(app, Social::kRegister, CredentialsOf("ann")).status()));
  };
  app.Kill("ads");
  absl::Status status = app.DeleteUser("ann");
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("call again"));
  expect_closed();
  app.Start("ads");
  const Deadline deadline = Deadline::In(kMaxTestWait);
  do {
    status = Call(app, Social::kShowAds, FirstPage(bob)).status();  // until the front end has found it again
  } while (absl::IsUnavailable(status) && !deadline.Expired());
  ASSERT_TRUE(status.ok()) << status;
  for (const char* service : {"favorite", "compose-post", "block-user"}) {  // which D2, D3 and D4 call
    app.Stall(service);
    app.SetPatience(std::chrono::milliseconds(500));
    status = app.DeleteUser("ann");
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << service << ": " << status;
    app.SetPatience(kMaxTestWait);
    app.GoOn(service);
    expect_closed();
  }
  status = app.DeleteUser("ann");
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_NE(app.Register("ann").user(), ann.user());
  app.AwaitQueue();
  std::vector<uint64_t> ids;
  ASSERT_TRUE(app.Home(bob, &ids).ok());
  EXPECT_THAT(ids, IsEmpty());
  EXPECT_EQ(MustCall(app, Social::kShowAds, FirstPage(bob)).ads_size(), 0);
}

// More of each kind than one transaction deletes.
TEST(Account, MuchIsDeletedInPieces) {
  constexpr uint64_t kMany = 1100;
  SocialDeployment app("FIB1", /*monolith=*/true, {"--no-sync"});
  const Session ann = app.Register("ann"), bob = app.Register("bob");
  std::vector<uint64_t> posts;
  for (uint64_t post = 1; post <= kMany; ++post) {
    posts.push_back(post);
    MustCall(app, Favorite::kAdd, LikeOf(ann, post));
    MustCall(app, DirectMessaging::kSend, post % 2 == 0 ? DraftOf(ann, bob) : DraftOf(bob, ann));
  }
  MustCall(app, Favorite::kAdd, LikeOf(bob, posts[0]));
  MustCall(app, Social::kDeleteUser, CredentialsOf("ann"));
  const Counts counts = MustCall(app, Favorite::kCount, IdsOf({posts.begin(), posts.begin() + 1000}));
  for (int i = 0; i < counts.counts_size(); ++i) EXPECT_EQ(counts.counts(i), i == 0 ? 1u : 0u) << i;
  EXPECT_EQ(MustCall(app, Favorite::kCount, IdsOf({posts.back()})).counts(0), 0u);
  EXPECT_THAT(NamesIn(MustCall(app, Social::kListConversations, FirstPage(bob))), IsEmpty());
  MessagePage page;
  page.set_user(bob.user()), page.set_other(ann.user());
  EXPECT_EQ(MustCall(app, DirectMessaging::kRead, page).messages_size(), 0);
}

// A conversation that cannot be deleted holds up its own piece. A repetition goes on.
TEST(Account, ConversationsAreDeletedInPieces) {
  constexpr int kMany = 60;
  SocialDeployment app("FIB1", /*monolith=*/true, {"--no-sync"});
  const Session ann = app.Register("ann"), bob = app.Register("bob");
  Session other;
  for (uint64_t user = 1; user < kMany; ++user) {
    other.set_user(user);
    MustCall(app, DirectMessaging::kSend, DraftOf(ann, other));
  }
  MustCall(app, DirectMessaging::kSend,
           DraftOf(ann, bob));  // the last one, by the user's id and by the message's
  MessagePage page;
  page.set_user(ann.user()), page.set_limit(kMany);
  const auto left = [&] { return MustCall(app, DirectMessaging::kList, page).conversations_size(); };
  ASSERT_EQ(left(), kMany);
  Alter(app, "direct-message",
        Join("CREATE TRIGGER held BEFORE DELETE ON conversations WHEN old.other = ", bob.user(),
             " BEGIN SELECT RAISE(ABORT, 'held'); END"));
  absl::Status status = Call(app, DirectMessaging::kForgetUser, UserOf(ann)).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("held"));
  EXPECT_THAT(left(), Lt(kMany));
  // A message that comes now is refused.
  status = Call(app, DirectMessaging::kSend, DraftOf(ann, other)).status();
  EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
  status = Call(app, DirectMessaging::kSend, DraftOf(bob, ann)).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  Alter(app, "direct-message", "DROP TRIGGER held");
  MustCall(app, DirectMessaging::kForgetUser, UserOf(ann));
  EXPECT_EQ(left(), 0);
  EXPECT_THAT(NamesIn(MustCall(app, Social::kListConversations, FirstPage(bob))), IsEmpty());
}

// The bytes of one are no post, and another has no bytes.
TEST(Account, DamagedPostsGoWithTheirAuthor) {
  SocialDeployment app("FIB1", /*monolith=*/true);
  const Session ann = app.Register("ann"), bob = app.Register("bob");
  ASSERT_TRUE(app.Follow(bob, "ann").ok());
  const uint64_t damaged = app.Compose(ann, "a post").id(), empty = app.Compose(ann, "another").id();
  app.Compose(ann, "a whole one");
  ASSERT_TRUE(app.Like(bob, damaged).ok());
  app.AwaitQueue();
  Alter(app, "post-storage", "UPDATE posts SET post = x'ff' WHERE id = ?1", {damaged});
  Alter(app, "post-storage", "UPDATE posts SET post = x'' WHERE id = ?1", {empty});
  // No post says any longer that it is the caller's.
  for (const Session& by : {ann, bob}) {
    for (const uint64_t post : {damaged, empty}) {
      const absl::Status status = app.Delete(by, post);
      EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    }
  }
  MustCall(app, Social::kDeleteUser, CredentialsOf("ann"));
  app.AwaitQueue();
  EXPECT_EQ(MustCall(app, PostStorage::kCountOf, UserOf(ann)).count(), 0u);
  EXPECT_EQ(MustCall(app, Favorite::kCount, IdsOf({damaged})).counts(0), 0u);
  std::vector<uint64_t> ids;
  const absl::Status status = app.Home(bob, &ids);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(ids, IsEmpty());
}

// Deletions of posts that stopped half way, of which the cache shows one still.
TEST(Account, NoCacheShowsAPostOfADeletedUser) {
  const apps::TempDir dir;
  const MemcachedProcess cache(dir.File("m"));
  SocialDeployment app("FIB1", /*monolith=*/true, {"--store", "post-cache=" + cache.address()});
  const Session ann = app.Register("ann"), bob = app.Register("bob");
  const uint64_t shown = app.Compose(ann, "a post").id(), held = app.Compose(ann, "another").id();
  Post post;
  for (const uint64_t id : {shown, held}) ASSERT_TRUE(app.Get(bob, id, &post).ok());  // so the cache has it
  ASSERT_TRUE(cache.Look(Join("post", shown)).has_value());
  // The service died before it told the cache.
  Alter(app, "post-storage", "UPDATE posts SET post = x'2d' WHERE id = ?1", {shown});
  ASSERT_TRUE(app.Get(bob, shown, &post).ok());
  // It dies before the row goes.
  Alter(app, "post-storage",
        Join("CREATE TRIGGER held BEFORE DELETE ON posts WHEN old.id = ", held,
             " BEGIN SELECT RAISE(ABORT, 'held'); END"));
  const absl::Status status = app.Delete(ann, held);
  EXPECT_THAT(std::string(status.message()), HasSubstr("held"));
  EXPECT_TRUE(absl::IsNotFound(app.Get(bob, held, &post)));
  EXPECT_EQ(MustCall(app, PostStorage::kCountOf, UserOf(ann)).count(), 2u);
  Alter(app, "post-storage", "DROP TRIGGER held");
  MustCall(app, Social::kDeleteUser, CredentialsOf("ann"));
  for (const uint64_t id : {shown, held}) EXPECT_TRUE(absl::IsNotFound(app.Get(bob, id, &post))) << id;
  EXPECT_EQ(MustCall(app, PostStorage::kCountOf, UserOf(ann)).count(), 0u);
}

// Property: whatever a user does while it is deleted, nothing of it stays.
TEST(Account, NothingIsLeftOfAUserWhoGoesOnStress) {
  SocialDeployment app("FDB1-4", /*monolith=*/true);
  const Session bob = app.Register("bob"), eve = app.Register("eve");
  const uint64_t bobs = app.Compose(bob, "bob's").id();
  for (int round = 0; round < 3; ++round) {
    const Session ann = app.Register("ann");
    // Each is repeated until it is refused as the account is gone.
    const std::vector<std::function<absl::Status()>> acts = {
        [&] { return app.Follow(ann, "bob"); },
        [&] { return app.Follow(bob, "ann"); },
        [&] { return app.Block(ann, "eve"); },
        [&] { return app.Like(ann, bobs); },
        [&] { return Call(app, Social::kSendMessage, MessageOf(ann, "bob")).status(); },
        [&] { return Call(app, Social::kSendMessage, MessageOf(bob, "ann")).status(); },
        [&] { return Call(app, Social::kCreateAd, AdOf(ann)).status(); },
        [&] {
          Post post;
          return app.Compose(ann, DraftOf("a post", 0, 0), &post);
        }};
    std::vector<std::thread> threads;
    for (const auto& act : acts) {
      threads.emplace_back([&act] {
        const Deadline deadline = Deadline::In(kMaxTestWait);
        absl::Status status;
        do {
          status = act();
        } while (!absl::IsUnauthenticated(status) && !absl::IsNotFound(status) && !deadline.Expired());
        EXPECT_TRUE(absl::IsUnauthenticated(status) || absl::IsNotFound(status)) << status;
      });
    }
    MustCall(app, Social::kDeleteUser, CredentialsOf("ann"));
    for (std::thread& thread : threads) thread.join();
    const GraphCounts counts = MustCall(app, SocialGraph::kCountOf, UserOf(ann));
    EXPECT_EQ(counts.followers() + counts.following(), 0u);
    EXPECT_EQ(MustCall(app, PostStorage::kCountOf, UserOf(ann)).count(), 0u);
    EXPECT_EQ(MustCall(app, Favorite::kCount, IdsOf({bobs})).counts(0), 0u);
    EXPECT_EQ(MustCall(app, Social::kListConversations, FirstPage(bob)).conversations_size(), 0);
    EXPECT_EQ(MustCall(app, Social::kShowAds, FirstPage(bob)).ads_size(), 0);
    LookRequest look;
    look.set_viewer(eve.user());
    look.add_authors(ann.user());
    EXPECT_EQ(MustCall(app, BlockUser::kHidden, look).ids_size(), 0);
  }
}

}  // namespace
}  // namespace curtail::social
