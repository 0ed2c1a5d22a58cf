// SPDX-License-Identifier: Apache-2.0
//
// Requests that are repeated, as of clients whose replies were lost.
#include <gmock/gmock.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apps/social/data.h"
#include "apps/social/tests/account_testing.h"
#include "apps/social/tests/social_testing.h"
#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"
#include "curtail/store/store_testing.h"

namespace curtail::social {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A call with a key.
template <class Request, class Reply>
absl::StatusOr<Reply> CallOnce(const SocialDeployment& app, const std::string& key,
                               const Method<Request, Reply>& method,
                               const std::type_identity_t<Request>& request, Nanos patience = kMaxTestWait) {
  Context ctx(patience);
  ctx.AddMetadata("idempotency-key", key);
  Reply reply;
  absl::Status status = app.Front().channel()->Call(ctx, method.path, request, &reply);
  if (!status.ok()) return status;
  return reply;
}

Relation RelationTo(const Session& by, const std::string& name) {
  Relation relation;
  relation.set_token(by.token()), relation.set_name(name);
  return relation;
}
ComposeRequest ComposeOf(const Session& by, const std::string& text, uint64_t repost_of = 0) {
  ComposeRequest request = DraftOf(text, 0, repost_of);
  request.set_token(by.token());
  return request;
}

class OnceApiTest : public testing::TestWithParam<const char*> {
 protected:
  std::vector<std::string> Flags() const {
    if (redis_ != nullptr) return {"--store", "redis=" + redis_->address()};
    if (postgresql_ != nullptr) return {"--store", "postgresql=" + postgresql_->address()};
    return {};
  }
  // The same request thrice has one answer, and another content of the same key has none.
  template <class Request, class Reply>
  Reply Thrice(const Method<Request, Reply>& method, const std::type_identity_t<Request>& request,
               const std::type_identity_t<Request>& other) {
    const std::string key = Join("key ", ++keys_);
    const absl::StatusOr<Reply> first = CallOnce(app_, key, method, request);
    EXPECT_TRUE(first.ok()) << method.path << ": " << first.status();
    for (int i = 0; i < 2; ++i) {
      const absl::StatusOr<Reply> again = CallOnce(app_, key, method, request);
      EXPECT_TRUE(again.ok()) << method.path << ": " << again.status();
      if (!first.ok() || !again.ok()) continue;
      EXPECT_EQ(again->SerializeAsString(), first->SerializeAsString()) << method.path;
    }
    const absl::Status status = CallOnce(app_, key, method, other).status();
    EXPECT_TRUE(absl::IsAlreadyExists(status)) << method.path << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("idempotency key")) << method.path;
    return first.ok() ? *first : Reply();
  }

