// SPDX-License-Identifier: Apache-2.0
//
// The whole application, in one process and in a process a service, as its clients see it.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "apps/social/data.h"
#include "apps/social/tests/social_testing.h"
#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"
#include "curtail/store/store_testing.h"
#include "users.curtail.h"

namespace curtail::social {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

struct Form {
  const char* name;
  const char* config;
  bool monolith;
};

class SocialTest : public testing::TestWithParam<Form> {
 protected:
  std::vector<uint64_t> Home(const Session& by) {
    std::vector<uint64_t> ids;
    const absl::Status status = app_.Home(by, &ids);
    EXPECT_TRUE(status.ok()) << status;
    return ids;
  }
  std::vector<uint64_t> Timeline(const Session& by, const std::string& name) {
    std::vector<uint64_t> ids;
    const absl::Status status = app_.Timeline(by, name, &ids);
    EXPECT_TRUE(status.ok()) << status;
    return ids;
  }
  absl::Status Expand(const std::string& code, std::string* url) {
    Code request;
    request.set_code(code);
    Url reply;
    Context ctx(kMaxTestWait);
    const absl::Status status = app_.Front().ExpandUrl(ctx, request, &reply);
    *url = reply.url();
    return status;
  }

  SocialDeployment app_{GetParam().config, GetParam().monolith};
};

INSTANTIATE_TEST_SUITE_P(Forms, SocialTest,
                         testing::Values(Form{"MonolithSDB", "SDB1-16", true},
                                         Form{"MonolithFIB", "FIB1", true},
                                         Form{"MonolithADB", "ADB1-2-2", true},
                                         Form{"Processes", "FIB1", false}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(SocialTest, PostsReachThoseWhoFollowAndThoseWhoAreMentioned) {
  const Session ann = app_.Register("ann"), bob = app_.Register("bob"), eve = app_.Register("eve");
  ASSERT_TRUE(app_.Follow(bob, "ann").ok());
  ComposeRequest request;
  request.set_token(ann.token());
  request.set_text("see http://example.org/a?b=c, @eve and @nobody; mail me@bob");
  request.add_media()->set_type("image/png");
  Context ctx(kMaxTestWait);
  Post post;
  const absl::Status status = app_.Front().Compose(ctx, request, &post);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(post.author().name(), "ann");
  EXPECT_EQ(post.author().id(), ann.user());
  ASSERT_EQ(post.urls_size(), 1);
  EXPECT_EQ(post.urls(0).url(), "http://example.org/a?b=c");
  EXPECT_EQ(post.text(),
            Join("see http://short-url/", post.urls(0).code(), ", @eve and @nobody; mail me@bob"));
  ASSERT_EQ(post.mentions_size(), 1);
  EXPECT_EQ(post.mentions(0).id(), eve.user());
  ASSERT_EQ(post.media_size(), 1);
  EXPECT_NE(post.media(0).id(), 0u);
  std::string url;
  ASSERT_TRUE(Expand(post.urls(0).code(), &url).ok());
  EXPECT_EQ(url, "http://example.org/a?b=c");

  EXPECT_THAT(Timeline(bob, "ann"), ElementsAre(post.id()));
  app_.AwaitQueue();
  EXPECT_THAT(Home(bob), ElementsAre(post.id()));
  EXPECT_THAT(Home(eve), ElementsAre(post.id()));
  EXPECT_THAT(Home(ann), IsEmpty());

  // A deleted post is nowhere, nor is what it was made of.
  EXPECT_TRUE(absl::IsPermissionDenied(app_.Delete(bob, post.id())));
  ASSERT_TRUE(app_.Delete(ann, post.id()).ok());
  EXPECT_TRUE(absl::IsNotFound(app_.Delete(ann, post.id())));
  EXPECT_THAT(Home(bob), IsEmpty());
  EXPECT_THAT(Timeline(bob, "ann"), IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(Expand(post.urls(0).code(), &url)));
}

TEST_P(SocialTest, ThoseWhoBlockSeeNothingOfEachOther) {
  const Session ann = app_.Register("ann"), bob = app_.Register("bob");
  ASSERT_TRUE(app_.Follow(bob, "ann").ok());
  const Post post = app_.Compose(ann, "hello @bob");
  app_.AwaitQueue();
  EXPECT_THAT(Home(bob), ElementsAre(post.id()));
  ASSERT_TRUE(app_.Block(ann, "bob").ok());
  EXPECT_THAT(Home(bob), IsEmpty());
  EXPECT_THAT(Timeline(bob, "ann"), IsEmpty());
  EXPECT_THAT(Timeline(Session(), "ann"), ElementsAre(post.id()));  // whoever is not logged in
  EXPECT_TRUE(absl::IsPermissionDenied(app_.Follow(bob, "ann")));
  ASSERT_TRUE(app_.Unblock(ann, "bob").ok());
  EXPECT_THAT(Home(bob), ElementsAre(post.id()));  // it is mentioned
  ASSERT_TRUE(app_.Follow(bob, "ann").ok());
  EXPECT_THAT(Timeline(bob, "ann"), ElementsAre(post.id()));
}

// Pages of one entry each: none is on two pages, and a page whose entry is hidden is not the last.
TEST_P(SocialTest, PagesOfOneEntryGoOnBehindHiddenEntries) {
  const Session ann = app_.Register("ann"), bob = app_.Register("bob"), eve = app_.Register("eve");
  ASSERT_TRUE(app_.Follow(bob, "ann").ok());
  ASSERT_TRUE(app_.Follow(bob, "eve").ok());
  const uint64_t first = app_.Compose(ann, "a word").id();
  const auto answer = [&](const Session& by) {
    ComposeRequest request;
    request.set_text("a word more");
    request.set_reply_to(first);
    Post post;
    EXPECT_TRUE(app_.Compose(by, request, &post).ok());
    return post.id();
  };
  const uint64_t early = answer(ann), hidden = answer(eve), late = answer(ann);
  for (const uint64_t post : {first, early, hidden, late}) ASSERT_TRUE(app_.Like(bob, post).ok());
  app_.AwaitQueue();
  app_.AwaitIndex();
  app_.SetPageLimit(1);
  EXPECT_THAT(Home(bob), ElementsAre(late, hidden, early, first));
  ASSERT_TRUE(app_.Block(eve, "bob").ok());
  EXPECT_THAT(Home(bob), ElementsAre(late, early, first));
  EXPECT_THAT(Timeline(bob, "ann"), ElementsAre(late, early, first));
  std::vector<uint64_t> ids;
  ASSERT_TRUE(app_.Replies(bob, first, &ids).ok());
  EXPECT_THAT(ids, ElementsAre(late, early));
  ASSERT_TRUE(app_.Favorites(bob, "bob", &ids).ok());
  EXPECT_THAT(ids, ElementsAre(late, early, first));
  ASSERT_TRUE(app_.Search(bob, "word", /*newest=*/true, &ids).ok());
  EXPECT_THAT(ids, ElementsAre(late, early, first));
  std::vector<uint64_t> sent;
  for (const char* text : {"one", "two", "three"})
    ASSERT_TRUE(app_.Send(ann, "bob", text, &sent.emplace_back()).ok());
  ASSERT_TRUE(app_.ReadConversation(bob, "ann", &ids).ok());
  EXPECT_THAT(ids, ElementsAre(sent[2], sent[1], sent[0]));
}

// Property: when follows and a block of two users meet, the block is in force in the end, and neither follows the other.
TEST_P(SocialTest, NoFollowOutlivesABlockStress) {
  const Session ann = app_.Register("ann"), bob = app_.Register("bob");
  const auto followers = [&](const char* name) {
    UserPage page;
    page.set_name(name);
    Context ctx(kMaxTestWait);
    People people;
    EXPECT_TRUE(app_.Front().ListFollowers(ctx, page, &people).ok());
    return people.people_size();
  };
  const auto follow = [&](const Session& by, const char* name) {
    const absl::Status status = app_.Follow(by, name);
    EXPECT_TRUE(status.ok() || absl::IsPermissionDenied(status)) << status;
  };
  for (int round = 0; round < 20; ++round) {
    follow(bob, "ann");
    std::thread one([&] { follow(ann, "bob"); });
    std::thread two([&] { follow(bob, "ann"); });
    EXPECT_TRUE(app_.Block(ann, "bob").ok());
    one.join(), two.join();
    EXPECT_EQ(followers("ann"), 0);
    EXPECT_EQ(followers("bob"), 0);
    EXPECT_TRUE(absl::IsPermissionDenied(app_.Follow(bob, "ann")));
    ASSERT_TRUE(app_.Unblock(ann, "bob").ok());
  }
}

TEST_P(SocialTest, RefusesWhatIsWrong) {
  const Session ann = app_.Register("ann");
  const auto enter = [&](const char* name, const char* password, bool fresh) {
    Credentials credentials;
    credentials.set_name(name), credentials.set_password(password);
    Context ctx(kMaxTestWait);
    Session session;
    return fresh ? app_.Front().Register(ctx, credentials, &session)
                 : app_.Front().Login(ctx, credentials, &session);
  };
  EXPECT_TRUE(absl::IsAlreadyExists(enter("ann", kTestPassword, true)));
  EXPECT_TRUE(absl::IsInvalidArgument(enter("Ann!", kTestPassword, true)));
  EXPECT_TRUE(absl::IsInvalidArgument(enter("bob", "short", true)));
  EXPECT_TRUE(enter("ann", kTestPassword, false).ok());
  EXPECT_TRUE(absl::IsUnauthenticated(enter("ann", "another password", false)));
  EXPECT_TRUE(absl::IsUnauthenticated(enter("nobody", kTestPassword, false)));

  Session forged = ann;
  forged.mutable_token()->at(forged.token().size() - 10) ^= 1;
  std::vector<uint64_t> ids;
  EXPECT_TRUE(absl::IsUnauthenticated(app_.Home(forged, &ids)));
  EXPECT_TRUE(absl::IsUnauthenticated(app_.Home(Session(), &ids)));
  EXPECT_TRUE(absl::IsNotFound(app_.Timeline(ann, "nobody", &ids)));
  EXPECT_TRUE(absl::IsNotFound(app_.Follow(ann, "nobody")));
  EXPECT_TRUE(absl::IsInvalidArgument(app_.Follow(ann, "ann")));

  const auto compose = [&](const std::string& text, const char* media) {
    ComposeRequest request;
    request.set_token(ann.token()), request.set_text(text);
    if (*media != '\0') request.add_media()->set_type(media);
    Context ctx(kMaxTestWait);
    Post post;
    return app_.Front().Compose(ctx, request, &post);
  };
  EXPECT_TRUE(absl::IsInvalidArgument(compose("", "")));
  EXPECT_TRUE(absl::IsInvalidArgument(compose(std::string(5000, 'a'), "")));
  EXPECT_TRUE(absl::IsInvalidArgument(compose("a", "text/html")));
  EXPECT_THAT(Timeline(ann, "ann"), IsEmpty());
}

absl::Status Login(const SocialDeployment& app, const std::string& name) {
  Credentials credentials;
  credentials.set_name(name);
  credentials.set_password(kTestPassword);
  Session session;
  Context ctx(kMaxTestWait);
  return app.Front().Login(ctx, credentials, &session);
}

// Four are hashed at once.
TEST_P(SocialTest, LoginsWaitForTheirTurns) {
  app_.Register("ann");
  std::vector<std::thread> callers;
  for (int i = 0; i < 12; ++i) {
    callers.emplace_back([&] { EXPECT_EQ(Login(app_, "ann"), absl::OkStatus()); });
  }
  for (std::thread& caller : callers) caller.join();
}

// A thread that made hashes itself, or waited for its turn, would answer one quick call between two logins at most.
TEST(Social, AHashHoldsNoThread) {
  SocialDeployment app("AIB1-1", /*monolith=*/true, {"--hashes", "1"});
  const Session ann = app.Register("ann");
  std::atomic<bool> enough{false};
  std::atomic<int> logins{0};
  const Deadline deadline = Deadline::In(kMaxTestWait);
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      while (!enough && !deadline.Expired()) {
        EXPECT_EQ(Login(app, "ann"), absl::OkStatus());
        ++logins;
      }
    });
  }
  while (logins == 0 && !deadline.Expired()) BetweenLooks();
  int quick = 0;
  std::vector<std::string> names;
  while (quick < 2 * logins + 20 && !deadline.Expired()) {
    EXPECT_TRUE(app.SearchUsers(ann, "an", &names).ok());
    ++quick;
  }
  enough = true;
  for (std::thread& caller : callers) caller.join();
  EXPECT_GE(quick, 2 * logins);
}

