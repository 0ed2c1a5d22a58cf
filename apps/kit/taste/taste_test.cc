// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/taste/taste.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "curtail/base/rng.h"
#include "curtail/base/testing.h"

namespace curtail::apps {
namespace {

const TasteTraining kTraining = {.most = 10};
constexpr uint64_t kRaters = 60, kShown = 80, kFirstUser = 1000, kFirstItem = 5000;

// Users of even numbers like items of even numbers, and the others the others.
float Taste(uint64_t user, uint64_t item) { return (user + item) % 2 == 0 ? 9.0f : 2.0f; }

std::vector<Liking> Rate(uint64_t seed) {
  Rng rng(seed);
  std::vector<Liking> ratings;
  for (uint64_t user = 0; user < kRaters; ++user) {
    for (uint64_t item = 0; item < kShown; ++item) {
      if (rng.Below(2) == 0) continue;
      const auto noise = static_cast<float>(rng.Uniform01() - 0.5);
      ratings.push_back({kFirstUser + user, kFirstItem + item, Taste(user, item) + noise});
    }
  }
  return ratings;
}

TEST(TasteModel, PredictsWhatItHasNotSeen) {
  const std::vector<Liking> ratings = Rate(TestSeed());
  const auto error = ErrorOfHeldOut(ratings, kTraining);
  ASSERT_TRUE(error.ok()) << error.status();
  EXPECT_GT(error->scores, ratings.size() / 20);
  EXPECT_NEAR(error->by_mean, 3.5, 0.3);
  EXPECT_LT(error->by_model, 1.5);
}

TEST(TasteModel, RecommendsToEachUserWhatItLikes) {
  const auto model = TrainTaste(Rate(TestSeed()), kTraining);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE(Check(*model).ok());
  for (const uint64_t user : {kFirstUser, kFirstUser + 1}) {
    const std::vector<uint64_t> best = BestFor(*model, user, 10);
    ASSERT_EQ(best.size(), 10u);
    for (const uint64_t item : best) EXPECT_EQ(item % 2, user % 2);
    EXPECT_GT(PredictScore(*model, user, best[0]), 7);
  }
  const std::vector<uint64_t> own = {kFirstItem, kFirstItem + 2, 7};
  for (const size_t count : {size_t{1}, own.size()}) {
    const std::vector<uint64_t> similar = SimilarTo(*model, std::span(own).first(count), 10);
    ASSERT_EQ(similar.size(), 10u);
    for (const uint64_t item : similar)
      EXPECT_TRUE(item % 2 == 0 && std::ranges::count(std::span(own).first(count), item) == 0) << item;
  }
  EXPECT_EQ(BestFor(*model, 7, 3).size(), 3u) << "a user that the model does not have";
  EXPECT_TRUE(SimilarTo(*model, std::span(own).last(1), 3).empty());
  EXPECT_EQ(BestFor(*model, kFirstUser, 1000).size(), kShown);
}

// Users take a half of the items of their own parity.
TEST(TasteModel, LearnsFromItemsThatUsersTook) {
  Rng rng(TestSeed());
  std::vector<Liking> taken;
  for (uint64_t user = 0; user < kRaters; ++user)
    for (uint64_t item = user % 2; item < kShown; item += 2)
      if (rng.Below(2) == 0) taken.push_back({kFirstUser + user, kFirstItem + item, 1});
  const size_t before = taken.size();
  AddOthers(1, TestSeed(), &taken);
  EXPECT_EQ(taken.size(), 2 * before);
  std::set<std::pair<uint64_t, uint64_t>> pairs;
  for (const Liking& one : taken) EXPECT_TRUE(pairs.emplace(one.user, one.item).second) << "drawn twice";
  const TasteTraining training = {.regularization = 3};
  const auto error = ErrorOfHeldOut(taken, training);
  ASSERT_TRUE(error.ok()) << error.status();
  EXPECT_LT(error->by_model, 0.93 * error->by_mean);
  const auto model = TrainTaste(taken, training);
  ASSERT_TRUE(model.ok()) << model.status();
  const uint64_t in_cart = kFirstItem;
  for (const uint64_t item : SimilarTo(*model, {&in_cart, 1}, 10)) EXPECT_EQ(item % 2, 0u) << item;

  std::vector<Liking> all = {{1, 2, 1}};
  AddOthers(3, 1, &all);
  EXPECT_EQ(all.size(), 1u) << "the only pair";
}

TEST(TasteModel, RefusesWhatItCannotLearnFrom) {
  EXPECT_TRUE(absl::IsInvalidArgument(TrainTaste({}, {}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ErrorOfHeldOut({}, {}).status()));
  const std::vector<Liking> one = {{1, 2, 3}};
  EXPECT_TRUE(absl::IsInvalidArgument(TrainTaste(one, {.rank = 0}).status()));
  auto model = TrainTaste(one, kTraining);
  ASSERT_TRUE(model.ok());
  EXPECT_NEAR(PredictScore(*model, 1, 2), 3, 0.01);
  model->add_users(9);
  EXPECT_TRUE(absl::IsDataLoss(Check(*model)));
}

}  // namespace
}  // namespace curtail::apps
