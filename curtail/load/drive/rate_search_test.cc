// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/drive/rate_search.h"

#include <cmath>
#include <functional>

#include "curtail/base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail {
namespace {

using End = RateSearch::End;
using testing::HasSubstr;

constexpr TrialOutcome kMet = TrialOutcome::kMet;
constexpr TrialOutcome kNotMet = TrialOutcome::kNotMet;
constexpr TrialOutcome kVoid = TrialOutcome::kVoid;

RateSearch Search(const std::function<TrialOutcome(double)>& server, const RateSearchOptions& options = {}) {
  RateSearch search(options);
  while (const auto rate = search.Next()) {
    EXPECT_LT(search.trials().size(), static_cast<size_t>(options.max_trials));
    EXPECT_GE(*rate, options.lowest_per_s);
    EXPECT_LE(*rate, options.highest_per_s);
    search.Tell(server(*rate));
  }
  EXPECT_NE(search.end(), End::kRunning);
  return search;
}

std::function<TrialOutcome(double)> Limit(double limit) {
  return [limit](double rate) { return rate <= limit ? kMet : kNotMet; };
}

int TrialsAt(const RateSearch& search, double rate, TrialOutcome outcome) {
  int count = 0;
  for (const RateTrial& t : search.trials()) count += t.rate_per_s == rate && t.outcome == outcome ? 1 : 0;
  return count;
}

TEST(RateSearch, FindsEveryLimitWithinFivePercent) {
  for (double limit = 1.5; limit < 9e5; limit *= 1.37) {
    const RateSearch search = Search(Limit(limit));
    ASSERT_EQ(search.end(), End::kConverged) << limit;
    EXPECT_LE(*search.highest(), limit);
    EXPECT_GT(*search.refused(), limit);
    EXPECT_LE(*search.refused(), *search.highest() * 1.05);
    EXPECT_GE(TrialsAt(search, *search.highest(), kMet), 2) << "confirmed";
    EXPECT_GE(TrialsAt(search, *search.refused(), kNotMet), 2) << "confirmed";
    EXPECT_EQ(search.disagreements(), 0);
    EXPECT_LE(search.trials().size(), 45u);
  }
}

TEST(RateSearch, DoublesOnOneSuccessAndConfirmsTheLast) {
  RateSearch search({.start_per_s = 100});
  std::vector<double> rates;
  for (TrialOutcome outcome : {kMet, kMet, kNotMet, kNotMet, kMet}) {
    rates.push_back(*search.Next());
    search.Tell(outcome);
  }
  EXPECT_THAT(rates, testing::ElementsAre(100, 200, 400, 400, 200));
  EXPECT_DOUBLE_EQ(*search.Next(), std::sqrt(200.0 * 400));
}

TEST(RateSearch, OneHiccupDoesNotDecide) {
  // Whichever single trial goes wrong, the result stays right.
  const size_t trials = Search(Limit(3000)).trials().size();
  for (size_t wrong = 0; wrong < trials; ++wrong) {
    size_t trial = 0;
    const RateSearch search = Search([&](double rate) {
      const TrialOutcome right = Limit(3000)(rate);
      if (trial++ != wrong) return right;
      return right == kMet ? kNotMet : kMet;
    });
    ASSERT_EQ(search.end(), End::kConverged) << wrong;
    EXPECT_LE(*search.highest(), 3000) << wrong;
    EXPECT_GT(*search.highest(), 3000 / 1.05 / 1.05) << wrong;
  }
}

TEST(RateSearch, AProvisionalRateThatIsNotConfirmedIsGivenUp) {
  // 400 is met by luck once while doubling; the limit is 300.
  bool lucky = true;
  const RateSearch search = Search([&](double rate) {
    if (rate == 400 && lucky) {
      lucky = false;
      return kMet;
    }
    return Limit(300)(rate);
  });
  EXPECT_EQ(search.end(), End::kConverged);
  EXPECT_LE(*search.highest(), 300);
  EXPECT_GT(*search.highest(), 280);
  EXPECT_EQ(search.disagreements(), 1);
  EXPECT_THAT(search.Describe(), HasSubstr("trials disagreed at 1 rate)"));
}

TEST(RateSearch, NoisyServersAreFoundNearTheirLimit) {
  constexpr uint64_t kSeeds = 200;
  int near = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Rng rng(seed);
    const double limit = 50 * std::exp(7 * rng.Uniform01());
    const auto noisy = [&](double rate) {
      // The chance to meet the condition falls from nine in ten to one in ten within 10 % of the limit.
      const double chance = 1 / (1 + std::exp(22 * std::log(rate / limit)));
      return rng.Uniform01() < chance ? kMet : kNotMet;
    };
    const RateSearch search = Search(noisy);
    ASSERT_TRUE(search.end() == End::kConverged) << "seed " << seed;
    near += std::abs(std::log(*search.highest() / limit)) < 0.2 ? 1 : 0;
  }
  EXPECT_GE(near, static_cast<int>(kSeeds * 95 / 100)) << "seeds 1 to " << kSeeds;
}

