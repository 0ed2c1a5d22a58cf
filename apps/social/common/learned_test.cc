// SPDX-License-Identifier: Apache-2.0
//
// What is learned of follows: planted tastes are found again.
#include "apps/social/common/learned.h"
#include "apps/kit/data/model_file.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "apps/social/load/people.h"
#include "curtail/base/rng.h"
#include "curtail/base/temp_dir_testing.h"

namespace curtail::social {
namespace {

using testing::ElementsAre;

// Users 1000 + i, of whom each follows a half of those with the same parity, and none of the others.
std::vector<FollowOf> TwoCircles(uint64_t users) {
  Rng rng(5);
  std::vector<FollowOf> follows;
  for (uint64_t from = 0; from < users; ++from) {
    for (uint64_t to = from % 2; to < users; to += 2) {
      if (from != to && rng.Below(2) == 0) follows.emplace_back(1000 + from, 1000 + to);
    }
  }
  return follows;
}

TEST(SocialLearned, FollowsStayInTheirCircle) {
  const std::vector<FollowOf> follows = TwoCircles(80);
  const auto model = TrainFollows(follows, {});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE(Check(*model).ok());
  for (const uint64_t user : {1000, 1041, 1079}) {
    const std::vector<uint64_t> best = BestFor(*model, user, 30);
    ASSERT_EQ(best.size(), 30u);
    EXPECT_EQ(std::ranges::count(best, user), 0);
    EXPECT_EQ(std::ranges::count_if(best, [&](uint64_t other) { return other % 2 == user % 2; }), 30) << user;
  }
  const auto rank = HeldOutRank(follows, {});
  ASSERT_TRUE(rank.ok()) << rank.status();
  EXPECT_GT(*rank, 0.6);  // of the pairs that do not follow, a third is in the circle, too
  EXPECT_EQ(TrainFollows(follows, {})->SerializeAsString(), model->SerializeAsString());
}

TEST(SocialLearned, StrangersGetThePopular) {
  std::vector<FollowOf> follows;
  for (const auto& [from, to] : GenerateFollows(3, 200, 4000)) follows.emplace_back(from, to);
  const auto model = TrainFollows(follows, {});
  ASSERT_TRUE(model.ok()) << model.status();
  std::vector<size_t> followers(200);
  for (const auto& [from, to] : follows) ++followers[to];
  size_t sum = 0;
  for (const uint64_t one : BestFor(*model, 9999, 10)) sum += followers[one];
  EXPECT_GT(sum / 10, 3 * follows.size() / 200);
  EXPECT_GT(*HeldOutRank(follows, {}), 0.57);  // chance is 0.5; what is popular is all there is to know
  EXPECT_EQ(BestFor(*model, 7, 1000).size(), 199u);
}

TEST(SocialLearned, RefusesWhatCannotBeLearned) {
  EXPECT_TRUE(absl::IsInvalidArgument(TrainFollows({}, {}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(TrainFollows(TwoCircles(8), {.rank = 0}).status()));
  FollowModel broken = *TrainFollows(TwoCircles(8), {});
  broken.mutable_taste()->RemoveLast();
  EXPECT_TRUE(absl::IsDataLoss(Check(broken)));
}

TEST(SocialLearned, AFileIsReadAgainWhenItIsReplaced) {
  const TempDir dir;
  apps::ModelFile<FollowModel> file(dir.File("model"));
  EXPECT_TRUE(absl::IsFailedPrecondition(file.Get().status()));
  FollowModel model;
  model.add_users(7), model.add_popularity(1);
  ASSERT_TRUE(apps::WriteMessage(model, dir.File("model")).ok());
  EXPECT_THAT((*file.Get())->users(), ElementsAre(7));
  const auto old = *file.Get();
  EXPECT_EQ(old, *file.Get());
  model.add_users(9), model.add_popularity(1);
  ASSERT_TRUE(apps::WriteMessage(model, dir.File("model")).ok());
  EXPECT_THAT((*file.Get())->users(), ElementsAre(7, 9));
  EXPECT_THAT(old->users(), ElementsAre(7));
  dir.Write("model", "no model");
  EXPECT_TRUE(absl::IsDataLoss(file.Get().status()));
}

}  // namespace
}  // namespace curtail::social
