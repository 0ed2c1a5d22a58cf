// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/logistic.h"

#include <gtest/gtest.h>

#include <array>

namespace curtail::apps {
namespace {

TEST(Logistic, FindsTheProbabilitiesOfFeatures) {
  // The first feature is everybody's. Of the cases with the second, 3 in 4 are positive, and 1 in 10 of the others.
  const std::array<uint32_t, 2> with = {0, 1}, without = {0, 2};
  const std::array<LogisticCases, 2> cases = {{{with, 40, 30}, {without, 40, 4}}};
  const std::vector<double> weights = TrainLogistic(cases, 4, {.passes = 300, .regularization = 0});
  EXPECT_NEAR(Logistic(weights[0] + weights[1]), 0.75, 0.01);
  EXPECT_NEAR(Logistic(weights[0] + weights[2]), 0.10, 0.01);
  EXPECT_EQ(weights[3], 0) << "no case has it";
  EXPECT_EQ(TrainLogistic(cases, 4, {.passes = 300, .regularization = 0}), weights);
}

TEST(Logistic, StaysBetween0And1) {
  EXPECT_EQ(Logistic(0), 0.5);
  EXPECT_GT(Logistic(-1e9), 0);
  EXPECT_LT(Logistic(1e9), 1);
}

}  // namespace
}  // namespace curtail::apps