TEST(RateSearch, TheGeneratorsEndIsToldFromTheServers) {
  const RateSearch search = Search([](double rate) { return rate > 5000 ? kVoid : kMet; });
  EXPECT_EQ(search.end(), End::kGeneratorLimit);
  EXPECT_LE(*search.highest(), 5000);
  EXPECT_GT(*search.highest(), 4700);
  EXPECT_EQ(TrialsAt(search, *search.refused(), kVoid), 3) << "repeated twice";
  EXPECT_THAT(search.Describe(), HasSubstr("a second are void, which is not the server's fault"));
  // The server fails below the rate at which the generator does.
  const RateSearch server = Search([](double rate) { return rate > 5000 ? kVoid : Limit(3300)(rate); });
  EXPECT_EQ(server.end(), End::kConverged);
  EXPECT_LE(*server.highest(), 3300);
}

TEST(RateSearch, AVoidTrialNowAndThenDoesNotMatter) {
  int trial = 0;
  const RateSearch search = Search([&](double rate) { return ++trial % 3 == 0 ? kVoid : Limit(777)(rate); });
  EXPECT_EQ(search.end(), End::kConverged);
  EXPECT_LE(*search.highest(), 777);
  EXPECT_GT(*search.highest(), 777 / 1.05);
}

TEST(RateSearch, EndsAtItsBounds) {
  const RateSearch all = Search(Limit(1e9), {.start_per_s = 300, .highest_per_s = 1000});
  EXPECT_EQ(all.end(), End::kHighestAccepted);
  EXPECT_EQ(*all.highest(), 1000);
  EXPECT_EQ(TrialsAt(all, 1000, kMet), 2);
  EXPECT_FALSE(all.refused().has_value());

  const RateSearch none = Search(Limit(0));
  EXPECT_EQ(none.end(), End::kNothingAccepted);
  EXPECT_FALSE(none.highest().has_value());
  EXPECT_EQ(none.Describe(), "no rate is confirmed; not even 1 a second meets the condition");

  const RateSearch broken = Search([](double) { return kVoid; });
  EXPECT_EQ(broken.end(), End::kNothingAccepted);
  EXPECT_THAT(broken.Describe(), HasSubstr("runs are void, which is not the server's fault"));
}

TEST(RateSearch, StopsAfterSoManyTrialsWithWhatIsConfirmed) {
  for (int most = 1; most < 30; ++most) {
    const RateSearch search = Search(Limit(3000), {.start_per_s = 100, .max_trials = most});
    EXPECT_LE(search.trials().size(), static_cast<size_t>(most));
    if (search.end() != End::kOutOfTrials) continue;
    EXPECT_EQ(search.trials().size(), static_cast<size_t>(most));
    if (search.highest()) {
      EXPECT_GE(TrialsAt(search, *search.highest(), kMet), 2);
      EXPECT_LE(*search.highest(), 3000);
    }
  }
  EXPECT_EQ(Search(Limit(3000), {.max_trials = 5}).end(), End::kOutOfTrials);
}

// Any answers at all lead to an end, and what is called confirmed has two successes.
TEST(RateSearch, AnyAnswersEnd) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    Rng rng(seed);
    const uint64_t favour = rng.Below(10);
    const RateSearch search = Search([&](double) {
      const uint64_t dice = rng.Below(12);
      return dice < favour ? kMet : dice < 10 ? kNotMet : kVoid;
    });
    const double highest = search.highest().value_or(0);
    EXPECT_TRUE(highest == 0 || TrialsAt(search, highest, kMet) == 2) << "seed " << seed;
    EXPECT_LT(highest, search.refused().value_or(2e6)) << "seed " << seed;
    EXPECT_FALSE(search.Describe().empty());
  }
}

}  // namespace
}  // namespace curtail
