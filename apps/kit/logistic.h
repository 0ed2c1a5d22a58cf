// SPDX-License-Identifier: Apache-2.0
//
// logistic.h - logistic regression over features that a case has or lacks: pure and repeatable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace curtail::apps {

// Cases with the same features: how many there were, and how many of them were positive.
struct LogisticCases {
  std::span<const uint32_t> features;
  uint32_t all = 1;
  uint32_t positive = 0;
};

struct LogisticTraining {
  uint32_t passes = 30;
  double regularization = 1e-4;
  uint64_t seed = 1;
};

// Returns a weight for each of `features` features, by AdaGrad (Duchi, Hazan, Singer, 2011). REQUIRES: the features of all
// cases are below `features`.
std::vector<double> TrainLogistic(std::span<const LogisticCases> cases, size_t features,
                                  const LogisticTraining& training);

// Returns the probability that a case is positive, from the sum of its weights.
double Logistic(double sum);

}  // namespace curtail::apps