// A service that dies takes no acknowledged post with it.
TEST(Social, AKilledServiceLosesNoPost) {
  SocialDeployment app("FIB1", false);
  const Session ann = app.Register("ann"), bob = app.Register("bob");
  ASSERT_TRUE(app.Follow(bob, "ann").ok());
  std::vector<uint64_t> posts, home;
  const auto compose = [&] { posts.insert(posts.begin(), app.Compose(ann, "more").id()); };
  compose();
  app.Kill("home-timeline");
  for (int i = 0; i < 10; ++i) compose();  // acknowledged all the same
  app.Kill("write-home-timeline");
  app.Start("write-home-timeline");
  app.Start("home-timeline");
  compose();
  app.AwaitQueue();
  ASSERT_TRUE(app.Home(bob, &home).ok());
  EXPECT_EQ(home, posts);
  app.Kill("post-storage");
  app.Start("post-storage");
  ASSERT_TRUE(app.Timeline(bob, "ann", &home).ok());
  EXPECT_EQ(home, posts);
}

// The kernel accepts its connections, and nobody reads them.
TEST(Social, ACacheThatHangsLeavesTheDatabaseItsTime) {
  const TempDir dir;
  MemcachedProcess cache(dir.File("m"));
  SocialDeployment app("FIB1", /*monolith=*/true, {"--store", "post-cache=" + cache.address()});
  const Session ann = app.Register("ann");
  const uint64_t id = app.Compose(ann, "a post").id();
  cache.Stall();
  Post post;
  const absl::Status status = app.Get(ann, id, &post);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(post.text(), "a post");
  cache.GoOn();
}

