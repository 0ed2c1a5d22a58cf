// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "nlohmann/json.hpp"
#include "results.h"
#include "workload.h"

namespace curtail::study {
namespace {

// Two rounds of a baseline and of fibers that are twice and four times as fast, and as late again and half as late.
Results TwoRounds() {
  Results r;
  r.rounds = 2;
  r.baseline_peak_per_s = 1000;
  r.part_config = "SIB1";
  r.loads = {{.outstanding = 16},
             {.outstanding = 64},
             {.share = 0.5, .rate_per_s = 500},
             {.share = 0.1, .rate_per_s = 100}};
  r.rows = {{*Variant::Parse("std-SDB1-4"), {}}, {*Variant::Parse("curtail-FIB1"), {}}};
  const auto full = [](double rate) { return Measurement{.achieved_per_s = rate}; };
  const auto open = [](double p99) { return Measurement{.p99_us = p99}; };
  r.rows[0].cells = {
      {full(900), full(1000)}, {full(1000), full(700)}, {open(7), open(7)}, {open(100), open(200)}};
  r.rows[1].cells = {
      {full(2000), full(3000)}, {full(1500), full(4000)}, {open(7), open(7)}, {open(200), open(100)}};
  return r;
}

TEST(Compare, TakesRatiosRoundByRound) {
  const std::vector<Comparison> all = Compare(TwoRounds());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_TRUE(all[0].fibers);
  EXPECT_EQ(all[0].peak_ratio->min, 2);
  EXPECT_EQ(all[0].peak_ratio->max, 4);
  EXPECT_EQ(all[0].low_p99_ratio->min, 0.5);  // of the lowest open load, wherever it stands
  EXPECT_EQ(all[0].low_p99_ratio->max, 2);
}

TEST(Compare, LeavesOutRoundsThatAreMissing) {
  Results r = TwoRounds();
  r.rows[1].cells[1].pop_back();
  r.rows[1].cells[3].clear();
  const std::vector<Comparison> all = Compare(r);
  EXPECT_EQ(all[0].peak_ratio->max, 2);
  EXPECT_FALSE(all[0].low_p99_ratio.has_value());
}

TEST(Faults, CountWhereNoneMayBe) {
  Results r = TwoRounds();
  r.loads.push_back({.share = 0.9, .rate_per_s = 900});
  for (Row& row : r.rows) row.cells.push_back({{.failed = 100}});
  EXPECT_EQ(Faults(r), 0u);
  r.rows[1].cells[0][1].failed = 2;
  r.rows[0].cells[2][0].failed = 3;
  EXPECT_EQ(Faults(r), 5u);
}

TEST(Study, SaysTheSameToPeopleAndPrograms) {
  const bench::Report report = ReportOf(TwoRounds());
  const std::string text = report.ToMarkdown();
  EXPECT_NE(text.find("Peak of fibers (curtail-FIB1) over std-SDB1-4: 3.00 x"), std::string::npos) << text;
  EXPECT_NE(text.find("1.25 x; bar: at most 1.1 x, missed"), std::string::npos) << text;
  const auto tables = nlohmann::json::parse(report.ToJson())["tables"];
  EXPECT_EQ(tables["comparisons"][0]["peak_ratio"]["median"], 3.0);
  EXPECT_EQ(tables["cells"][1]["variant"], "curtail-FIB1");
  EXPECT_EQ(tables["cells"][1]["achieved_per_s"]["rounds"].size(), 2u);
}

TEST(ComposeWorkload, RepeatsItselfFromTheSeed) {
  const ComposeWorkload a(7), b(7), other(8);
  EXPECT_EQ(a.Request(3), b.Request(3));
  EXPECT_NE(a.Request(3), other.Request(3));
  EXPECT_NE(a.Request(3), a.Request(4));
}

TEST(ComposeWorkload, TellsAWrongPost) {
  const ComposeWorkload workload(7);
  EXPECT_FALSE(workload.CheckSample({}).ok());
}

}  // namespace
}  // namespace curtail::study
