// SPDX-License-Identifier: Apache-2.0
//
// Deletions while services are away, and what is taken back of a post that does not come about.
#include <gmock/gmock.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "apps/social/data.h"
#include "apps/social/tests/account_testing.h"
#include "apps/social/tests/social_testing.h"
#include "curtail/base/strings.h"
#include "curtail/base/testing.h"
#include "curtail/rpc/server.h"

namespace curtail::social {
namespace {

using testing::ElementsAre;

// Returns when `so()` holds; fails the test if that takes too long.
template <class So>
void Until(So so) {
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (!so()) {
    ASSERT_FALSE(deadline.Expired());
    BetweenLooks();
  }
}

std::vector<uint64_t> TimelineOf(SocialDeployment& app, const std::string& name) {
  std::vector<uint64_t> ids;
  const absl::Status status = app.Timeline(Session(), name, &ids);
  EXPECT_TRUE(status.ok()) << status;
  return ids;
}

// A unique-id whose clock was put back: it gives one id again and again.
struct OneId final : UniqueId::Service {
  explicit OneId(uint64_t one) : id(one) {}
  absl::Status Next(Context&, const IdCount& request, Ids* reply) override {
    for (uint32_t i = 0; i < request.count(); ++i) reply->add_ids(id);
    return absl::OkStatus();
  }
  const uint64_t id;
};

// A call takes nothing back that another has made: nor of its own author, nor of another one, nor what refers to it.
TEST(SocialDeletion, AnIdThatComesAgainTakesNoPostAway) {
  SocialDeployment app("FIB1", /*monolith=*/false);
  const Session ann = app.Register("ann"), bob = app.Register("bob");
  const uint64_t question = app.Compose(bob, "a question").id();
  const uint64_t post = app.Compose(ann, "a post").id();
  app.Kill("unique-id");
  ServerOptions options;
  options.listen = {app.AddressOf("unique-id")};
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::make_unique<OneId>(post));
  auto server = Server::Start(std::move(options), std::move(services));
  ASSERT_TRUE(server.ok()) << server.status();
  Post made;
  for (const Session& by : {ann, bob}) {
    for (const uint64_t reply_to : {uint64_t{0}, question}) {
      absl::Status status;
      Until([&] {  // compose-post has found unique-id again
        status = app.Compose(by, DraftOf("a copy", reply_to, 0), &made);
        return !absl::IsUnavailable(status);
      });
      EXPECT_TRUE(absl::IsAborted(status)) << status;
    }
  }
  ASSERT_TRUE(app.Get(bob, post, &made).ok());
  EXPECT_EQ(made.text(), "a post");
  EXPECT_THAT(TimelineOf(app, "ann"), ElementsAre(post));
  EXPECT_THAT(TimelineOf(app, "bob"), ElementsAre(question));
  ASSERT_TRUE(app.Get(bob, question, &made).ok());
  EXPECT_EQ(made.replies(), 0u);
  EXPECT_TRUE(app.Like(bob, post).ok());
  server->reset();
  app.Start("unique-id");
  Until([&] { return app.Compose(bob, DraftOf("an answer", post, 0), &made).ok(); });
}

// Each service that is told of a deletion, but for the one that decides.
TEST(SocialDeletion, APostIsGoneAtOnceAndItsRestWhenAllAreBack) {
  const std::vector<std::string> services = {
      "user-timeline", "write-home-timeline", "search",   "url-shorten",
      "media",         "media-frontend",      "favorite", "repost-reply"};
  SocialDeployment app("FIB1", /*monolith=*/false);
  const Session ann = app.Register("ann"), bob = app.Register("bob");
  const auto storage = app.Connect("post-storage"), favorite = app.Connect("favorite");
  Ids posts;
  for (size_t i = 0; i < services.size(); ++i) {
    posts.add_ids(app.Compose(ann, "a post http://example.org/").id());
    ASSERT_TRUE(app.Like(bob, *posts.ids().rbegin()).ok());
  }
  for (size_t i = 0; i < services.size(); ++i) {
    const uint64_t post = posts.ids(static_cast<int>(i));
    app.Kill(services[i]);
    const absl::Status status = app.Delete(ann, post);
    EXPECT_TRUE(status.ok()) << services[i] << ": " << status;
    Post seen;
    EXPECT_TRUE(absl::IsNotFound(app.Get(bob, post, &seen))) << services[i];
    app.Start(services[i]);
  }
  app.AwaitFinished();  // without a call
  Context ctx(kMaxTestWait);
  Counts likes;
  EXPECT_TRUE(Favorite::Stub(favorite.get()).Count(ctx, posts, &likes).ok());
  for (const uint64_t count : likes.counts()) EXPECT_EQ(count, 0u);
}

TEST(SocialDeletion, AnAccountsPostsAreGoneAtOnceAndItsRestWhenAllAreBack) {
  SocialDeployment app("FIB1", /*monolith=*/false);
  const Session ann = app.Register("ann"), bob = app.Register("bob");
  const uint64_t post = app.Compose(ann, "a post").id();
  app.Kill("favorite");
  const absl::Status status = app.DeleteUser("ann");
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  Post seen;
  EXPECT_TRUE(absl::IsNotFound(app.Get(bob, post, &seen)));
  app.Start("favorite");
  Session session;
  Until([&] { return app.Register("ann", &session).ok(); });  // without another call to delete it
  EXPECT_NE(session.user(), ann.user());
}

// Reposts without a text go with what they repeat, and so do likes of them.
TEST(SocialDeletion, NothingCountsWhatIsGone) {
  SocialDeployment app("FIB1", /*monolith=*/true);
  const Session ann = app.Register("ann"), bob = app.Register("bob"), eve = app.Register("eve");
  const uint64_t post = app.Compose(ann, "a post").id();
  Post repost, quote;
  ASSERT_TRUE(app.Compose(bob, DraftOf("", 0, post), &repost).ok());
  ASSERT_TRUE(app.Compose(bob, DraftOf("look", 0, post), &quote).ok());
  for (const uint64_t id : {repost.id(), quote.id()}) ASSERT_TRUE(app.Like(eve, id).ok());
  ASSERT_TRUE(app.Delete(ann, post).ok());
  const Statistics statistics = MustCall(app, Social::kGetStatistics, StatisticsOf("bob"));
  EXPECT_EQ(statistics.posts(), 1u);
  EXPECT_EQ(statistics.likes_received(), 1u);
  EXPECT_THAT(TimelineOf(app, "bob"), ElementsAre(quote.id()));
  EXPECT_TRUE(absl::IsNotFound(app.Delete(bob, repost.id())));
}

// One transaction moves 250 of them, and the others are gone as well.
TEST(SocialDeletion, NoRepostCountsWhoseOriginalIsGone) {
  SocialDeployment app("FIB1", /*monolith=*/true);
  const Session ann = app.Register("ann"), bob = app.Register("bob");
  Post original;
  original.set_id(1), original.set_text("a post");
  original.mutable_author()->set_id(ann.user());
  MustCall(app, PostStorage::kStore, original);
  Post repost;
  *repost.mutable_original() = original;
  repost.mutable_author()->set_id(bob.user());
  for (uint64_t id = 2; id < 302; ++id) {
    repost.set_id(id);
    MustCall(app, PostStorage::kStore, repost);
  }
  EXPECT_EQ(MustCall(app, PostStorage::kCountOf, UserOf(ann)).count(), 1u);
  EXPECT_EQ(MustCall(app, PostStorage::kCountOf, UserOf(bob)).count(), 300u);
  PostOfAuthor own;
  own.set_post(1), own.set_author(ann.user());
  const Posts deleted = MustCall(app, PostStorage::kDelete, own);
  EXPECT_EQ(deleted.posts_size(), 251);
  EXPECT_EQ(MustCall(app, PostStorage::kCountOf, UserOf(ann)).count(), 0u);
  EXPECT_EQ(MustCall(app, PostStorage::kCountOf, UserOf(bob)).count(), 0u);
  app.AwaitFinished();
  EXPECT_EQ(MustCall(app, PostStorage::kCountOf, UserOf(bob)).count(), 0u);
}

}  // namespace
}  // namespace curtail::social
