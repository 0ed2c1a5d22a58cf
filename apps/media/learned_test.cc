// SPDX-License-Identifier: Apache-2.0
#include "apps/media/learned.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "curtail/base/rng.h"
#include "curtail/base/testing.h"

namespace curtail::media {
namespace {

constexpr uint64_t kRaters = 60, kShown = 80, kFirstUser = 1000, kFirstMovie = 5000;

// Users of even numbers like movies of even numbers, and the others the others.
float Taste(uint64_t user, uint64_t movie) { return (user + movie) % 2 == 0 ? 9.0f : 2.0f; }

std::vector<UserRating> Rate(uint64_t seed) {
  Rng rng(seed);
  std::vector<UserRating> ratings;
  for (uint64_t user = 0; user < kRaters; ++user) {
    for (uint64_t movie = 0; movie < kShown; ++movie) {
      if (rng.Below(2) == 0) continue;
      const auto noise = static_cast<float>(rng.Uniform01() - 0.5);
      ratings.push_back({kFirstUser + user, kFirstMovie + movie, Taste(user, movie) + noise});
    }
  }
  return ratings;
}

TEST(MovieModel, PredictsWhatItHasNotSeen) {
  const std::vector<UserRating> ratings = Rate(TestSeed());
  const auto error = ErrorOfHeldOut(ratings, {});
  ASSERT_TRUE(error.ok()) << error.status();
  EXPECT_GT(error->ratings, ratings.size() / 20);
  EXPECT_NEAR(error->by_mean, 3.5, 0.3);
  EXPECT_LT(error->by_model, 1.5);
}

TEST(MovieModel, RecommendsToEachUserWhatItLikes) {
  const auto model = TrainMovies(Rate(TestSeed()), {});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE(Check(*model).ok());
  for (const uint64_t user : {kFirstUser, kFirstUser + 1}) {
    const std::vector<uint64_t> best = BestFor(*model, user, 10);
    ASSERT_EQ(best.size(), 10u);
    for (const uint64_t movie : best) EXPECT_EQ(movie % 2, user % 2);
    EXPECT_GT(PredictStars(*model, user, best[0]), 7);
  }
  const std::vector<uint64_t> similar = SimilarTo(*model, kFirstMovie, 10);
  ASSERT_EQ(similar.size(), 10u);
  for (const uint64_t movie : similar) EXPECT_TRUE(movie % 2 == 0 && movie != kFirstMovie) << movie;
  EXPECT_EQ(BestFor(*model, 7, 3).size(), 3u) << "a user that the model does not have";
  EXPECT_TRUE(SimilarTo(*model, 7, 3).empty());
  EXPECT_EQ(BestFor(*model, kFirstUser, 1000).size(), kShown);
}

TEST(MovieModel, RefusesWhatItCannotLearnFrom) {
  EXPECT_TRUE(absl::IsInvalidArgument(TrainMovies({}, {}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ErrorOfHeldOut({}, {}).status()));
  const std::vector<UserRating> one = {{1, 2, 3}};
  EXPECT_TRUE(absl::IsInvalidArgument(TrainMovies(one, {.rank = 0}).status()));
  auto model = TrainMovies(one, {});
  ASSERT_TRUE(model.ok());
  EXPECT_NEAR(PredictStars(*model, 1, 2), 3, 0.01);
  model->add_users(9);
  EXPECT_TRUE(absl::IsDataLoss(Check(*model)));
}

}  // namespace
}  // namespace curtail::media
