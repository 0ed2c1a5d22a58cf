// SPDX-License-Identifier: Apache-2.0
//
// factorization.h - splits a sparse matrix of ratings into biases and factors, by alternating least squares.
//
// A rating is taken for mean + bias of the user + bias of the item + product of their factors. With the
// items' factors held fixed, each user's are the solution of a small ridge regression, and the other way
// round; taking turns lowers the objective at every step (Zhou, Wilkinson, Schreiber, Pan: Large-scale
// Parallel Collaborative Filtering for the Netflix Prize, 2008).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "apps/recommend/model/matrix.h"

namespace curtail::recommend {

struct TrainOptions {
  uint32_t rank = 8;           // factors of a user and of an item, 1 to kMaxRank
  uint32_t iterations = 12;    // turns of users and items, 1 to kMaxIterations
  double regularization = 10;  // weight of the squared factors; raise for sparser data
  double bias_damping = 8;     // a bias is learned as if there were so many more ratings without any
  uint64_t seed = 1;           // of the first factors
};
inline constexpr uint32_t kMaxRank = 256;
inline constexpr uint32_t kMaxIterations = 1000;

// No bias and no factor is larger, nor smaller than the negative of it.
inline constexpr float kMaxLearned = 1e8f;

// The factors learned of users and items, by their rows in the matrix.
struct Factors {
  double mean = 0;
  uint32_t rank = 0;
  std::vector<float> user_bias, item_bias;
  std::vector<float> user_factors, item_factors;  // `rank` a row
};

// Which users are how far from which is the predictor's matter (predictor.h).
inline constexpr size_t kDefaultNeighbors = 30;

// Errors: INVALID_ARGUMENT that names the option and its limits.
[[nodiscard]] absl::Status Check(const TrainOptions& options);

// Factorises `matrix`. The result depends on the matrix and the options only, not on `threads`. Appends the
// value of the objective (squared errors plus regularisation of the factors) before the first and after each
// turn to `objective` unless it is null. REQUIRES: Check(options) is OK; the matrix has ratings.
Factors Factorize(const Matrix& matrix, const TrainOptions& options, int threads, bool quiet,
                  std::vector<double>* objective = nullptr);

}  // namespace curtail::recommend
