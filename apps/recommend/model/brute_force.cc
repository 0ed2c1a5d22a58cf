// SPDX-License-Identifier: Apache-2.0
#include "apps/recommend/model/brute_force.h"

#include <algorithm>

namespace curtail::recommend {

BruteForce::BruteForce(const Model& model, size_t neighbors) : model_(model), neighbors_(neighbors) {
  const Matrix& m = model.matrix;
  for (uint32_t user = 0; user < m.users.size(); ++user) users_[m.users[user]] = user;
  for (uint32_t item = 0; item < m.items.size(); ++item) {
    items_[m.items[item]] = item;
    for (uint64_t entry = m.by_item.begin[item]; entry < m.by_item.begin[item + 1]; ++entry) {
      ratings_[{m.by_item.index[entry], item}] = m.by_item.value[entry];
    }
  }
  const size_t rank = model.factors.rank;
  gram_.assign(rank * rank, 0);
  for (size_t item = 0; item < m.items.size(); ++item) {
    const float* q = &model.factors.item_factors[item * rank];
    for (size_t i = 0; i < rank; ++i) {
      for (size_t j = 0; j < rank; ++j) {
        gram_[i * rank + j] += double{q[i]} * q[j] / static_cast<double>(m.items.size());
      }
    }
  }
}

double BruteForce::SquaredDistance(uint32_t a, uint32_t b) const {
  const size_t rank = model_.factors.rank;
  const float* p = &model_.factors.user_factors[a * rank];
  const float* other = &model_.factors.user_factors[b * rank];
  double sum = 0;
  for (size_t i = 0; i < rank; ++i) {
    for (size_t j = 0; j < rank; ++j) {
      sum += (double{p[i]} - other[i]) * gram_[i * rank + j] * (double{p[j]} - other[j]);
    }
  }
  return std::max(sum, 0.0);
}

double BruteForce::Deviation(uint32_t user, uint32_t item) const {
  const Factors& f = model_.factors;
  if (const auto rated = ratings_.find({user, item}); rated != ratings_.end()) {
    return rated->second - f.mean - f.user_bias[user] - f.item_bias[item];
  }
  double product = 0;
  for (size_t i = 0; i < f.rank; ++i) {
    product += double{f.user_factors[user * f.rank + i]} * f.item_factors[item * f.rank + i];
  }
  return product;
}

double BruteForce::Predict(uint32_t user_id, uint32_t item_id) const {
  const auto user = users_.find(user_id);
  const auto item = items_.find(item_id);
  double rating = model_.factors.mean;
  if (user != users_.end()) rating += model_.factors.user_bias[user->second];
  if (item != items_.end()) rating += model_.factors.item_bias[item->second];
  if (user != users_.end() && item != items_.end()) {
    std::vector<std::pair<double, uint32_t>> others;
    for (uint32_t other = 0; other < users_.size(); ++other) {
      if (other != user->second) others.emplace_back(SquaredDistance(user->second, other), other);
    }
    std::sort(others.begin(), others.end());
    const bool limited = others.size() > neighbors_ && others[neighbors_].first > 0;
    double sum = Deviation(user->second, item->second), weights = 1;
    for (size_t i = 0; i < std::min(neighbors_, others.size()); ++i) {
      const double weight = limited ? 1 - others[i].first / others[neighbors_].first : 1;
      sum += weight * Deviation(others[i].second, item->second);
      weights += weight;
    }
    rating += sum / weights;
  }
  return std::clamp<double>(rating, model_.matrix.low, model_.matrix.high);
}

double MeanPrediction(const std::vector<BruteForce>& leaves, uint32_t user, uint32_t item) {
  double sum = 0;
  for (const BruteForce& leaf : leaves) sum += leaf.Predict(user, item);
  return sum / static_cast<double>(leaves.size());
}

}  // namespace curtail::recommend
