// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/clicks/click_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "curtail/base/rng.h"

namespace curtail::apps {
namespace {

// Users click ads of the topic with their parity in a third of all cases, and others hardly ever.
std::vector<AdShown> Clicks(uint64_t seed) {
  Rng rng(seed);
  std::vector<AdShown> shown;
  for (uint64_t user = 0; user < 60; ++user) {
    for (uint64_t ad = 0; ad < 20; ++ad) {
      AdShown one{.features = ClickFeaturesOf(user, ad, ad % 2 == 0 ? "pears" : "ships"), .shown = 3};
      for (uint32_t i = 0; i < one.shown; ++i) {
        one.clicked += rng.Uniform01() < (user % 2 == ad % 2 ? 0.33 : 0.01) ? 1 : 0;
      }
      shown.push_back(one);
    }
  }
  return shown;
}

TEST(ClickModel, FindsUsersWhoClick) {
  const ClickModel model = TrainClicks(Clicks(1), {});
  ASSERT_TRUE(Check(model).ok());
  for (const uint64_t user : {2, 3}) {
    const double pears = ClickProbability(model, ClickFeaturesOf(user, 100, "pears"));  // a new ad
    const double ships = ClickProbability(model, ClickFeaturesOf(user, 101, "ships"));
    EXPECT_GT(user == 2 ? pears : ships, 0.2) << user;
    EXPECT_LT(user == 2 ? ships : pears, 0.1) << user;
  }
  // Of clicks that it has not seen: better than the one probability of all, 0.17, whose loss is 0.456.
  EXPECT_LT(LogLoss(model, Clicks(2)), 0.40);
  EXPECT_EQ(TrainClicks(Clicks(1), {}).SerializeAsString(), model.SerializeAsString());
  EXPECT_TRUE(absl::IsDataLoss(Check(ClickModel())));
}

// Property: nothing tells of chance. A model that has seen what it is judged by would.
TEST(ClickModel, IsJudgedByWhatItHasNotSeen) {
  Rng rng(3);
  std::vector<AdShown> shown;
  for (uint64_t user = 0; user < 2000; ++user)
    shown.push_back({ClickFeaturesOf(user, user % 20, "pears"), 1, static_cast<uint32_t>(rng.Below(2))});
  EXPECT_LT(LogLoss(TrainClicks(shown, {}), shown), 0.6);
  const HeldOutLoss loss = LossOfHeldOut(shown, {});
  EXPECT_NEAR(static_cast<double>(loss.showings), 200, 60);
  EXPECT_NEAR(loss.by_rate, 0.693, 0.01);
  EXPECT_GT(loss.by_model, 0.68);
  const HeldOutLoss better = LossOfHeldOut(Clicks(1), {});
  EXPECT_LT(better.by_model, 0.9 * better.by_rate);
}

struct Candidate {
  uint64_t id = 0;
  double probability = 0.5;
};

std::vector<uint64_t> Chosen(size_t limit, uint64_t draw) {
  std::vector<Candidate> ads = {{1}, {2, 0.9}, {3}, {4, 0.1}};
  ChooseAds(limit, draw, &ads);
  std::vector<uint64_t> ids;
  for (const Candidate& ad : ads) ids.push_back(ad.id);
  return ids;
}

TEST(ClickModel, TheLikeliestAreChosenAndTheLastIsDrawn) {
  EXPECT_THAT(Chosen(9, 1), testing::ElementsAre(2, 3, 1, 4)) << "of equal ones the newer";
  EXPECT_THAT(Chosen(1, 1), testing::ElementsAre(2));
  std::vector<bool> last(5);
  for (uint64_t draw = 1; draw < 100; ++draw) {
    const std::vector<uint64_t> two = Chosen(2, draw);
    EXPECT_EQ(two[0], 2u);
    last[two[1]] = true;
  }
  EXPECT_TRUE(last[1] && last[3] && last[4]);
}

}  // namespace
}  // namespace curtail::apps
