// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/message/choice.h"

#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace curtail {
namespace {

ItemChoice Make(std::string_view spec, uint64_t n, uint64_t seed) {
  absl::StatusOr<ItemChoice> choice = ParseItemChoice(spec, n, seed);
  EXPECT_TRUE(choice.ok()) << choice.status();
  return *std::move(choice);
}

std::vector<double> Counts(const ItemChoice& choice, uint64_t requests) {
  std::vector<double> counts(choice.items());
  for (uint64_t r = 0; r < requests; ++r) {
    const uint64_t item = choice.Index(r);
    if (item < choice.items()) counts[item] += 1;  // one beyond is missed in the sum
  }
  return counts;
}

// The chi-square statistic of the counts, in standard deviations above its mean (k - 1, variance 2 (k - 1)).
double Surprise(const std::vector<double>& counts, const std::vector<double>& weights) {
  double total = 0, weight = 0, chi2 = 0;
  for (double c : counts) total += c;
  for (double w : weights) weight += w;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = total * weights[i] / weight;
    chi2 += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  const double freedom = static_cast<double>(counts.size() - 1);
  return (chi2 - freedom) / std::sqrt(2 * freedom);
}

std::vector<double> ZipfWeights(double exponent, size_t n) {
  std::vector<double> weights(n);
  for (size_t i = 0; i < n; ++i) weights[i] = std::pow(static_cast<double>(i + 1), -exponent);
  return weights;
}

TEST(ItemChoice, InTurnGoesRound) {
  const ItemChoice choice = Make("in-turn", 3, 1);
  EXPECT_EQ(choice.Index(0), 0u);
  EXPECT_EQ(choice.Index(1), 1u);
  EXPECT_EQ(choice.Index(5), 2u);
  EXPECT_EQ(choice.Index(~uint64_t{0}), ~uint64_t{0} % 3);
  EXPECT_EQ(choice.spec(), "in-turn");
}

TEST(ItemChoice, UniformIsEven) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    EXPECT_LT(std::abs(Surprise(Counts(Make("uniform", 100, seed), 100'000), ZipfWeights(0, 100))), 4)
        << "seed " << seed;
  }
}

TEST(ItemChoice, ZipfHasTheExactDistribution) {
  for (const char* exponent : {"0.1", "0.5", "0.99", "1", "1.00000001", "1.5", "3"}) {
    for (const size_t n : {2, 10, 50}) {
      for (uint64_t seed = 1; seed <= 3; ++seed) {
        SCOPED_TRACE(testing::Message() << "zipf:" << exponent << " of " << n << ", seed " << seed);
        const std::vector<double> counts = Counts(Make(std::string("zipf:") + exponent, n, seed), 200'000);
        double total = 0;
        for (double c : counts) total += c;
        EXPECT_EQ(total, 200'000) << "none is beyond the items";
        EXPECT_LT(Surprise(counts, ZipfWeights(std::stod(exponent), n)), 5);
      }
    }
  }
}

TEST(ItemChoice, TheTestTellsOneExponentFromAnother) {
  EXPECT_GT(Surprise(Counts(Make("zipf:0.99", 50, 1), 200'000), ZipfWeights(0.95, 50)), 20);
}

TEST(ItemChoice, ZipfTakesAnyNumberOfItems) {
  EXPECT_EQ(Make("zipf:0.99", 1, 1).Index(12345), 0u);
  // Of a million million items with exponent 1 the first gets 1 / (ln n + 0.5772) = 3.545 % of the requests, and
  // half of the requests go to items below 10^5.75.
  const ItemChoice many = Make("zipf:1", 1'000'000'000'000, 7);
  int first = 0, lower = 0;
  for (uint64_t r = 0; r < 100'000; ++r) {
    const uint64_t item = many.Index(r);
    ASSERT_LT(item, many.items());
    first += item == 0;
    lower += item < 562'341;
  }
  EXPECT_NEAR(first, 3545, 4 * 59) << "seed 7";
  // (ln 562341 + 0.5772) / (ln 10^12 + 0.5772)
  EXPECT_NEAR(lower / 1e5, 0.4898, 0.0064) << "seed 7";
  const ItemChoice most = Make("zipf:0.01", ItemChoice::kMaxItems, 7);
  for (uint64_t r = 0; r < 1000; ++r) EXPECT_LT(most.Index(r), ItemChoice::kMaxItems);
  const ItemChoice steep = Make("zipf:100", 1000, 7);
  for (uint64_t r = 0; r < 1000; ++r) EXPECT_EQ(steep.Index(r), 0u);
}

TEST(ItemChoice, SkewGivesTheHotItemsNineInTen) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::vector<double> weights(100, 0.1 / 80);
    std::fill(weights.begin(), weights.begin() + 20, 0.9 / 20);
    EXPECT_LT(std::abs(Surprise(Counts(Make("skew:80", 100, seed), 100'000), weights)), 4);
    EXPECT_LT(std::abs(Surprise(Counts(Make("skew:0", 100, seed), 100'000), ZipfWeights(0, 100))), 4);
  }
  const std::vector<double> one = Counts(Make("skew:99.9", 50, 2), 100'000);
  EXPECT_NEAR(one[0], 90'000, 400) << "one item is hot at least; seed 2";
  EXPECT_EQ(Make("skew:50", 1, 1).Index(9), 0u);
}

TEST(ItemChoice, DependsOnSeedAndNumberAlone) {
  for (const char* spec : {"uniform", "zipf:0.9", "skew:70"}) {
    const ItemChoice a = Make(spec, 1000, 5), same = Make(spec, 1000, 5), other = Make(spec, 1000, 6);
    int equal = 0, shifted = 0;
    for (uint64_t r = 1000; r-- > 0;) {
      EXPECT_EQ(a.Index(r), same.Index(r));
      equal += a.Index(r) == other.Index(r);
      shifted += a.Index(r + 1) == other.Index(r);
    }
    EXPECT_LT(equal, 200) << spec;
    EXPECT_LT(shifted, 200) << spec << ": neighbouring seeds are no shift of each other";
  }
}

TEST(ItemChoice, RefusesWhatItCannotRead) {
  for (const char* bad :
       {"",          "zipf",       "zipf:",  "zipf:0", "zipf:-1",    "zipf:nan", "zipf:inf", "zipf:101",
        "zipf:1x",   "zipf:1e999", "skew",   "skew:",  "skew:100",   "skew:-1",  "skew:x",   "uniform:1",
        "in-turn:2", "Uniform",    "latest", ":",      "zipf:0.9:1", "\xff\x01"}) {
    const absl::Status status = ParseItemChoice(bad, 10, 1).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad;
  }
  EXPECT_NE(ParseItemChoice("latest", 10, 1).status().ToString().find("in-turn, uniform, zipf"),
            std::string::npos);
  EXPECT_EQ(ParseItemChoice("uniform", 0, 1).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseItemChoice("uniform", ItemChoice::kMaxItems + 1, 1).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace curtail
