// SPDX-License-Identifier: Apache-2.0
#include "pools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace curtail::models {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Candidate Measured(const char* config, double saturation, double p99) {
  Candidate c;
  c.config = *Config::Parse(config);
  c.saturation_per_s = saturation;
  c.low_p99_us = p99;
  c.measured = true;
  return c;
}

TEST(ChooseBest, TakesTheHighestThroughput) {
  EXPECT_THAT(ChooseBest({Measured("SDB1-4", 100, 1), Measured("SDB1-16", 200, 9)}), ElementsAre(1));
}

TEST(ChooseBest, TakesTheLowerTailAmongEqualThroughputs) {
  // 185 is within 10 % of 200, 175 is not, though its tail is the lowest of all.
  EXPECT_THAT(
      ChooseBest({Measured("SDB1-4", 175, 1), Measured("SDB1-16", 185, 5), Measured("SDB1-50", 200, 9)}),
      ElementsAre(1));
}

TEST(ChooseBest, TakesFewerThreadsAmongEquals) {
  EXPECT_THAT(ChooseBest({Measured("ADB1-4-4", 100, 5), Measured("ADB1-1-1", 100, 5)}), ElementsAre(1));
}

TEST(ChooseBest, GoesModelByModelInTheOrderOfThePaper) {
  EXPECT_THAT(ChooseBest({Measured("FIB1", 900, 1), Measured("AIB1-1", 50, 1), Measured("SIP1", 10, 1),
                          Measured("SIB1", 10, 1)}),
              ElementsAre(3, 2, 1, 0));
}

TEST(ChooseBest, LeavesOutWhatWasNotMeasured) {
  Candidate refused = Measured("FIB1", 1e9, 0);
  refused.measured = false;
  EXPECT_THAT(ChooseBest({refused, Measured("SIB1", 1, 1)}), ElementsAre(1));
  EXPECT_THAT(ChooseBest({refused}), IsEmpty());
}

TEST(DefaultCandidates, AreValidDistinctAndCoverTwelveModels) {
  for (const int cpus : {1, 2, 4, 16, 72, 256}) {
    for (const bool few : {false, true}) {
      std::map<std::string, int> by_model;
      std::set<std::string> seen;
      for (const Config& config : DefaultCandidates(cpus, few)) {
        const std::string text = config.ToString();
        const auto parsed = Config::Parse(text);
        ASSERT_TRUE(parsed.ok()) << parsed.status();
        EXPECT_EQ(*parsed, config) << text;
        EXPECT_TRUE(seen.insert(text).second) << text << " twice, " << cpus << " CPUs";
        ++by_model[ModelName(config.model)];
      }
      EXPECT_EQ(by_model.size(), 12u);
      for (const auto& [model, count] : by_model) EXPECT_LE(count, few ? 2 : 3) << model;
    }
  }
}

}  // namespace
}  // namespace curtail::models