// Services that only count hang: posts are shown in time without those counts, and say so.
TEST(Social, WhatIsOptionalHoldsNothingUp) {
  SocialDeployment app("FIB1", /*monolith=*/false);
  const Session ann = app.Register("ann");
  const uint64_t id = app.Compose(ann, "a post").id();
  ASSERT_TRUE(app.Like(ann, id).ok());
  for (const char* service : {"favorite", "repost-reply"}) app.Stall(service);
  Post post;
  const TimePoint begin = Now();
  const absl::Status status = app.Get(ann, id, &post);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_LT(Now() - begin, kMaxTestWait / 4);
  EXPECT_EQ(post.text(), "a post");
  EXPECT_THAT(post.missing(), ElementsAre("favorites", "replies", "reposts"));
  for (const char* service : {"favorite", "repost-reply"}) app.GoOn(service);
  ASSERT_TRUE(app.Get(ann, id, &post).ok());
  EXPECT_EQ(post.favorites(), 1u);
  EXPECT_THAT(post.missing(), IsEmpty());
}

// An author whose post was refused finds it nowhere, even if the queue had it.
TEST(Social, APostThatFailsHalfWayIsTakenBack) {
  SocialDeployment app("FIB1", false);
  const Session ann = app.Register("ann"), bob = app.Register("bob");
  ASSERT_TRUE(app.Follow(bob, "ann").ok());
  app.Kill("user-timeline");
  Post post;
  const auto compose = [&](const char* text) {
    ComposeRequest request;
    request.set_token(ann.token());
    request.set_text(text);
    Context ctx(kMaxTestWait);
    return app.Front().Compose(ctx, request, &post);
  };
  absl::Status status = compose("half a post");
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  app.Start("user-timeline");
  // Channels try to connect again after a while.
  const Deadline deadline = Deadline::In(kMaxTestWait);
  do {
    status = compose("a whole post");
    BetweenLooks();
  } while (absl::IsUnavailable(status) && !deadline.Expired());
  ASSERT_TRUE(status.ok()) << status;
  app.AwaitQueue();
  std::vector<uint64_t> ids;
  ASSERT_TRUE(app.Timeline(bob, "ann", &ids).ok());
  EXPECT_THAT(ids, ElementsAre(post.id()));
  ASSERT_TRUE(app.Home(bob, &ids).ok());
  EXPECT_THAT(ids, ElementsAre(post.id()));
}

