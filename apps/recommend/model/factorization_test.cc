// SPDX-License-Identifier: Apache-2.0
#include "apps/recommend/model/factorization.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>

#include "apps/recommend/data/ratings.h"

namespace curtail::recommend {
namespace {

Matrix Synthetic(const char* spec) {
  return MakeMatrix(*ReadRatings(*DataSpec::Parse(spec), {}, ReadOptions{1, true}));
}

// A full matrix: every user rated every item.
Matrix Dense(const Eigen::MatrixXd& values) {
  Ratings ratings;
  ratings.low = -1e6f, ratings.high = 1e6f;
  for (Eigen::Index u = 0; u < values.rows(); ++u) {
    for (Eigen::Index i = 0; i < values.cols(); ++i) {
      ratings.list.push_back(
          {static_cast<uint32_t>(u), static_cast<uint32_t>(i), static_cast<float>(values(u, i))});
    }
  }
  return MakeMatrix(ratings);
}

TEST(Matrix, TransposingTwiceChangesNothing) {
  const Matrix m = Synthetic("synthetic:users=20,items=30,ratings=200");
  const Sparse by_user = Transpose(m.by_item, m.users.size());
  EXPECT_EQ(Transpose(by_user, m.items.size()), m.by_item);
  EXPECT_EQ(by_user.lines(), m.users.size());
  EXPECT_EQ(PlaceOf(m.users, m.users[7]), 7u);
  EXPECT_EQ(PlaceOf(m.users, 999), std::nullopt);
}

TEST(Factorize, TheObjectiveFallsAtEveryTurn) {
  const Matrix m = Synthetic("synthetic:users=60,items=80,ratings=1500");
  std::vector<double> objective;
  TrainOptions options;
  options.iterations = 20, options.regularization = 2;
  Factorize(m, options, 2, true, &objective);
  ASSERT_EQ(objective.size(), 21u);
  for (size_t i = 1; i < objective.size(); ++i) {
    EXPECT_LE(objective[i], objective[i - 1] * (1 + 1e-12)) << "turn " << i;
  }
  EXPECT_LT(objective.back(), 0.9 * objective.front());
}

// Of a full matrix R with sum of squares as the error, the best factors are known: P Q^T keeps R's singular
// vectors, and each singular value falls by the weight of the regularisation, to 0 at least (the nuclear
// norm's proximal point; Srebro, Rennie, Jaakkola: Maximum-margin matrix factorization, 2004). So alternating
// must end where the SVD says.
TEST(Factorize, AgreesWithTheSingularValuesOfADenseMatrix) {
  Eigen::MatrixXd values(7, 5);
  for (Eigen::Index u = 0; u < 7; ++u) {
    for (Eigen::Index i = 0; i < 5; ++i)
      values(u, i) = 3 + 2 * std::sin(3.0 * u + 1.7 * i * i) + 0.3 * u - 0.2 * i;
  }
  // Without damping the biases are those of rows and columns: what is left has means of 0 both ways.
  const double mean = values.mean();
  const Eigen::VectorXd rows = values.rowwise().mean().array() - mean;
  const Eigen::RowVectorXd columns = values.colwise().mean().array() - mean;
  const Eigen::MatrixXd rest = ((values.array() - mean).matrix().colwise() - rows).rowwise() - columns;
  const double lambda = 0.7;
  const Eigen::JacobiSVD<Eigen::MatrixXd> svd(rest, Eigen::ComputeThinU | Eigen::ComputeThinV);
  Eigen::VectorXd shrunk = (svd.singularValues().array() - lambda).max(0);
  shrunk.tail(shrunk.size() - 3).setZero();  // rank 3
  const Eigen::MatrixXd expected = svd.matrixU() * shrunk.asDiagonal() * svd.matrixV().transpose();

  TrainOptions options;
  options.rank = 3, options.iterations = 1000, options.regularization = lambda, options.bias_damping = 0;
  const Factors f = Factorize(Dense(values), options, 1, true);
  EXPECT_NEAR(f.mean, mean, 1e-6);
  for (Eigen::Index u = 0; u < 7; ++u) {
    EXPECT_NEAR(f.user_bias[static_cast<size_t>(u)], rows[u], 1e-5);
    for (Eigen::Index i = 0; i < 5; ++i) {
      double product = 0;
      for (size_t k = 0; k < 3; ++k) {
        product += double{f.user_factors[static_cast<size_t>(u) * 3 + k]} *
                   f.item_factors[static_cast<size_t>(i) * 3 + k];
      }
      EXPECT_NEAR(product, expected(u, i), 2e-4) << u << " " << i;
    }
  }
}

TEST(Factorize, ThreadsChangeNoBit) {
  const Matrix m = Synthetic("synthetic:users=60,items=80,ratings=1500");
  TrainOptions options;
  options.iterations = 3;
  const Factors one = Factorize(m, options, 1, true);
  for (const int threads : {2, 5, 200}) {
    const Factors many = Factorize(m, options, threads, true);
    EXPECT_EQ(one.mean, many.mean);
    EXPECT_EQ(one.user_bias, many.user_bias);
    EXPECT_EQ(one.item_bias, many.item_bias);
    EXPECT_EQ(one.user_factors, many.user_factors);
    EXPECT_EQ(one.item_factors, many.item_factors);
  }
  options.seed = 2;
  EXPECT_NE(one.user_factors, Factorize(m, options, 1, true).user_factors);
}

TEST(Factorize, EqualRatingsGiveFiniteFactorsAndTheirMean) {
  const Factors f = Factorize(Dense(Eigen::MatrixXd::Constant(4, 3, 0.1)), TrainOptions{}, 1, true);
  EXPECT_NEAR(f.mean, 0.1, 1e-7);
  for (const float v : f.user_factors) EXPECT_TRUE(std::isfinite(v));
}

TEST(TrainOptions, AreChecked) {
  EXPECT_TRUE(Check(TrainOptions{}).ok());
  const auto refused = [](auto change) {
    TrainOptions options;
    change(options);
    return Check(options).code() == absl::StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused([](TrainOptions& o) { o.rank = 0; }));
  EXPECT_TRUE(refused([](TrainOptions& o) { o.rank = 257; }));
  EXPECT_TRUE(refused([](TrainOptions& o) { o.iterations = 0; }));
  EXPECT_TRUE(refused([](TrainOptions& o) { o.regularization = 0; }));
  EXPECT_TRUE(refused([](TrainOptions& o) { o.regularization = std::nan(""); }));
  EXPECT_TRUE(refused([](TrainOptions& o) { o.bias_damping = -1; }));
}

}  // namespace
}  // namespace curtail::recommend
