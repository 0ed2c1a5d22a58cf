// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/compare/scenario.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail::tool {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<std::string> PhaseNames(const Scenario& scenario) {
  std::vector<std::string> names;
  for (const Phase& phase : scenario.phases) names.push_back(phase.name);
  return names;
}

// Phases follow each other from the warm-up to the end, have the curve's rate, and hold all of its requests.
void ExpectCovered(const Scenario& scenario) {
  Nanos at = scenario.warmup;
  double requests = scenario.curve.Expected(scenario.warmup);
  for (const Phase& phase : scenario.phases) {
    EXPECT_EQ(phase.from, at) << phase.name;
    EXPECT_LT(phase.from, phase.to) << phase.name;
    at = phase.to;
    requests += phase.rate_per_s * static_cast<double>((phase.to - phase.from).count()) / 1e9;
  }
  EXPECT_EQ(at, scenario.curve.length());
  EXPECT_NEAR(requests, scenario.curve.total(), 1e-6 * requests);
}

TEST(SteadyScenario, GoesUpAndDownAgain) {
  const absl::StatusOr<Scenario> s = SteadyScenario({100, 500, 2000}, seconds(5), seconds(2));
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(s->name, "steady");
  EXPECT_THAT(PhaseNames(*s), ElementsAre("100/s up", "500/s up", "2000/s", "500/s down", "100/s down"));
  ExpectCovered(*s);
  EXPECT_DOUBLE_EQ(s->curve.total(), 2 * 100 + 5 * (100 + 500 + 2000 + 500 + 100));
  EXPECT_DOUBLE_EQ(s->curve.RateAt(seconds(1)), 100) << "the warm-up";
  EXPECT_DOUBLE_EQ(s->curve.RateAt(seconds(14)), 2000);
  EXPECT_DOUBLE_EQ(s->phases[2].rate_per_s, 2000);
  for (const Phase& phase : s->phases) EXPECT_TRUE(phase.steady);
}

TEST(SteadyScenario, LowLoadsLastLonger) {
  const absl::StatusOr<Scenario> s = SteadyScenario({20, 100, 1000}, seconds(2), seconds(0));
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(s->phases[0].to - s->phases[0].from, seconds(8)) << "four times at most";
  EXPECT_EQ(s->phases[1].to - s->phases[1].from, seconds(3)) << "300 requests";
  EXPECT_EQ(s->phases[2].to - s->phases[2].from, seconds(2));
  EXPECT_EQ(s->curve.length(), seconds(24));
  ExpectCovered(*s);
}

TEST(SteadyScenario, OneLoadIsOnePhase) {
  const absl::StatusOr<Scenario> s = SteadyScenario({1e6}, milliseconds(10), seconds(1));
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_THAT(PhaseNames(*s), ElementsAre("1e+06/s"));
  ExpectCovered(*s);
}

TEST(FlashCrowdScenario, HasASpikeAndItsAftermath) {
  const absl::StatusOr<Scenario> s =
      FlashCrowdScenario(100, 8000, seconds(10), seconds(1), seconds(15), seconds(2));
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_THAT(PhaseNames(*s), ElementsAre("before", "spike", "first second after", "after"));
  ExpectCovered(*s);
  EXPECT_DOUBLE_EQ(s->curve.total(), 100 * 27 + 8000);
  const Phase* spike = FindPhase(*s, "spike");
  ASSERT_NE(spike, nullptr);
  EXPECT_EQ(spike->from, seconds(12));
  EXPECT_DOUBLE_EQ(s->curve.RateAt(spike->from - Nanos(1)), 100);
  EXPECT_DOUBLE_EQ(s->curve.RateAt(spike->from), 8000);
  EXPECT_DOUBLE_EQ(s->curve.RateAt(spike->to), 100);
  EXPECT_TRUE(s->phases[0].steady && s->phases[3].steady);
  EXPECT_FALSE(s->phases[1].steady || s->phases[2].steady);
  EXPECT_EQ(FindPhase(*s, "busy"), nullptr);
}

