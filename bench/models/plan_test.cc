// SPDX-License-Identifier: Apache-2.0
#include "plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace curtail::models {
namespace {

using testing::ElementsAre;

TEST(Loads, AreRatesOrPercentages) {
  const auto loads = ParseLoads("50,1.5k,25%");
  ASSERT_TRUE(loads.ok()) << loads.status();
  ASSERT_EQ(loads->size(), 3u);
  EXPECT_EQ((*loads)[1].value, 1500);
  EXPECT_FALSE((*loads)[1].percent);
  EXPECT_EQ((*loads)[2].value, 25);
  EXPECT_TRUE((*loads)[2].percent);
}

TEST(Loads, RefusesWhatIsNone) {
  for (const char* text : {"", "50,,60", "0", "-5", "nan", "5x", "1k%", "300%", "2000k", "inf"}) {
    EXPECT_FALSE(ParseLoads(text).ok()) << text;
  }
}

TEST(Loads, DefaultsAreSixOnAFastMachine) {
  EXPECT_THAT(ResolveLoads(*ParseLoads(kDefaultLoads), 28942),
              ElementsAre(50, 870, 2900, 5800, 10000, 14000));
}

TEST(Loads, ResolveInOrderWithoutDoubles) {
  // 3 % of 1,667 is 50.01, which rounds to what is there already.
  EXPECT_THAT(ResolveLoads(*ParseLoads("75%,50,3%"), 1667), ElementsAre(50, 1300));
  EXPECT_THAT(ResolveLoads(*ParseLoads("1%"), 12), ElementsAre(1));
}

TEST(Configs, RefuseDoublesAndNonsense) {
  EXPECT_EQ(ParseConfigs("SIB1,ADB1-4-4")->size(), 2u);
  EXPECT_FALSE(ParseConfigs("SIB1,SIB1").ok());
  EXPECT_FALSE(ParseConfigs("SIB1,").ok());
}

TEST(Timing, GivesLowLoadsMoreTimeWithinBounds) {
  Timing timing;
  timing.cell_s = 2, timing.wanted_requests = 300, timing.max_stretch = 4;
  EXPECT_DOUBLE_EQ(timing.CellSeconds(50), 6);
  EXPECT_DOUBLE_EQ(timing.CellSeconds(1), 8);
  EXPECT_DOUBLE_EQ(timing.CellSeconds(10000), 2);
}

// The promise of the flags for twelve models: some 32 candidates, six loads.
TEST(Timing, KeepsItsPromises) {
  const std::vector<double> loads = {50, 870, 2900, 5800, 10000, 14000};
  EXPECT_LT(Timing().TotalSeconds(36, 12, loads), 15 * 60);
  EXPECT_LT(Timing::Quick().TotalSeconds(24, 12, loads), 100);
}

}  // namespace
}  // namespace curtail::models
