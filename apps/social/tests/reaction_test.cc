// SPDX-License-Identifier: Apache-2.0
//
// Likes, replies and reposts, as clients see them.
#include <gmock/gmock.h>

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "apps/kit/accounts/id_source.h"
#include "apps/social/data.h"
#include "apps/social/tests/account_testing.h"
#include "apps/social/tests/social_testing.h"
#include "curtail/base/testing.h"
#include "curtail/rpc/server.h"

namespace curtail::social {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ReactionTest : public testing::TestWithParam<bool> {
 protected:
  Post Refer(const Session& by, const std::string& text, uint64_t reply_to, uint64_t repost_of) {
    ComposeRequest request;
    request.set_text(text), request.set_reply_to(reply_to), request.set_repost_of(repost_of);
    Post post;
    const absl::Status status = app_.Compose(by, request, &post);
    EXPECT_TRUE(status.ok()) << status;
    return post;
  }
  absl::Status Refused(const Session& by, uint64_t reply_to, uint64_t repost_of) {
    ComposeRequest request;
    request.set_reply_to(reply_to), request.set_repost_of(repost_of);
    if (reply_to != 0) request.set_text("a reply");
    Post post;
    return app_.Compose(by, request, &post);
  }
  std::vector<uint64_t> Ids(absl::Status (SocialDeployment::*list)(const Session&, uint64_t,
                                                                   std::vector<uint64_t>*),
                            const Session& by, uint64_t post) {
    std::vector<uint64_t> ids;
    const absl::Status status = (app_.*list)(by, post, &ids);
    EXPECT_TRUE(status.ok()) << status;
    return ids;
  }
  std::vector<uint64_t> Replies(const Session& by, uint64_t post) {
    return Ids(&SocialDeployment::Replies, by, post);
  }
  std::vector<uint64_t> Reposts(const Session& by, uint64_t post) {
    return Ids(&SocialDeployment::Reposts, by, post);
  }
  std::vector<uint64_t> Favorites(const Session& by, const std::string& name) {
    std::vector<uint64_t> ids;
    const absl::Status status = app_.Favorites(by, name, &ids);
    EXPECT_TRUE(status.ok()) << status;
    return ids;
  }
  std::vector<std::string> FavoredBy(const Session& by, uint64_t post) {
    std::vector<std::string> names;
    const absl::Status status = app_.FavoredBy(by, post, &names);
    EXPECT_TRUE(status.ok()) << status;
    return names;
  }
  Post Get(const Session& by, uint64_t id) {
    Post post;
    const absl::Status status = app_.Get(by, id, &post);
    EXPECT_TRUE(status.ok()) << status;
    return post;
  }

  SocialDeployment app_{GetParam() ? "ADB1-2-2" : "FIB1", /*monolith=*/true};
  const Session ann_ = app_.Register("ann"), bob_ = app_.Register("bob"), eve_ = app_.Register("eve");
};

INSTANTIATE_TEST_SUITE_P(Models, ReactionTest, testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "ADB" : "FIB"); });

TEST_P(ReactionTest, LikesAreCountedOnceAndTakenBack) {
  const uint64_t post = app_.Compose(ann_, "a post").id(), other = app_.Compose(ann_, "another").id();
  bool changed = false;
  ASSERT_TRUE(app_.Like(bob_, post, &changed).ok());
  EXPECT_TRUE(changed);
  ASSERT_TRUE(app_.Like(bob_, post, &changed).ok());
  EXPECT_FALSE(changed);
  ASSERT_TRUE(app_.Like(eve_, post).ok());
  ASSERT_TRUE(app_.Like(bob_, other).ok());
  EXPECT_EQ(Get(Session(), post).favorites(), 2u);
  EXPECT_THAT(FavoredBy(ann_, post), ElementsAre("bob", "eve"));
  EXPECT_THAT(Favorites(ann_, "bob"), ElementsAre(other, post));
  ASSERT_TRUE(app_.Unlike(bob_, post, &changed).ok());
  EXPECT_TRUE(changed);
  ASSERT_TRUE(app_.Unlike(bob_, post, &changed).ok());
  EXPECT_FALSE(changed);
  EXPECT_EQ(Get(ann_, post).favorites(), 1u);
  EXPECT_TRUE(absl::IsNotFound(app_.Like(bob_, 12345)));
  EXPECT_TRUE(absl::IsUnauthenticated(app_.Like(Session(), post)));
}