// A post that nobody takes back is in no home without being in its author's timeline.
TEST(Social, APostWhoseComposerDiesIsAtNoHomeAlone) {
  SocialDeployment app("FIB1", false);
  const Session ann = app.Register("ann"), bob = app.Register("bob");
  ASSERT_TRUE(app.Follow(bob, "ann").ok());
  app.Stall("user-timeline");
  std::thread composing([&] {
    ComposeRequest request;
    request.set_text("half a post");
    Post post;
    const absl::Status status = app.Compose(ann, request, &post);
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  });
  UserRequest request;
  request.set_token(ann.token());
  request.set_name("ann");
  const Deadline deadline = Deadline::In(kMaxTestWait);
  Statistics statistics;
  while (statistics.posts() == 0 && !deadline.Expired()) {  // until it is stored
    Context ctx(deadline);
    EXPECT_TRUE(app.Front().GetStatistics(ctx, request, &statistics).ok());
  }
  EXPECT_EQ(statistics.posts(), 1u);
  app.Kill("compose-post");
  composing.join();
  app.Kill("user-timeline");  // without a look at what waits for it
  app.Start("user-timeline");
  app.AwaitQueue();
  std::vector<uint64_t> ids;
  ASSERT_TRUE(app.Home(bob, &ids).ok());
  EXPECT_THAT(ids, IsEmpty());
}