TEST(RampScenario, GoesUpAndDownInStraightLines) {
  const absl::StatusOr<Scenario> s = RampScenario(100, 900, seconds(40), seconds(3));
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_THAT(PhaseNames(*s), ElementsAre("rising low", "rising high", "falling high", "falling low"));
  ExpectCovered(*s);
  EXPECT_DOUBLE_EQ(s->curve.RateAt(seconds(13)), 500);
  EXPECT_DOUBLE_EQ(s->curve.RateAt(seconds(23)), 900);
  EXPECT_DOUBLE_EQ(s->phases[0].rate_per_s, 300);
  EXPECT_DOUBLE_EQ(s->phases[2].rate_per_s, 700);
  EXPECT_NEAR(s->curve.total(), 300 + 500 * 40, 1e-6);
}

TEST(DiurnalScenario, IsBusyInItsMiddleThird) {
  const absl::StatusOr<Scenario> s = DiurnalScenario(100, 1300, seconds(60), seconds(1));
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_THAT(PhaseNames(*s), ElementsAre("quiet 1", "busy", "quiet 2"));
  ExpectCovered(*s);
  EXPECT_NEAR(s->curve.RateAt(seconds(31)), 1300, 1e-6);
  EXPECT_NEAR(s->curve.total(), 100 + 60 * 700, 50) << "a cosine is at its middle on average";
  EXPECT_GT(s->phases[1].rate_per_s, 2.5 * s->phases[0].rate_per_s);
  EXPECT_NEAR(s->phases[0].rate_per_s, s->phases[2].rate_per_s, 1e-6);
}

TEST(Scenario, RefusesWhatMakesNone) {
  const Nanos s = seconds(1);
  const auto error = [](const absl::StatusOr<Scenario>& scenario) {
    EXPECT_EQ(scenario.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(scenario.status().message());
  };
  EXPECT_THAT(error(SteadyScenario({}, s, s)), HasSubstr("0 loads; there must be from 1 to 50"));
  EXPECT_THAT(error(SteadyScenario({5, 3}, s, s)), HasSubstr("a load of 3 after 5"));
  EXPECT_THAT(error(SteadyScenario({5, 5}, s, s)), HasSubstr("a load of 5 after 5"));
  EXPECT_THAT(error(SteadyScenario({kNaN}, s, s)), HasSubstr("steady: a load of nan"));
  EXPECT_THAT(error(SteadyScenario({1e8}, s, s)), HasSubstr("at most 10 million"));
  EXPECT_THAT(error(SteadyScenario({5}, Nanos(0), s)), HasSubstr("the time at each load is 0 s"));
  EXPECT_THAT(error(SteadyScenario({5}, s, Nanos(-1))), HasSubstr("steady: a lead-in"));
  EXPECT_THAT(error(SteadyScenario(std::vector<double>(51, 1), s, s)), HasSubstr("51 loads"));
  EXPECT_THAT(error(SteadyScenario({5}, RateCurve::kMaxLength, s)), HasSubstr("steady: "));
  EXPECT_THAT(error(FlashCrowdScenario(5, 5, s, s, 2 * s, s)), HasSubstr("flash-crowd: from 5 to 5"));
  EXPECT_THAT(error(FlashCrowdScenario(5, 9, s, s, s, s)),
              HasSubstr("after the spike is 1 s; it must be over 1 s"));
  EXPECT_THAT(error(FlashCrowdScenario(5, 9, Nanos(0), s, 2 * s, s)), HasSubstr("before the spike is 0 s"));
  EXPECT_THAT(error(FlashCrowdScenario(5, 9, s, -s, 2 * s, s)), HasSubstr("the spike is -1 s"));
  EXPECT_THAT(error(RampScenario(-1, 5, s, s)), HasSubstr("ramp: from -1 to 5"));
  EXPECT_THAT(error(RampScenario(1, 5, Nanos(3), s)), HasSubstr("ramp: its length"));
  EXPECT_THAT(error(DiurnalScenario(1, kNaN, s, s)), HasSubstr("diurnal: from 1 to nan"));
  EXPECT_THAT(error(DiurnalScenario(1, 2, Nanos::max(), s)), HasSubstr("at most 100 days"));
}

}  // namespace
}  // namespace curtail::tool
