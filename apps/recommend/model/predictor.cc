// SPDX-License-Identifier: Apache-2.0
#include "apps/recommend/model/predictor.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace curtail::recommend {
namespace {

using Columns = Eigen::Map<const Eigen::MatrixXf>;

Columns FactorColumns(const std::vector<float>& factors, uint32_t rank) {
  return {factors.data(), rank, static_cast<Eigen::Index>(factors.size() / rank)};
}

// With G the mean of q q^T over the items, users p and p' differ by (p - p')^T G (p - p'): the square of
// their distance after multiplication by R, where G = R^T R. G may be singular, and rounding can make a pivot
// slightly negative.
std::vector<float> Tastes(const Factors& factors) {
  const Eigen::MatrixXd items = FactorColumns(factors.item_factors, factors.rank).cast<double>();
  const Eigen::MatrixXd gram = items * items.transpose() / static_cast<double>(items.cols());
  const Eigen::LDLT<Eigen::MatrixXd> decomposed(gram);
  Eigen::MatrixXd root = Eigen::MatrixXd::Identity(gram.rows(), gram.cols());
  root = decomposed.transpositionsP() * root;
  root = decomposed.matrixU() * root;
  root = decomposed.vectorD().cwiseMax(0).cwiseSqrt().asDiagonal() * root;
  const Eigen::MatrixXf tastes =
      (root * FactorColumns(factors.user_factors, factors.rank).cast<double>()).cast<float>();
  return {tastes.data(), tastes.data() + tastes.size()};
}

// A distance that overflows is as far as can be.
constexpr float kFarthest = std::numeric_limits<float>::max();

struct Neighbor {
  float distance;  // squared
  uint32_t user;
  friend bool operator<(const Neighbor& a, const Neighbor& b) {
    return std::pair(a.distance, a.user) < std::pair(b.distance, b.user);
  }
};

}  // namespace

Predictor::Predictor(Model model, size_t neighbors)
    : model_(std::move(model)), neighbors_(neighbors), tastes_(Tastes(model_.factors)) {}

Prediction Predictor::Predict(uint32_t user_id, uint32_t item_id) const {
  const std::optional<uint32_t> user = PlaceOf(model_.matrix.users, user_id);
  const std::optional<uint32_t> item = PlaceOf(model_.matrix.items, item_id);
  double rating = model_.factors.mean;
  Evidence evidence = Evidence::kMean;
  if (user) rating += model_.factors.user_bias[*user], evidence = Evidence::kUser;
  if (item) rating += model_.factors.item_bias[*item], evidence = Evidence::kItem;
  if (user && item) rating += Deviation(*user, *item), evidence = Evidence::kNeighbors;
  return {std::clamp<double>(rating, model_.matrix.low, model_.matrix.high), evidence};
}

double Predictor::Deviation(uint32_t user, uint32_t item) const {
  const Columns tastes = FactorColumns(tastes_, model_.factors.rank);
  const auto users = static_cast<uint32_t>(tastes.cols());
  thread_local std::vector<Neighbor> others;
  others.resize(users);
  for (uint32_t other = 0; other < users; ++other) {
    const float distance = (tastes.col(other) - tastes.col(user)).squaredNorm();
    others[other] = {std::min(kFarthest, distance), other};
  }
  std::swap(others[user], others.back());
  others.pop_back();
  float horizon = 0;  // 0: none is so far that it counts for nothing
  if (others.size() > neighbors_) {
    const auto first_outside = others.begin() + static_cast<std::ptrdiff_t>(neighbors_);
    std::nth_element(others.begin(), first_outside, others.end());
    horizon = first_outside->distance;
    others.erase(first_outside, others.end());
  }
  double sum = DeviationOf(user, item), weights = 1;
  for (const Neighbor& other : others) {
    const double weight = horizon > 0 ? 1 - double{other.distance} / horizon : 1;
    sum += weight * DeviationOf(other.user, item);
    weights += weight;
  }
  const double deviation = sum / weights;
  return std::isfinite(deviation) ? deviation : 0;
}

double Predictor::DeviationOf(uint32_t neighbor, uint32_t item) const {
  const Factors& f = model_.factors;
  const auto raters = model_.matrix.by_item.Indices(item);
  const auto found = std::lower_bound(raters.begin(), raters.end(), neighbor);
  if (found == raters.end() || *found != neighbor) {
    return FactorColumns(f.user_factors, f.rank)
        .col(neighbor)
        .dot(FactorColumns(f.item_factors, f.rank).col(item));
  }
  const double rating = model_.matrix.by_item.Values(item)[static_cast<size_t>(found - raters.begin())];
  return rating - f.mean - f.user_bias[neighbor] - f.item_bias[item];
}

double PredictByBiases(const Model& model, uint32_t user_id, uint32_t item_id) {
  double rating = model.factors.mean;
  if (const auto user = PlaceOf(model.matrix.users, user_id)) rating += model.factors.user_bias[*user];
  if (const auto item = PlaceOf(model.matrix.items, item_id)) rating += model.factors.item_bias[*item];
  return std::clamp<double>(rating, model.matrix.low, model.matrix.high);
}

}  // namespace curtail::recommend
