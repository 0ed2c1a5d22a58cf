// SPDX-License-Identifier: Apache-2.0
//
// Direct messages and the statistics of a user, as clients see them.
#include <gmock/gmock.h>

#include "apps/social/data.h"
#include "apps/social/tests/social_testing.h"
#include "curtail/base/strings.h"
#include "curtail/base/testing.h"

namespace curtail::social {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class MessageTest : public testing::TestWithParam<bool> {
 protected:
  absl::Status Send(const Session& by, const std::string& to, const std::string& text,
                    uint64_t* id = nullptr) {
    MessageRequest request;
    request.set_token(by.token()), request.set_to(to), request.set_text(text);
    Context ctx(kMaxTestWait);
    DirectMessage message;
    const absl::Status status = app_.Front().SendMessage(ctx, request, &message);
    if (id != nullptr) *id = message.id();
    return status;
  }
  // "from: text" of all pages.
  std::vector<std::string> Read(const Session& by, const std::string& name) {
    UserPage page;
    page.set_token(by.token()), page.set_name(name), page.set_limit(3);
    std::vector<std::string> texts;
    do {
      Context ctx(kMaxTestWait);
      DirectMessages messages;
      const absl::Status status = app_.Front().ReadConversation(ctx, page, &messages);
      EXPECT_TRUE(status.ok()) << status;
      for (const DirectMessage& one : messages.messages())
        texts.push_back(Join(one.from().name(), ": ", one.text()));
      page.set_before(messages.next());
    } while (page.before() != 0);
    return texts;
  }
  // "with: last text" of all pages.
  std::vector<std::string> List(const Session& by) {
    HomePage page;
    page.set_token(by.token()), page.set_limit(2);
    std::vector<std::string> texts;
    do {
      Context ctx(kMaxTestWait);
      Conversations listed;
      const absl::Status status = app_.Front().ListConversations(ctx, page, &listed);
      EXPECT_TRUE(status.ok()) << status;
      for (const Conversation& one : listed.conversations())
        texts.push_back(Join(one.with().name(), ": ", one.last().text()));
      page.set_before(listed.next());
    } while (page.before() != 0);
    return texts;
  }
  absl::Status Delete(const Session& by, uint64_t id) {
    PostRequest request;
    request.set_token(by.token()), request.set_id(id);
    Context ctx(kMaxTestWait);
    Changed changed;
    return app_.Front().DeleteMessage(ctx, request, &changed);
  }
  Statistics StatisticsOf(const Session& by, const std::string& name) {
    UserRequest request;
    request.set_token(by.token()), request.set_name(name);
    Context ctx(kMaxTestWait);
    Statistics statistics;
    const absl::Status status = app_.Front().GetStatistics(ctx, request, &statistics);
    EXPECT_TRUE(status.ok()) << status;
    return statistics;
  }

  SocialDeployment app_{GetParam() ? "ADB1-2-2" : "FIB1", /*monolith=*/true};
  const Session ann_ = app_.Register("ann"), bob_ = app_.Register("bob"), eve_ = app_.Register("eve");
};

INSTANTIATE_TEST_SUITE_P(Models, MessageTest, testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "ADB" : "FIB"); });

TEST_P(MessageTest, OnlyTheTwoPartiesSeeThem) {
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Send(ann_, "bob", Join("number ", i)).ok());
  ASSERT_TRUE(Send(bob_, "ann", "an answer").ok());
  ASSERT_TRUE(Send(eve_, "bob", "hello").ok());
  EXPECT_THAT(Read(ann_, "bob"), ElementsAre("bob: an answer", "ann: number 3", "ann: number 2",
                                             "ann: number 1", "ann: number 0"));
  EXPECT_EQ(Read(bob_, "ann"), Read(ann_, "bob"));
  EXPECT_THAT(Read(eve_, "ann"), IsEmpty());
  EXPECT_THAT(List(bob_), ElementsAre("eve: hello", "ann: an answer"));
  EXPECT_THAT(List(ann_), ElementsAre("bob: an answer"));
  ASSERT_TRUE(Send(ann_, "bob", "news").ok());
  EXPECT_THAT(List(bob_), ElementsAre("ann: news", "eve: hello"));

  EXPECT_TRUE(absl::IsInvalidArgument(Send(ann_, "bob", "")));
  EXPECT_TRUE(absl::IsInvalidArgument(Send(ann_, "bob", std::string(5000, 'a'))));
  EXPECT_TRUE(absl::IsInvalidArgument(Send(ann_, "ann", "to myself")));
  EXPECT_TRUE(absl::IsNotFound(Send(ann_, "nobody", "hello")));
  EXPECT_TRUE(absl::IsUnauthenticated(Send(Session(), "bob", "hello")));
}

