// SPDX-License-Identifier: Apache-2.0
//
// The endpoints of DeathStarBench's load scripts, as the gateway calls them. up_test.py has what the scripts send.
#include <gmock/gmock.h>

#include "apps/social/tests/social_testing.h"
#include "curtail/base/strings.h"
#include "curtail/base/testing.h"
#include "wrk2.curtail.h"

namespace curtail::social {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Wrk2Page Window(uint64_t user, uint32_t start, uint32_t stop) {
  Wrk2Page page;
  page.set_user_id(user);
  page.set_start(start);
  page.set_stop(stop);
  return page;
}

TEST(Wrk2, IsOffByDefault) {
  SocialDeployment app("FIB1", true);
  Context ctx(kMaxTestWait);
  Wrk2Posts posts;
  EXPECT_EQ(Wrk2::Stub(app.Front().channel()).ReadUserTimeline(ctx, Window(0, 0, 10), &posts).code(),
            absl::StatusCode::kUnimplemented);
}

class Wrk2Test : public testing::TestWithParam<const char*> {
 protected:
  void Register(uint64_t n) {
    Wrk2User user;
    user.set_first_name("first");
    user.set_last_name("last");
    user.set_username(Join("username_", n));
    user.set_password(kTestPassword);
    user.set_user_id(n);
    Context ctx(kMaxTestWait);
    const absl::Status status = wrk2_.Register(ctx, user, &said_);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(said_.data(), "Success!\n");
  }
  absl::Status Compose(Wrk2Draft draft) {
    draft.set_username("username_0");
    draft.set_user_id(0);
    draft.set_post_type(0);
    Context ctx(kMaxTestWait);
    return wrk2_.Compose(ctx, draft, &said_);
  }
  std::vector<std::string> UserTimeline(uint32_t start, uint32_t stop) {
    Context ctx(kMaxTestWait);
    Wrk2Posts posts;
    const absl::Status status = wrk2_.ReadUserTimeline(ctx, Window(0, start, stop), &posts);
    EXPECT_TRUE(status.ok()) << status;
    std::vector<std::string> texts;
    for (const Wrk2Post& post : posts.posts()) texts.push_back(post.text());
    return texts;
  }

  SocialDeployment app_{GetParam(), true, {}, {}, {"wrk2_without_authentication=on"}};
  const Wrk2::Stub wrk2_{app_.Front().channel()};
  google::api::HttpBody said_;
};

INSTANTIATE_TEST_SUITE_P(Configs, Wrk2Test, testing::Values("SDB1-16", "FIB1", "ADB1-2-2"),
                         [](const auto& info) { return std::string(info.param, 3); });

TEST_P(Wrk2Test, ReadsAWindowOfATimeline) {
  Register(0);
  for (int i = 0; i < 5; ++i) {
    Wrk2Draft draft;
    draft.set_text(Join("post ", i));
    const absl::Status status = Compose(draft);
    ASSERT_TRUE(status.ok()) << status;
  }
  EXPECT_THAT(UserTimeline(0, 2), ElementsAre("post 4", "post 3"));
  EXPECT_THAT(UserTimeline(3, 13), ElementsAre("post 1", "post 0"));
  EXPECT_THAT(UserTimeline(5, 15), IsEmpty());
  EXPECT_THAT(UserTimeline(4'000'000'000, 4'000'000'010), IsEmpty());
  EXPECT_THAT(UserTimeline(7, 7), IsEmpty());
}

TEST_P(Wrk2Test, FollowsByNumberAndByName) {
  Register(0);
  Register(1);
  Wrk2Relation relation;
  relation.set_user_id(1);
  relation.set_followee_id(0);
  Context ctx(kMaxTestWait);
  ASSERT_TRUE(wrk2_.Follow(ctx, relation, &said_).ok());
  Wrk2Draft draft;
  draft.set_text("news");
  draft.set_media_types(R"(["png"])");
  ASSERT_TRUE(Compose(draft).ok());
  app_.AwaitQueue();
  Wrk2Posts home;
  ASSERT_TRUE(wrk2_.ReadHomeTimeline(ctx, Window(1, 0, 10), &home).ok());
  ASSERT_EQ(home.posts_size(), 1);
  EXPECT_EQ(home.posts(0).creator().user_id(), 0u);
  EXPECT_EQ(home.posts(0).media(0).media_type(), "png");
  relation.Clear();
  relation.set_user_name("username_1");
  relation.set_followee_name("username_0");
  ASSERT_TRUE(wrk2_.Unfollow(ctx, relation, &said_).ok());
  ASSERT_TRUE(wrk2_.ReadHomeTimeline(ctx, Window(1, 0, 10), &home).ok());
  EXPECT_EQ(home.posts_size(), 0);
}

TEST_P(Wrk2Test, RefusesWhatIsMissingOrWrong) {
  Register(0);
  Context ctx(kMaxTestWait);
  Wrk2User user;
  user.set_username("username_1");
  EXPECT_EQ(wrk2_.Register(ctx, user, &said_).code(), absl::StatusCode::kInvalidArgument);
  user.set_first_name("first");
  user.set_last_name("last");
  user.set_password(kTestPassword);
  user.set_user_id(2);
  const absl::Status other = wrk2_.Register(ctx, user, &said_);
  EXPECT_EQ(other.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(other)), HasSubstr("username_2"));
  Wrk2Draft draft;
  EXPECT_EQ(Compose(draft).code(), absl::StatusCode::kInvalidArgument) << "no text";
  draft.set_text("text");
  for (const char* types : {"png", "{", R"({"a":1})", R"([["png"]])", R"(["exe"])"}) {
    draft.set_media_types(types);
    EXPECT_EQ(Compose(draft).code(), absl::StatusCode::kInvalidArgument) << types;
  }
  Wrk2Relation relation;
  relation.set_user_id(0);
  EXPECT_EQ(wrk2_.Follow(ctx, relation, &said_).code(), absl::StatusCode::kInvalidArgument);
  relation.set_followee_id(7);
  EXPECT_EQ(wrk2_.Follow(ctx, relation, &said_).code(), absl::StatusCode::kNotFound);
  Wrk2Posts posts;
  EXPECT_EQ(wrk2_.ReadUserTimeline(ctx, Wrk2Page(), &posts).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(wrk2_.ReadHomeTimeline(ctx, Window(7, 0, 10), &posts).code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace curtail::social
