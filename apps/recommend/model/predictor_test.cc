// SPDX-License-Identifier: Apache-2.0
#include "apps/recommend/model/predictor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "apps/recommend/model/brute_force.h"

namespace curtail::recommend {
namespace {

Model Trained(const char* spec, uint32_t rank = 4) {
  TrainOptions train;
  train.rank = rank, train.iterations = 5;
  return *TrainModel(*DataSpec::Parse(spec), {}, train, {1, true});
}

constexpr char kSmall[] = "synthetic:users=60,items=50,ratings=900,seed=4";

TEST(Predictor, EqualsBruteForceForAllPairs) {
  const Model model = Trained(kSmall);
  for (const size_t neighbors : {1u, 7u, 59u, 60u, 1000u}) {
    const Predictor predictor(model, neighbors);
    const BruteForce plain(model, neighbors);
    for (uint32_t user = 0; user <= 62; ++user) {
      for (uint32_t item = 0; item <= 52; ++item) {
        EXPECT_NEAR(predictor.Predict(user, item).rating, plain.Predict(user, item), 2e-5)
            << user << " " << item << " with " << neighbors;
      }
    }
  }
}

// The distance of two users is what it is said to be: the root mean square difference of the ratings that
// their factors predict for all items. With one neighbour, and no other user at the
// same distance, the nearest user alone decides.
TEST(Predictor, NeighborsAreThoseWhoWouldRateAllItemsAlike) {
  const Model model = Trained(kSmall);
  const Factors& f = model.factors;
  const auto product = [&](uint32_t user, uint32_t item) {
    double sum = 0;
    for (uint32_t k = 0; k < f.rank; ++k)
      sum += double{f.user_factors[user * f.rank + k]} * f.item_factors[item * f.rank + k];
    return sum;
  };
  const uint32_t user = 10, item = 3;
  std::vector<std::pair<double, uint32_t>> others;
  for (uint32_t other = 0; other < model.matrix.users.size(); ++other) {
    double sum = 0;
    for (uint32_t i = 0; i < model.matrix.items.size(); ++i)
      sum += std::pow(product(user, i) - product(other, i), 2);
    if (other != user) others.emplace_back(sum, other);
  }
  std::sort(others.begin(), others.end());
  const auto deviation = [&](uint32_t who) {
    const auto raters = model.matrix.by_item.Indices(item);
    const auto rated = std::find(raters.begin(), raters.end(), who);
    if (rated == raters.end()) return product(who, item);
    const double rating = model.matrix.by_item.Values(item)[static_cast<size_t>(rated - raters.begin())];
    return rating - f.mean - f.user_bias[who] - f.item_bias[item];
  };
  const double weight = 1 - others[0].first / others[1].first;
  const double expected = f.mean + f.user_bias[user] + f.item_bias[item] +
                          (deviation(user) + weight * deviation(others[0].second)) / (1 + weight);
  const Predictor predictor(model, 1);
  EXPECT_NEAR(predictor.Predict(model.matrix.users[user], model.matrix.items[item]).rating,
              std::clamp(expected, 1.0, 5.0), 1e-4);
}

TEST(Predictor, UnknownUsersAndItemsGetWhatIsKnownOfTheOther) {
  const Model model = Trained(kSmall);
  const Predictor predictor(model, 10);
  const Factors& f = model.factors;
  EXPECT_EQ(predictor.Predict(0, 0).evidence, Evidence::kMean);
  EXPECT_DOUBLE_EQ(predictor.Predict(0, 0).rating, f.mean);
  EXPECT_EQ(predictor.Predict(1, 4294967295u).evidence, Evidence::kUser);
  EXPECT_DOUBLE_EQ(predictor.Predict(1, 4294967295u).rating,
                   std::clamp<double>(f.mean + f.user_bias[0], 1, 5));
  EXPECT_EQ(predictor.Predict(4294967295u, 1).evidence, Evidence::kItem);
  EXPECT_DOUBLE_EQ(predictor.Predict(4294967295u, 1).rating,
                   std::clamp<double>(f.mean + f.item_bias[0], 1, 5));
  EXPECT_EQ(predictor.Predict(1, 1).evidence, Evidence::kNeighbors);
  EXPECT_DOUBLE_EQ(PredictByBiases(model, 1, 1),
                   std::clamp<double>(f.mean + f.user_bias[0] + f.item_bias[0], 1, 5));
}

// One user; users alike in all; one rating; ratings that are all the same; factors as large as a file may
// have them.
TEST(Predictor, IsFiniteAndWithinTheScaleForOddData) {
  std::vector<Ratings> odd(4);
  odd[0] = {{{5, 6, 3}}, 3, 3, 0};
  odd[1] = {{{5, 6, 3}, {5, 7, 4}}, 3, 4, 0};
  odd[2] = {{{1, 6, 2}, {2, 6, 2}, {3, 6, 2}}, 2, 2, 0};
  odd[3] = {{{1, 6, -1e6f}, {2, 6, 1e6f}, {2, 7, 0}}, -1e6f, 1e6f, 0};
  for (const Ratings& ratings : odd) {
    Model model = TrainModel(ratings, {}, TrainOptions{}, 1, true);
    for (const float scale : {1.0f, 1e9f}) {
      for (float& v : model.factors.user_factors) v = std::clamp(v * scale, -kMaxLearned, kMaxLearned);
      for (float& v : model.factors.item_factors) v = std::clamp(v * scale, -kMaxLearned, kMaxLearned);
      const Predictor predictor(model, 2);
      for (uint32_t user = 0; user < 7; ++user) {
        for (uint32_t item = 5; item < 9; ++item) {
          const double rating = predictor.Predict(user, item).rating;
          EXPECT_TRUE(rating >= ratings.low && rating <= ratings.high) << rating;
        }
      }
    }
  }
}

}  // namespace
}  // namespace curtail::recommend
