// SPDX-License-Identifier: Apache-2.0
#include "demo_table.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail::tool {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// `n` requests, most of which take half of `slow`; the slowest two in a hundred are spread so that the p99 is
// `slow`.
DemoCell Cell(std::string config, double rate, Nanos slow, uint64_t n = 2000) {
  DemoCell cell;
  cell.config = std::move(config);
  cell.rate_per_s = rate;
  LoadResult& r = cell.result;
  r.scheduled = r.sent = r.ok = n;
  r.scheduled_per_s = r.sent_per_s = r.good_per_s = rate;
  r.all.Record(slow / 2, n - n / 50);
  const auto tail = static_cast<int64_t>(n / 50);
  for (int64_t i = 0; i < tail; ++i) r.all.Record(slow / 2 + slow * i / tail);
  r.score = {"recall@10", n, 0.95 * static_cast<double>(n), 0.5};
  cell.server_cores = 0.25;
  return cell;
}

TEST(JudgeCells, FindsTheBestOfEachRow) {
  const std::vector<DemoCell> cells = {Cell("A", 100, milliseconds(4)), Cell("B", 100, milliseconds(2)),
                                       Cell("A", 500, milliseconds(4)), Cell("B", 500, milliseconds(9))};
  EXPECT_THAT(JudgeCells(cells),
              ElementsAre(Verdict::kWorse, Verdict::kBest, Verdict::kBest, Verdict::kWorse));
}

TEST(JudgeCells, DoesNotPreferOnNoise) {
  // 300 samples bound no p99 from above, so nothing can be told apart.
  const std::vector<DemoCell> few = {Cell("A", 100, milliseconds(4), 300),
                                     Cell("B", 100, milliseconds(2), 300)};
  EXPECT_THAT(JudgeCells(few), ElementsAre(Verdict::kTied, Verdict::kBest));
  const std::vector<DemoCell> close = {Cell("A", 100, microseconds(2001)), Cell("B", 100, milliseconds(2))};
  EXPECT_THAT(JudgeCells(close), testing::Contains(Verdict::kTied));
}

TEST(JudgeCells, SaturatedAndVoidCellsAreOutOfTheContest) {
  DemoCell failing = Cell("A", 100, microseconds(10));
  failing.result.failed = 100;
  DemoCell slow = Cell("B", 100, microseconds(10));
  slow.result.good_per_s = 90;
  DemoCell late = Cell("C", 100, microseconds(10));
  late.result.invalid = {"the generator was late"};
  const std::vector<DemoCell> cells = {failing, slow, late, Cell("D", 100, milliseconds(50))};
  EXPECT_THAT(JudgeCells(cells),
              ElementsAre(Verdict::kSaturated, Verdict::kSaturated, Verdict::kVoid, Verdict::kBest));
  EXPECT_THAT(JudgeCells({late}), ElementsAre(Verdict::kVoid));
}

TEST(DemoTable, HasARowALoadAndAColumnAConfig) {
  // Measured in any order; a cell is missing, as after an interrupt.
  const std::vector<DemoCell> cells = {Cell("SIP1", 500, milliseconds(9)), Cell("SIB1", 100, milliseconds(2)),
                                       Cell("SIP1", 100, milliseconds(4))};
  const std::string text = DemoTable(cells, Console());
  EXPECT_THAT(text, ContainsRegex("load +SIP1 +SIB1\n"));
  EXPECT_THAT(text, ContainsRegex(" 100/s +2\\.0. / (3\\.9|4\\.0). +1\\.0. / (1\\.9|2\\.0). \\*\n"));
  EXPECT_THAT(text, ContainsRegex(" 500/s +4\\.5. / (8\\.[789]|9\\.0). \\* +-\n"));
  EXPECT_LT(text.find("100/s"), text.find("500/s"));
  EXPECT_THAT(text, HasSubstr("recall@10: 0.9500 over 6000 replies"));
  EXPECT_THAT(text, Not(HasSubstr("saturated"))) << "the key lists only marks in use";
}

TEST(DemoTable, WideCellsDoNotTouch) {
  const std::vector<DemoCell> cells = {Cell("A", 100, std::chrono::seconds(20)),
                                       Cell("B", 100, std::chrono::seconds(2000))};
  EXPECT_THAT(DemoTable(cells, Console()),
              ContainsRegex(" 100/s +[0-9.]+ / [0-9.]+ [*=]? +[0-9.]+ / [0-9.]+ [*=]? *\n"));
}

TEST(DemoTable, SaysWhenThereIsNothing) {
  EXPECT_THAT(DemoTable({}, Console()), HasSubstr("nothing was measured"));
  EXPECT_THAT(DemoJson({}, {}, true), HasSubstr("\"interrupted\": true"));
}

TEST(DemoJson, CarriesVerdictAndWholeResult) {
  const std::string text =
      DemoJson({"fashion-mnist", 10, 1, true}, {Cell("SIB1", 100, milliseconds(2))}, false);
  EXPECT_THAT(text, HasSubstr("\"verdict\": \"best\""));
  EXPECT_THAT(text, HasSubstr("\"latency_us\""));
  EXPECT_THAT(text, HasSubstr("\"server_cores\": 0.25"));
}

}  // namespace
}  // namespace curtail::tool
