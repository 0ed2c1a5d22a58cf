// SPDX-License-Identifier: Apache-2.0
//
// Judging, while no user acts.
#include <gtest/gtest.h>

#include "apps/social/data.h"
#include "apps/social/tests/left_testing.h"
#include "apps/social/tests/model_users_testing.h"

namespace curtail::social {

void ModelUsers::Judge() {
  history_.Judge();
  EXPECT_EQ(model_.MisplacedIds(), "");
}

void ModelUsers::ExpectNothingLeft() {
  const Leftovers leftovers(&app_);
  std::vector<uint64_t> all;
  for (const User& user : users_) all.push_back(user.session.user());
  for (size_t user = 0; user < users_.size(); ++user) {
    if (!model_.IsGone(user)) continue;
    EXPECT_EQ(leftovers.Of(all[user], all), "") << Text(user);
  }
}

void ModelUsers::Recount(size_t of) {
  if (model_.IsGone(of)) return;
  const Session nobody;
  Statistics counted;
  EXPECT_TRUE(app_.GetStatistics(nobody, Name(of), &counted).ok());
  std::vector<std::string> following;
  EXPECT_TRUE(app_.Following(Name(of), &following).ok());
  EXPECT_EQ(counted.following(), following.size()) << Text(of);
  std::vector<uint64_t> posts;
  EXPECT_TRUE(app_.Timeline(nobody, Name(of), &posts).ok());
  EXPECT_EQ(counted.posts(), posts.size()) << Text(of);
  uint64_t likes = 0;
  for (const uint64_t id : posts) likes += RecountPost(id);
  EXPECT_EQ(counted.likes_received(), likes) << Text(of);
}

uint64_t ModelUsers::RecountPost(uint64_t id) {
  const Session nobody;
  Post post;
  const Deadline deadline = Deadline::In(kMaxTestWait);
  do {
    EXPECT_TRUE(app_.Get(nobody, id, &post).ok()) << id;
    BetweenLooks();
  } while (!post.missing().empty() && !deadline.Expired());
  std::vector<std::string> likes;
  std::vector<uint64_t> replies, reposts;
  EXPECT_TRUE(app_.FavoredBy(nobody, id, &likes).ok());
  EXPECT_TRUE(app_.Replies(nobody, id, &replies).ok());
  EXPECT_TRUE(app_.Reposts(nobody, id, &reposts).ok());
  EXPECT_EQ(post.favorites(), likes.size()) << id;
  EXPECT_EQ(post.replies(), replies.size()) << id;
  EXPECT_EQ(post.reposts(), reposts.size()) << id;
  return likes.size();
}

}  // namespace curtail::social
