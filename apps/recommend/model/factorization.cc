// SPDX-License-Identifier: Apache-2.0
//
// Biases come first, by taking turns too, and the factors explain what they leave. Each row is solved by
// itself with sums in the order of the row, and the objective adds the rows up in order: threads share out
// rows, and change no bit of the result.
#include "apps/recommend/model/factorization.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <string>

#include "apps/kit/parallel.h"
#include "apps/recommend/data/hash.h"
#include "curtail/base/strings.h"

namespace curtail::recommend {
namespace {

constexpr int kBiasTurns = 10;

// A bias a line: the damped mean of what the mean and the other side's biases leave.
void SolveBiases(const Sparse& side, double mean, double damping, const Eigen::VectorXd& others, int threads,
                 Eigen::VectorXd* biases) {
  apps::ForRanges(0, side.lines(), threads, [&](size_t begin, size_t end) {
    for (size_t line = begin; line < end; ++line) {
      const auto indices = side.Indices(line);
      const auto values = side.Values(line);
      double sum = 0;
      for (size_t i = 0; i < indices.size(); ++i) sum += values[i] - mean - others[indices[i]];
      (*biases)[static_cast<Eigen::Index>(line)] = sum / (static_cast<double>(indices.size()) + damping);
    }
    return absl::OkStatus();
  }).IgnoreError();
}

// One direction of the problem: what the biases leave of each entry, and the factors of its lines, one a
// column.
struct Side {
  Sparse entries;
  Eigen::MatrixXd factors;
};

void TakeBiases(double mean, const Eigen::VectorXd& own, const Eigen::VectorXd& others, Sparse* side) {
  for (size_t line = 0; line < side->lines(); ++line) {
    for (uint64_t entry = side->begin[line]; entry < side->begin[line + 1]; ++entry) {
      const double base = mean + own[static_cast<Eigen::Index>(line)] + others[side->index[entry]];
      side->value[entry] = static_cast<float>(side->value[entry] - base);
    }
  }
}

// The least squares of each line with the other side held fixed.
void SolveFactors(double regularization, const Eigen::MatrixXd& others, int threads, Side* side) {
  const Eigen::Index rank = others.rows();
  apps::ForRanges(0, side->entries.lines(), threads, [&](size_t begin, size_t end) {
    Eigen::MatrixXd normal(rank, rank);
    Eigen::VectorXd right(rank);
    for (size_t line = begin; line < end; ++line) {
      const auto indices = side->entries.Indices(line);
      const auto values = side->entries.Values(line);
      normal.setIdentity();
      normal *= regularization;
      right.setZero();
      for (size_t i = 0; i < indices.size(); ++i) {
        normal.selfadjointView<Eigen::Lower>().rankUpdate(others.col(indices[i]));
        right += double{values[i]} * others.col(indices[i]);
      }
      side->factors.col(static_cast<Eigen::Index>(line)) =
          normal.selfadjointView<Eigen::Lower>().llt().solve(right);
    }
    return absl::OkStatus();
  }).IgnoreError();
}

double Objective(double regularization, const Side& users, const Side& items, int threads) {
  std::vector<double> errors(users.entries.lines());
  apps::ForRanges(0, errors.size(), threads, [&](size_t begin, size_t end) {
    for (size_t line = begin; line < end; ++line) {
      const auto indices = users.entries.Indices(line);
      const auto values = users.entries.Values(line);
      const auto own = users.factors.col(static_cast<Eigen::Index>(line));
      for (size_t i = 0; i < indices.size(); ++i) {
        errors[line] += std::pow(values[i] - own.dot(items.factors.col(indices[i])), 2);
      }
    }
    return absl::OkStatus();
  }).IgnoreError();
  return std::accumulate(errors.begin(), errors.end(), 0.0) +
         regularization * (users.factors.squaredNorm() + items.factors.squaredNorm());
}

// Small and roughly normal; an item's depend on the seed and its id.
Eigen::MatrixXd FirstFactors(const std::vector<uint32_t>& ids, uint32_t rank, uint64_t seed) {
  Eigen::MatrixXd factors(rank, static_cast<Eigen::Index>(ids.size()));
  for (Eigen::Index column = 0; column < factors.cols(); ++column) {
    for (Eigen::Index f = 0; f < factors.rows(); ++f) {
      const uint64_t bits = Mix(Mix(seed, ids[static_cast<size_t>(column)]), static_cast<uint64_t>(f));
      const double u = (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53;
      const double v = static_cast<double>(Mix(bits) >> 11) * 0x1p-53;
      factors(f, column) = 0.1 * std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
    }
  }
  return factors;
}

// With next to no regularisation and ratings of millions the arithmetic can run out of range; a factor that
// did says nothing.
std::vector<float> ToFloats(const Eigen::MatrixXd& values) {
  std::vector<float> floats(static_cast<size_t>(values.size()));
  std::transform(values.data(), values.data() + values.size(), floats.begin(), [](double v) {
    return std::isfinite(v) ? static_cast<float>(std::clamp<double>(v, -kMaxLearned, kMaxLearned)) : 0.0f;
  });
  return floats;
}

}  // namespace

absl::Status Check(const TrainOptions& o) {
  const auto bad = [](std::string_view what) { return absl::InvalidArgumentError(std::string(what)); };
  if (o.rank < 1 || o.rank > kMaxRank) return bad(Join("rank is ", o.rank, "; want 1 to ", kMaxRank));
  if (o.iterations < 1 || o.iterations > kMaxIterations) {
    return bad(Join("iterations is ", o.iterations, "; want 1 to ", kMaxIterations));
  }
  if (!(o.regularization >= 1e-6 && o.regularization <= 1e6)) {
    return bad("regularization must be 0.000001 to 1000000");
  }
  if (!(o.bias_damping >= 0 && o.bias_damping <= 1e6)) return bad("bias damping must be 0 to 1000000");
  return absl::OkStatus();
}

Factors Factorize(const Matrix& matrix, const TrainOptions& options, int threads, bool quiet,
                  std::vector<double>* objective) {
  Side items{matrix.by_item, FirstFactors(matrix.items, options.rank, options.seed)};
  Side users{Transpose(matrix.by_item, matrix.users.size()),
             Eigen::MatrixXd::Zero(options.rank, static_cast<Eigen::Index>(matrix.users.size()))};
  const std::vector<float>& values = items.entries.value;
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  // Rounding must not lift the mean of equal ratings above them.
  const double mean = std::clamp<double>(sum / static_cast<double>(values.size()), matrix.low, matrix.high);

  Eigen::VectorXd user_bias = Eigen::VectorXd::Zero(users.factors.cols());
  Eigen::VectorXd item_bias = Eigen::VectorXd::Zero(items.factors.cols());
  for (int turn = 0; turn < kBiasTurns; ++turn) {
    SolveBiases(items.entries, mean, options.bias_damping, user_bias, threads, &item_bias);
    SolveBiases(users.entries, mean, options.bias_damping, item_bias, threads, &user_bias);
  }
  TakeBiases(mean, item_bias, user_bias, &items.entries);
  TakeBiases(mean, user_bias, item_bias, &users.entries);

  const double lambda = options.regularization;
  if (objective != nullptr) objective->push_back(Objective(lambda, users, items, threads));
  apps::Progress progress("factorising", options.iterations, quiet, "turns");
  for (uint32_t turn = 0; turn < options.iterations; ++turn) {
    SolveFactors(lambda, items.factors, threads, &users);
    SolveFactors(lambda, users.factors, threads, &items);
    if (objective != nullptr) objective->push_back(Objective(lambda, users, items, threads));
    progress.Add(1);
  }
  return {.mean = mean,
          .rank = options.rank,
          .user_bias = ToFloats(user_bias),
          .item_bias = ToFloats(item_bias),
          .user_factors = ToFloats(users.factors),
          .item_factors = ToFloats(items.factors)};
}

}  // namespace curtail::recommend
