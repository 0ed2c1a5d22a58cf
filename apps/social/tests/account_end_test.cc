// SPDX-License-Identifier: Apache-2.0
//
// The end of an account in pieces, after failures, and beside what its user still does.
#include <gmock/gmock.h>

#include <functional>
#include <thread>
#include <vector>

#include "apps/social/data.h"
#include "apps/social/tests/account_testing.h"
#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"
#include "curtail/store/store_testing.h"

namespace curtail::social {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Lt;

// First a service is down, then one stands still at each step in turn. The next does so before the last goes on, so that
// the deletion does not end by itself.
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
  const std::vector<std::string> stalled = {"favorite", "compose-post",
                                            "block-user"};  // which D3, D4 and D5 call
  app.Stall(stalled[0]);
  app.Start("ads");
  const Deadline deadline = Deadline::In(kMaxTestWait);
  do {
    status = Call(app, Social::kShowAds, FirstPage(bob)).status();  // until the front end has found it again
    BetweenLooks();
  } while (absl::IsUnavailable(status) && !deadline.Expired());
  ASSERT_TRUE(status.ok()) << status;
  for (size_t i = 0; i < stalled.size(); ++i) {
    app.SetPatience(std::chrono::milliseconds(500));
    status = app.DeleteUser("ann");
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << stalled[i] << ": " << status;
    app.SetPatience(kMaxTestWait);
    if (i + 1 < stalled.size()) app.Stall(stalled[i + 1]), app.GoOn(stalled[i]);
    expect_closed();
  }
  app.GoOn(stalled.back());
  status = app.DeleteUser("ann");
  // It may have ended by itself.
  ASSERT_TRUE(status.ok() || absl::IsUnauthenticated(status)) << status;
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
  for (const uint64_t post : {damaged, empty}) {
    const absl::Status status = app.Delete(bob, post);
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
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

// The deletion of one stopped before the cache heard of it.
TEST(Account, NoCacheShowsAPostOfADeletedUser) {
  const TempDir dir;
  MemcachedProcess cache(dir.File("m"));
  SocialDeployment app("FIB1", /*monolith=*/true, {"--store", "post-cache=" + cache.address()});
  const Session ann = app.Register("ann"), bob = app.Register("bob");
  const uint64_t shown = app.Compose(ann, "a post").id(), other = app.Compose(ann, "another").id();
  Post post;
  for (const uint64_t id : {shown, other}) ASSERT_TRUE(app.Get(bob, id, &post).ok());  // so the cache has it
  ASSERT_TRUE(cache.Look(Join("post", shown)).has_value());
  cache.Stall();
  app.SetPatience(std::chrono::milliseconds(500));
  EXPECT_FALSE(app.Delete(ann, shown).ok());
  app.SetPatience(kMaxTestWait);
  cache.GoOn();
  EXPECT_EQ(MustCall(app, PostStorage::kCountOf, UserOf(ann)).count(), 1u);
  MustCall(app, Social::kDeleteUser, CredentialsOf("ann"));
  for (const uint64_t id : {shown, other}) EXPECT_TRUE(absl::IsNotFound(app.Get(bob, id, &post))) << id;
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