TEST_P(ReactionTest, RepliesAndRepostsReferToTheirPost) {
  const uint64_t post = app_.Compose(ann_, "a question").id();
  const Post reply = Refer(bob_, "an answer", post, 0), quote = Refer(bob_, "look at this", 0, post);
  const Post repost = Refer(eve_, "", 0, post);
  EXPECT_EQ(reply.reply_to(), post);
  EXPECT_THAT(Replies(ann_, post), ElementsAre(reply.id()));
  EXPECT_THAT(Reposts(Session(), post), ElementsAre(repost.id(), quote.id()));
  EXPECT_EQ(Get(ann_, post).replies(), 1u);
  EXPECT_EQ(Get(ann_, post).reposts(), 2u);
  EXPECT_EQ(Get(ann_, quote.id()).original().text(), "a question");
  EXPECT_EQ(Get(ann_, repost.id()).original().author().name(), "ann");
  // Once only; and a repost of a repost is one of its original.
  EXPECT_TRUE(absl::IsAlreadyExists(Refused(eve_, 0, post)));
  EXPECT_TRUE(absl::IsAlreadyExists(Refused(eve_, 0, repost.id())));
  EXPECT_EQ(Refer(ann_, "", 0, repost.id()).original().id(), post);
  EXPECT_TRUE(absl::IsInvalidArgument(Refused(eve_, post, post)));
  EXPECT_TRUE(absl::IsNotFound(Refused(eve_, 12345, 0)));

  // Reposts come to the home timelines of those who follow.
  const Session dan = app_.Register("dan");
  ASSERT_TRUE(app_.Follow(dan, "bob").ok());
  const uint64_t later = Refer(bob_, "", 0, reply.id()).id();
  app_.AwaitQueue();
  std::vector<uint64_t> home;
  ASSERT_TRUE(app_.Home(dan, &home).ok());
  EXPECT_THAT(home, ElementsAre(later));
}

TEST_P(ReactionTest, DeletedPostsTakeTheirReactionsAlong) {
  const uint64_t post = app_.Compose(ann_, "a post").id();
  const uint64_t reply = Refer(bob_, "an answer", post, 0).id(), repost = Refer(bob_, "", 0, post).id();
  const uint64_t quote = Refer(bob_, "see", 0, post).id();
  ASSERT_TRUE(app_.Like(bob_, post).ok());
  ASSERT_TRUE(app_.Like(bob_, reply).ok());
  ASSERT_TRUE(app_.Delete(bob_, reply).ok());
  EXPECT_THAT(Replies(ann_, post), IsEmpty());
  EXPECT_EQ(Get(ann_, post).replies(), 0u);
  ASSERT_TRUE(app_.Delete(ann_, post).ok());
  EXPECT_THAT(Favorites(ann_, "bob"), IsEmpty());
  std::vector<uint64_t> ids;
  EXPECT_TRUE(absl::IsNotFound(app_.Replies(ann_, post, &ids)));
  EXPECT_TRUE(absl::IsNotFound(app_.Like(ann_, post)));
  EXPECT_TRUE(absl::IsNotFound(Refused(eve_, post, 0)));
  // A repost without a text is gone with it.
  Post gone;
  EXPECT_TRUE(absl::IsNotFound(app_.Get(ann_, repost, &gone)));
  EXPECT_FALSE(Get(ann_, quote).has_original());
  ASSERT_TRUE(app_.Timeline(ann_, "bob", &ids).ok());
  EXPECT_THAT(ids, ElementsAre(quote));
}

TEST_P(ReactionTest, ABlockHidesReactions) {
  const uint64_t post = app_.Compose(ann_, "a post").id();
  const uint64_t reply = Refer(bob_, "an answer", post, 0).id(), repost = Refer(eve_, "see", 0, post).id();
  ASSERT_TRUE(app_.Like(bob_, post).ok());
  ASSERT_TRUE(app_.Like(eve_, post).ok());
  ASSERT_TRUE(app_.Block(ann_, "bob").ok());
  EXPECT_THAT(Replies(ann_, post), IsEmpty());
  EXPECT_THAT(Replies(eve_, post), ElementsAre(reply));
  EXPECT_THAT(FavoredBy(ann_, post), ElementsAre("eve"));
  EXPECT_THAT(Favorites(ann_, "bob"), IsEmpty());
  EXPECT_THAT(Favorites(bob_, "eve"), IsEmpty());  // she likes ann's post
  Post seen;
  EXPECT_TRUE(absl::IsNotFound(app_.Get(bob_, post, &seen)));
  EXPECT_TRUE(absl::IsNotFound(app_.Get(bob_, repost, &seen)));  // it shows ann's
  EXPECT_TRUE(absl::IsNotFound(app_.Like(bob_, post)));
  EXPECT_TRUE(absl::IsNotFound(Refused(bob_, post, 0)));
  ASSERT_TRUE(app_.Unlike(bob_, post).ok());
  ASSERT_TRUE(app_.Unblock(ann_, "bob").ok());
  EXPECT_THAT(Replies(ann_, post), ElementsAre(reply));
  EXPECT_THAT(FavoredBy(ann_, post), ElementsAre("eve"));
}

