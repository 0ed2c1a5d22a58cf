// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/logistic.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "curtail/base/rng.h"

namespace curtail::apps {

std::vector<double> TrainLogistic(std::span<const LogisticCases> cases, size_t features,
                                  const LogisticTraining& training) {
  constexpr double kRate = 0.3, kFirst = 1e-6;
  std::vector<double> weights(features), squares(features, kFirst);
  std::vector<size_t> order(cases.size());
  std::iota(order.begin(), order.end(), size_t{0});
  Rng rng(training.seed);
  for (uint32_t pass = 0; pass < training.passes; ++pass) {
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.Below(i)]);
    for (const size_t i : order) {
      const LogisticCases& one = cases[i];
      double sum = 0;
      for (const uint32_t place : one.features) sum += weights[place];
      const double error = one.all * Logistic(sum) - one.positive;
      for (const uint32_t place : one.features) {
        const double slope = error + training.regularization * weights[place];
        squares[place] += slope * slope;
        weights[place] -= kRate * slope / std::sqrt(squares[place]);
      }
    }
  }
  return weights;
}

double Logistic(double sum) { return 1 / (1 + std::exp(-std::clamp(sum, -30.0, 30.0))); }

}  // namespace curtail::apps
