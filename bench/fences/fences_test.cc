// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/fences/mix.h"
#include "bench/fences/results.h"
#include "bench/fences/stall.h"
#include "nlohmann/json.hpp"

namespace curtail::fences {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

ClassPlan Plan(const char* name, RateCurve curve) {
  return {name, std::make_shared<FixedWorkload>(std::string("/test.S/") + name, name), std::move(curve)};
}

// `a` at 1000/s for 2 s, `b` at 3000/s in the second one of them.
std::vector<ClassPlan> TwoClasses() {
  std::vector<ClassPlan> classes;
  classes.push_back(Plan("a", *RateCurve::Constant(1000, seconds(2))));
  classes.push_back(
      Plan("b", *RateCurve::Make({{Nanos(0), 0}, {seconds(1), 0}, {seconds(1), 3000}}, seconds(2))));
  return classes;
}

TEST(Mix, AddsTheRatesOfAllClasses) {
  const RateCurve sum = *SumOf(TwoClasses());
  EXPECT_EQ(sum.length(), seconds(2));
  EXPECT_NEAR(sum.RateAt(milliseconds(500)), 1000, 1e-6);
  EXPECT_NEAR(sum.RateAt(milliseconds(1500)), 4000, 1e-6);
  EXPECT_NEAR(sum.total(), 5000, 1);
}

TEST(Mix, AddsSlopes) {
  std::vector<ClassPlan> classes;
  classes.push_back(Plan("up", *RateCurve::Make({{Nanos(0), 0}, {seconds(2), 100}}, seconds(2))));
  classes.push_back(Plan("level", *RateCurve::Constant(10, seconds(2))));
  EXPECT_NEAR(SumOf(classes)->RateAt(seconds(1)), 60, 1e-3);
}

TEST(Mix, DrawsEachClassAtItsRate) {
  const auto mix = *Mix::Make(TwoClasses(), 7);
  uint64_t first[2] = {0, 0}, second[2] = {0, 0};
  Arrivals arrivals = mix->schedule().arrivals();
  for (uint64_t i = 0; const std::optional<Nanos> due = arrivals.Next(); ++i) {
    const size_t of_class = mix->ClassAt(*due);
    ++(*due < seconds(1) ? first : second)[of_class];
    EXPECT_EQ(mix->Request(i), of_class == 0 ? "a" : "b");
    EXPECT_EQ(mix->MethodOf(i), of_class == 0 ? "/test.S/a" : "/test.S/b");
  }
  EXPECT_EQ(first[1], 0u);
  EXPECT_NEAR(static_cast<double>(first[0]), 1000, 200);
  EXPECT_NEAR(static_cast<double>(second[0]), 1000, 200);
  EXPECT_NEAR(static_cast<double>(second[1]), 3000, 350);
}

TEST(Mix, FollowsFromTheSeed) {
  const auto one = *Mix::Make(TwoClasses(), 7), same = *Mix::Make(TwoClasses(), 7),
             other = *Mix::Make(TwoClasses(), 8);
  bool differs = false;
  for (uint64_t i = 0; i < 4000; ++i) {
    EXPECT_EQ(one->Request(i), same->Request(i));
    differs = differs || one->Request(i) != other->Request(i);
  }
  EXPECT_TRUE(differs);
}

TEST(PhaseRecorder, SortsByClassAndPhase) {
  const auto mix = *Mix::Make(TwoClasses(), 7);
  PhaseRecorder recorder(*mix, {.warmup = milliseconds(500),
                                .phase = milliseconds(500),
                                .phases = 3,
                                .slo = milliseconds(1),
                                .total = true});
  Arrivals arrivals = mix->schedule().arrivals();
  while (const std::optional<Nanos> due = arrivals.Next()) {
    const bool b = mix->ClassAt(*due) == 1;
    recorder.Ended(*due, b ? seconds(1) : milliseconds(2), !b);
  }
  const auto results = recorder.Results();
  ASSERT_EQ(results.size(), 3u);
  ASSERT_EQ(results[0].size(), 3u);
  EXPECT_EQ(results[2][1].due, results[0][1].due + results[1][1].due) << "all requests";
  EXPECT_EQ(results[2][1].dropped, results[1][1].due);
  EXPECT_EQ(results[0][0].good_per_s, 0) << "2 ms are no good answer";
  EXPECT_EQ(results[0][0].dropped, 0u);
  EXPECT_NEAR(results[0][0].answered_per_s, 1000, 200);
  EXPECT_NEAR(results[0][2].p99_ms, 2, 0.1);
  EXPECT_EQ(results[1][0].due, 0u) << "before it begins";
  EXPECT_EQ(results[1][1].dropped, results[1][1].due);
  EXPECT_NEAR(results[1][2].p99_ms, 1000, 10);
  EXPECT_EQ(results[1][2].answered_p99_ms, 0);
}

TEST(StallScenarios, BeginWithTheGuardedClassAlone) {
  for (const StallScenario& scenario : StallScenarios()) {
    SCOPED_TRACE(scenario.name);
    const auto plans = PlansOf(scenario, seconds(1), seconds(2));
    ASSERT_TRUE(plans.ok()) << plans.status();
    for (size_t i = 0; i < plans->size(); ++i) {
      const RateCurve& curve = (*plans)[i].curve;
      EXPECT_EQ(curve.length(), seconds(9));
      EXPECT_EQ(curve.RateAt(seconds(2)), i == 0 ? scenario.classes[0].rate_per_s : 0);
      EXPECT_EQ(curve.RateAt(seconds(6)), scenario.classes[i].rate_per_s);
    }
  }
}

// Two rounds of a stall, during which the p99 is `factors` times that of the guarded class alone.
Row StallRow(const char* variant, std::vector<double> factors) {
  Row row{*Variant::Parse(variant), {}};
  for (const double factor : factors) {
    const PhaseResult calm{.due = 100, .dropped = 0, .answered_per_s = 100, .p99_ms = 2};
    PhaseResult stalled = calm;
    stalled.p99_ms = 2 * factor;
    row.rounds.push_back({.classes = {{calm, calm, stalled, calm}}});
  }
  return row;
}

Results TwoVariants() {
  Results r;
  r.rounds = 2;
  r.parts.push_back({.name = "stall",
                     .title = "A leaf stalls.",
                     .classes = {"A"},
                     .phases = {"alone", "before", "during", "after"},
                     .rates_per_s = {100},
                     .phase_s = 1,
                     .rows = {StallRow("SDB1-16", {400, 200}), StallRow("SDB1-16+strict", {1.1, 1.3})}});
  return r;
}

TEST(FenceResults, TakeRatiosRoundByRound) {
  const Results r = TwoVariants();
  const std::optional<Spread> base = P99Ratio(r.parts[0].rows[0], 0, kDuring, kAlone);
  ASSERT_TRUE(base.has_value());
  EXPECT_EQ(base->min, 200);
  EXPECT_EQ(base->max, 400);
  EXPECT_FALSE(P99Ratio({*Variant::Parse("FIB1"), {}}, 0, kDuring, kAlone).has_value());
}

TEST(FenceResults, HoldEachVariantAgainstItsBar) {
  Results r = TwoVariants();
  Part& part = r.parts[0];
  EXPECT_FALSE(JudgeStall(part, part.rows[0])->isolates);
  EXPECT_TRUE(JudgeStall(part, part.rows[0])->held);
  EXPECT_TRUE(JudgeStall(part, part.rows[1])->isolates);
  EXPECT_FALSE(JudgeStall(part, part.rows[1])->held) << "1.2 in the median";
  part.slack_ms = 0.5;
  EXPECT_TRUE(JudgeStall(part, part.rows[1])->held) << "0.4 ms more";
  EXPECT_TRUE(JudgeStall(part, StallRow("ADB1-4-4", {1.1}))->held);
  EXPECT_FALSE(JudgeStall(part, StallRow("SDB1-16", {5}))->held);
}

TEST(FenceResults, FaultsCountBeforeTheStallOnly) {
  Results r = TwoVariants();
  r.parts[0].rows[0].rounds[0].classes[0][kDuring].dropped = 50;
  EXPECT_EQ(Faults(r.parts[0]), 0u);
  r.parts[0].rows[0].rounds[0].classes[0][kAlone].dropped = 2;
  r.parts[0].rows[1].rounds[1].classes[0][kBefore].dropped = 3;
  EXPECT_EQ(Faults(r.parts[0]), 5u);
}

TEST(FenceResults, CompareTracesWithTheFirstVariantThatHoldsNoThread) {
  Part part{.kind = Part::Kind::kTrace, .classes = {"Read", "Browse", "all"}, .phases = {"all"}};
  const auto row = [](const char* variant, double per_s, double p99) {
    const PhaseResult guarded{.due = 9, .p99_ms = 1}, all{.due = 9, .answered_per_s = per_s, .p99_ms = p99};
    return Row{*Variant::Parse(variant), {{.classes = {{guarded}, {all}, {all}}}}};
  };
  part.rows = {row("SDB1-16", 500, 900), row("ADB1-4-4", 1000, 100), row("SDB1-16+strict", 950, 105)};
  EXPECT_FALSE(JudgeTrace(part, part.rows[0])->held);
  EXPECT_EQ(JudgeTrace(part, part.rows[0])->p99.median, 9);
  EXPECT_TRUE(JudgeTrace(part, part.rows[2])->held);
  EXPECT_EQ(JudgeTrace(part, part.rows[2])->guarded_p99.median, 1);
  part.rows.erase(part.rows.begin() + 1);
  EXPECT_FALSE(JudgeTrace(part, part.rows[0]).has_value());
}

TEST(FenceResults, CompareTheGoodputAtTheHighestLoadWithThePeak) {
  Part part{.kind = Part::Kind::kOverload, .classes = {"A"}, .phases = {"1 x", "5 x"}};
  const auto row = [](double at_five, double p99) {
    const PhaseResult one{.due = 9, .good_per_s = 800};
    const PhaseResult five{.due = 9, .good_per_s = at_five, .answered_p99_ms = p99};
    return Row{*Variant::Parse("SDB1-16"), {{.classes = {{one, five}}}}};
  };
  EXPECT_TRUE(JudgeOverload(part, row(760, 200), 250)->held);
  EXPECT_FALSE(JudgeOverload(part, row(400, 200), 250)->held);
  EXPECT_FALSE(JudgeOverload(part, row(760, 300), 250)->held) << "the accepted wait too long";
}

TEST(FenceReport, SaysTheSameToPeopleAndPrograms) {
  const bench::Report report = ReportOf(TwoVariants());
  const std::string text = report.ToMarkdown();
  EXPECT_NE(text.find("300 (200-400)"), std::string::npos) << text;
  EXPECT_NE(text.find("missed"), std::string::npos) << "1.2 is over the bar\n" << text;
  const auto json = nlohmann::json::parse(report.ToJson());
  const auto& strict = json["tables"]["stall.verdict"][1];
  EXPECT_EQ(strict["variant"], "SDB1-16+strict");
  EXPECT_NEAR(strict["p99_during_over_alone"]["median"].get<double>(), 1.2, 1e-9);
  EXPECT_EQ(strict["held"], false);
  const auto& phases = json["tables"]["stall.phases"][1];
  EXPECT_EQ(phases["variant"], "SDB1-16+strict");
  EXPECT_EQ(phases["during.p99_ms"]["rounds"].size(), 2u);
}

}  // namespace
}  // namespace curtail::fences