// A composer dies after it has listed a repost, and before it stores that.
TEST_P(ReactionTest, ARepostTakesThePlaceOfOneThatNeverCameAbout) {
  const uint64_t post = app_.Compose(ann_, "a post").id();
  const auto list = [&](const Session& author, std::chrono::minutes age) {
    Reference reference;
    reference.set_post(apps::IdBefore(post, age)), reference.set_author(author.user());
    reference.set_of(post), reference.set_repost(true), reference.set_bare(true);
    MustCall(app_, RepostReply::kAdd, reference);
    return reference.post();
  };
  list(bob_, std::chrono::minutes(10));
  const Post repost = Refer(bob_, "", 0, post);
  EXPECT_THAT(Reposts(ann_, post), ElementsAre(repost.id()));
  EXPECT_EQ(Get(ann_, post).reposts(), 1u);
  EXPECT_TRUE(absl::IsAlreadyExists(Refused(bob_, 0, post)));
  list(eve_, std::chrono::minutes(1));
  EXPECT_TRUE(absl::IsAlreadyExists(Refused(eve_, 0, post))) << "its composer may live";
  Post stored;
  stored.set_id(list(ann_, std::chrono::minutes(11)));
  stored.mutable_author()->set_id(ann_.user());
  stored.mutable_original()->set_id(post);
  MustCall(app_, PostStorage::kStore, stored);
  EXPECT_TRUE(absl::IsAlreadyExists(Refused(ann_, 0, post))) << "it is stored";
}

// A post-storage that refuses each post, and then answers no deletion.
struct RefusingStorage final : PostStorage::CoroutineService {
  explicit RefusingStorage(Post p) : post(std::move(p)) {}
  Coroutine Read(Context&, const social::Ids& request, Posts* reply) override {
    if (!request.ids().empty() && request.ids(0) == post.id()) *reply->add_posts() = post;
    co_return absl::OkStatus();
  }
  Coroutine Store(Context&, const Post&, Named*) override {
    co_return absl::NotFoundError("there is no such post to refer to");
  }
  const Post post;
};

// Though nobody can ask whether it is stored.
TEST(Reaction, ARefusedReplyIsListedNoLonger) {
  SocialDeployment app("FIB1", /*monolith=*/false);
  const Session ann = app.Register("ann"), bob = app.Register("bob");
  const Post post = app.Compose(ann, "a post");
  app.Kill("post-storage");
  {
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<RefusingStorage>(post));
    ServerOptions options;
    options.listen = {app.AddressOf("post-storage")};
    const auto server = Server::Start(std::move(options), std::move(services));
    ASSERT_TRUE(server.ok()) << server.status();
    const Deadline deadline = Deadline::In(kMaxTestWait);
    absl::Status status;
    do {  // channels try to connect again after a while
      Post none;
      status = app.Compose(bob, DraftOf("a reply", post.id(), 0), &none);
      BetweenLooks();
    } while (absl::IsUnavailable(status) && !deadline.Expired());
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
  }
  const std::unique_ptr<Channel> references = app.Connect("repost-reply");
  Context ctx(kMaxTestWait);
  ReferenceCounts counts;
  ASSERT_TRUE(RepostReply::Stub(references.get()).Count(ctx, IdsOf({post.id()}), &counts).ok());
  EXPECT_EQ(counts.replies(0), 0u);
}

// Posts are shown though nobody knows their counts.
TEST(Reaction, PostsAreShownWithoutAServiceThatCounts) {
  SocialDeployment app("FIB1", /*monolith=*/false);
  const Session ann = app.Register("ann");
  const uint64_t post = app.Compose(ann, "a post").id();
  ASSERT_TRUE(app.Like(ann, post).ok());
  app.Kill("favorite");
  Post seen;
  const absl::Status status = app.Get(ann, post, &seen);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(seen.text(), "a post");
  EXPECT_EQ(seen.favorites(), 0u);
}

}  // namespace
}  // namespace curtail::social