TEST(Social, AuthorsWithManyFollowersHaveAQueueOfTheirOwn) {
  SocialDeployment app("FIB1", true, {"--many-followers", "2"});
  const Session ann = app.Register("ann"), bob = app.Register("bob"), eve = app.Register("eve");
  for (const Session& follower : {bob, eve}) ASSERT_TRUE(app.Follow(follower, "ann").ok());
  ASSERT_TRUE(app.Follow(ann, "bob").ok());
  const uint64_t to_many = app.Compose(ann, "to many").id(), to_one = app.Compose(bob, "to one").id();
  app.AwaitQueue();
  std::vector<uint64_t> ids;
  for (const Session& follower : {bob, eve}) {
    ASSERT_TRUE(app.Home(follower, &ids).ok());
    EXPECT_THAT(ids, ElementsAre(to_many));
  }
  ASSERT_TRUE(app.Home(ann, &ids).ok());
  EXPECT_THAT(ids, ElementsAre(to_one));
}

// The deliverer asks for followers by pages of a thousand.
TEST(Social, APostReachesTheLastOfAThousandAndOneFollowers) {
  SocialDeployment app("FIB1", /*monolith=*/false);
  const Session ann = app.Register("ann");
  const std::unique_ptr<Channel> graph = app.Connect("social-graph"), home = app.Connect("home-timeline");
  constexpr uint64_t kFollowers = 1001, kAtOnce = 100;
  for (uint64_t begun = 0; begun < kFollowers; begun += kAtOnce) {
    std::vector<Edge> edges(std::min(kAtOnce, kFollowers - begun));
    for (size_t i = 0; i < edges.size(); ++i) edges[i].set_from(begun + i + 1), edges[i].set_to(ann.user());
    const std::vector<Channel*> channels(edges.size(), graph.get());
    Context ctx(kMaxTestWait);
    const auto changed = ctx.FanOut(std::span(channels), SocialGraph::kFollow, edges);
    for (const auto& one : changed) ASSERT_TRUE(one.ok()) << one.status();
  }
  const Post post = app.Compose(ann, "to all");
  app.AwaitQueue();
  for (const uint64_t follower : {uint64_t{1}, kFollowers - 1, kFollowers}) {
    TimelinePage page;
    page.set_viewer(follower), page.set_user(follower);
    Context ctx(kMaxTestWait);
    Posts posts;
    const absl::Status status = HomeTimeline::Stub(home.get()).Read(ctx, page, &posts);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(posts.posts_size(), 1) << follower;
    EXPECT_EQ(posts.posts(0).id(), post.id());
  }
}

TEST(Social, HomeTimelinesAreTrimmedAndUserTimelinesAreNot) {
  SocialDeployment app("FIB1", true, {"--timeline-length", "8"});
  const Session ann = app.Register("ann"), bob = app.Register("bob");
  ASSERT_TRUE(app.Follow(bob, "ann").ok());
  std::vector<uint64_t> posts, ids;
  for (int i = 0; i < 40; ++i) posts.insert(posts.begin(), app.Compose(ann, Join("number ", i)).id());
  app.AwaitQueue();
  ASSERT_TRUE(app.Timeline(bob, "ann", &ids).ok());
  EXPECT_EQ(ids, posts);
  ASSERT_TRUE(app.Home(bob, &ids).ok());
  EXPECT_GE(ids.size(), 8u);
  EXPECT_LE(ids.size(), 10u);  // an eighth and one more
  ids.resize(8), posts.resize(8);
  EXPECT_EQ(ids, posts);
}

}  // namespace
}  // namespace curtail::social