  TempDir dir_;
  const std::unique_ptr<RedisProcess> redis_ =
      std::string_view(GetParam()) == "redis" ? std::make_unique<RedisProcess>(dir_.File("redis")) : nullptr;
  const std::unique_ptr<PostgresqlProcess> postgresql_ =
      std::string_view(GetParam()) == "postgresql"
          ? std::make_unique<PostgresqlProcess>(dir_.File("s"),
                                                PostgresqlWords(dir_.File("s"), dir_.File("data")))
          : nullptr;
  SocialDeployment app_{"FDB1-2", /*monolith=*/true, Flags()};
  const Session ann_ = app_.Register("ann"), bob_ = app_.Register("bob"), eve_ = app_.Register("eve");
  int keys_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Stores, OnceApiTest, testing::Values("files", "redis", "postgresql"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(OnceApiTest, EachWriteHappensOnce) {
  const Post post = Thrice(Social::kCompose, ComposeOf(ann_, "a post"), ComposeOf(ann_, "another"));
  const Post repost =
      Thrice(Social::kCompose, ComposeOf(bob_, "", post.id()), ComposeOf(bob_, "x", post.id()));
  const DirectMessage message = Thrice(Social::kSendMessage, MessageOf(ann_, "bob"), MessageOf(ann_, "eve"));
  EXPECT_TRUE(
      Thrice(Social::kAddFavorite, IdRequestOf(bob_, post.id()), IdRequestOf(bob_, repost.id())).changed());
  EXPECT_TRUE(Thrice(Social::kFollow, RelationTo(bob_, "ann"), RelationTo(bob_, "eve")).changed());
  const Ad ad = Thrice(Social::kCreateAd, AdOf(ann_), [&] {
    AdRequest other = AdOf(ann_);
    other.mutable_ad()->set_title("Plums");
    return other;
  }());
  const MediaItem item = Thrice(Social::kUploadMedia, UploadOf(ann_), [&] {
    MediaUpload other = UploadOf(ann_);
    other.mutable_file()->mutable_data()->append("more");
    return other;
  }());
  EXPECT_NE(item.id(), 0u);
  std::vector<uint64_t> ids;
  ASSERT_TRUE(app_.Timeline(ann_, "ann", &ids).ok());
  EXPECT_THAT(ids, ElementsAre(post.id()));
  ASSERT_TRUE(app_.ReadConversation(bob_, "ann", &ids).ok());
  EXPECT_THAT(ids, ElementsAre(message.id()));
  app_.AwaitQueue();
  app_.AwaitIndex();
  ASSERT_TRUE(app_.Home(bob_, &ids).ok());
  Post seen;
  ASSERT_TRUE(app_.Get(ann_, post.id(), &seen).ok());
  EXPECT_EQ(seen.favorites(), 1u);
  EXPECT_EQ(seen.reposts(), 1u);

  // A late repetition undoes nothing that came after it.
  EXPECT_TRUE(Thrice(Social::kRemoveFavorite, IdRequestOf(bob_, post.id()), IdRequestOf(bob_, 1)).changed());
  EXPECT_TRUE(Thrice(Social::kUnfollow, RelationTo(bob_, "ann"), RelationTo(bob_, "eve")).changed());
  EXPECT_TRUE(CallOnce(app_, "key 5", Social::kFollow, RelationTo(bob_, "ann"))->changed());
  std::vector<std::string> names;
  ASSERT_TRUE(app_.Following("bob", &names).ok());
  EXPECT_TRUE(names.empty());
  EXPECT_TRUE(Thrice(Social::kBlock, RelationTo(ann_, "eve"), RelationTo(ann_, "bob")).changed());
  EXPECT_TRUE(Thrice(Social::kUnblock, RelationTo(ann_, "eve"), RelationTo(ann_, "bob")).changed());
  Thrice(Social::kDeleteMessage, IdRequestOf(ann_, message.id()), IdRequestOf(ann_, 1));
  Thrice(Social::kDeleteAd, IdRequestOf(ann_, ad.id()), IdRequestOf(ann_, 1));
  Thrice(Social::kDeletePost, IdRequestOf(ann_, post.id()), IdRequestOf(ann_, 1));
}

TEST_P(OnceApiTest, ARegistrationIsRepeatedByWhoeverKnowsThePassword) {
  const Session dan = Thrice(Social::kRegister, CredentialsOf("dan"), CredentialsOf("fay"));
  EXPECT_EQ(dan.name(), "dan");
  const absl::Status status =
      CallOnce(app_, "key 1", Social::kRegister, CredentialsOf("dan", "another password")).status();
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  EXPECT_TRUE(absl::IsAlreadyExists(Call(app_, Social::kRegister, CredentialsOf("dan")).status()));
}

// The same request many times at once, each as often as it fails. Only one of them can have the upload.
TEST_P(OnceApiTest, RepetitionsThatMeetComposeOnePost) {
  ComposeRequest request = ComposeOf(ann_, "a post http://example.org/");
  request.add_media()->set_id(MustCall(app_, Social::kUploadMedia, UploadOf(ann_)).id());
  std::vector<std::thread> threads;
  std::vector<uint64_t> made(8);
  for (uint64_t& id : made) {
    threads.emplace_back([&] {
      const Deadline deadline = Deadline::In(kMaxTestWait);
      absl::StatusOr<Post> post = absl::UnknownError("");
      while (!post.ok() && !deadline.Expired()) post = CallOnce(app_, "one", Social::kCompose, request);
      EXPECT_TRUE(post.ok()) << post.status();
      id = post.ok() ? post->id() : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(made, testing::Each(made[0]));
  std::vector<uint64_t> ids;
  ASSERT_TRUE(app_.Timeline(ann_, "ann", &ids).ok());
  EXPECT_THAT(ids, ElementsAre(made[0]));
  EXPECT_EQ(MustCall(app_, Social::kGetStatistics, StatisticsOf("ann")).posts(), 1u);
}

// A post that failed half way is composed by a repetition, whether it could be taken back or not.
TEST(OnceApi, ARepetitionComposesWhatFailedHalfWay) {
  SocialDeployment app("FIB1", /*monolith=*/false);
  const Session ann = app.Register("ann"), bob = app.Register("bob");
  ASSERT_TRUE(app.Follow(bob, "ann").ok());
  for (const char* service : {"write-home-timeline", "user-timeline", "post-storage", "compose-post"}) {
    const auto compose = [&] { return CallOnce(app, service, Social::kCompose, ComposeOf(ann, service)); };
    app.Kill(service);
    EXPECT_FALSE(compose().ok()) << service;
    app.Start(service);
    const Deadline deadline = Deadline::In(kMaxTestWait);
    absl::StatusOr<Post> post = compose();
    while (!post.ok() && !deadline.Expired()) post = compose();
    ASSERT_TRUE(post.ok()) << service << ": " << post.status();
    EXPECT_EQ(compose()->id(), post->id());
  }
  app.AwaitQueue();
  std::vector<uint64_t> home, timeline;
  ASSERT_TRUE(app.Home(bob, &home).ok());
  ASSERT_TRUE(app.Timeline(bob, "ann", &timeline).ok());
  EXPECT_EQ(timeline.size(), 4u);
  EXPECT_EQ(home, timeline);
}

// While the blocks cannot be read, a follow is stored, and its request fails. Another request has found the follow meanwhile: the
// same one, for bob, or one of its own name, for eve.
TEST(OnceApi, AFollowThatFailsEndsNoneThatWasGranted) {
  SocialDeployment app("FIB1", /*monolith=*/false);
  const Session ann = app.Register("ann"), bob = app.Register("bob"), eve = app.Register("eve");
  const std::unique_ptr<Channel> channel = app.Connect("social-graph");
  const SocialGraph::Stub graph(channel.get());
  for (const auto& [other, key] : {std::pair(&bob, "first bob"), std::pair(&eve, "second")}) {
    app.Stall("block-user");
    absl::StatusOr<Changed> first, second;
    std::thread failing([&, other = other] {
      first = CallOnce(app, "first " + other->name(), Social::kFollow, RelationTo(ann, other->name()),
                       std::chrono::seconds(1));
    });
    const Deadline deadline = Deadline::In(kMaxTestWait);
    GraphCounts counts;
    do {
      Context ctx(deadline);
      EXPECT_TRUE(graph.CountOf(ctx, UserOf(*other), &counts).ok());
      BetweenLooks();
    } while (counts.followers() == 0 && !deadline.Expired());
    std::thread granted([&, other = other, key = key] {
      second = CallOnce(app, key, Social::kFollow, RelationTo(ann, other->name()));
    });
    failing.join();
    EXPECT_TRUE(absl::IsDeadlineExceeded(first.status())) << first.status();
    app.GoOn("block-user");
    granted.join();
    EXPECT_TRUE(second.ok()) << second.status();
  }
  std::vector<std::string> names;
  ASSERT_TRUE(app.Following("ann", &names).ok());
  EXPECT_THAT(names, testing::UnorderedElementsAre("bob", "eve"));
}

}  // namespace
}  // namespace curtail::social