TEST_P(MessageTest, TheirAuthorsDeleteThemForBoth) {
  uint64_t first = 0, second = 0;
  ASSERT_TRUE(Send(ann_, "bob", "first", &first).ok());
  ASSERT_TRUE(Send(ann_, "bob", "second", &second).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(Delete(bob_, second)));
  EXPECT_TRUE(absl::IsNotFound(Delete(eve_, second)));
  ASSERT_TRUE(Delete(ann_, second).ok());
  EXPECT_TRUE(absl::IsNotFound(Delete(ann_, second)));
  EXPECT_THAT(Read(bob_, "ann"), ElementsAre("ann: first"));
  EXPECT_THAT(List(bob_), ElementsAre("ann: first"));
  ASSERT_TRUE(Delete(ann_, first).ok());
  EXPECT_THAT(List(ann_), IsEmpty());
  EXPECT_THAT(List(bob_), IsEmpty());
}

TEST_P(MessageTest, ABlockEndsAndHidesAConversation) {
  ASSERT_TRUE(Send(ann_, "bob", "hello").ok());
  ASSERT_TRUE(app_.Block(ann_, "bob").ok());
  EXPECT_TRUE(absl::IsPermissionDenied(Send(bob_, "ann", "hello?")));
  EXPECT_TRUE(absl::IsPermissionDenied(Send(ann_, "bob", "no")));
  for (const Session& one : {ann_, bob_}) EXPECT_THAT(List(one), IsEmpty());
  EXPECT_THAT(Read(bob_, "ann"), IsEmpty());
  ASSERT_TRUE(app_.Unblock(ann_, "bob").ok());
  EXPECT_THAT(Read(bob_, "ann"), ElementsAre("ann: hello"));
  EXPECT_THAT(List(bob_), ElementsAre("ann: hello"));
}

TEST_P(MessageTest, StatisticsCountWhatThereIs) {
  ASSERT_TRUE(app_.Follow(bob_, "ann").ok());
  ASSERT_TRUE(app_.Follow(eve_, "ann").ok());
  ASSERT_TRUE(app_.Follow(ann_, "eve").ok());
  const uint64_t post = app_.Compose(ann_, "a post").id(), other = app_.Compose(ann_, "another").id();
  ASSERT_TRUE(app_.Like(bob_, post).ok());
  ASSERT_TRUE(app_.Like(eve_, post).ok());
  ASSERT_TRUE(app_.Like(eve_, other).ok());
  const auto expect = [&](const Session& by, uint64_t posts, uint64_t followers, uint64_t following,
                          uint64_t likes) {
    const Statistics found = StatisticsOf(by, "ann");
    EXPECT_EQ(found.posts(), posts);
    EXPECT_EQ(found.followers(), followers);
    EXPECT_EQ(found.following(), following);
    EXPECT_EQ(found.likes_received(), likes);
  };
  expect(Session(), 2, 2, 1, 3);
  ASSERT_TRUE(app_.Delete(ann_, post).ok());
  expect(ann_, 1, 2, 1, 1);
  ASSERT_TRUE(app_.Block(ann_, "bob").ok());
  expect(eve_, 1, 1, 1, 1);
  expect(bob_, 0, 0, 0, 0);
}

}  // namespace
}  // namespace curtail::social
