// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <string>
#include <vector>

#include "bench/common/load.h"
#include "bench/common/report.h"
#include "bench/common/round.h"
#include "bench/common/spread.h"
#include "gtest/gtest.h"

namespace curtail::bench {
namespace {

std::string TurnsOf(const RoundPlan& plan) {
  std::string turns;
  EXPECT_TRUE(RunRounds(plan, [&](const Turn& turn) {
                turns += std::to_string(turn.round) + std::to_string(turn.load) +
                         std::to_string(turn.subject) + " ";
                return absl::OkStatus();
              }).ok());
  return turns;
}

TEST(RunRounds, TakesTurnsInTheOrderAskedFor) {
  RoundPlan plan{.rounds = 2, .loads = 2, .subjects = 2};
  EXPECT_EQ(TurnsOf(plan), "000 001 010 011 100 101 110 111 ");
  plan.order = Order::kRotateByRound;
  EXPECT_EQ(TurnsOf(plan), "000 001 010 011 101 100 111 110 ");
  plan.order = Order::kRotate;
  EXPECT_EQ(TurnsOf(plan), "000 001 011 010 101 100 110 111 ");
}

TEST(RunRounds, EndsWhenStoppedAndAtAFailure) {
  std::atomic<bool> stop{false};
  int turns = 0;
  const RoundPlan plan{.rounds = 5, .subjects = 3, .stop = &stop};
  EXPECT_EQ(RunRounds(plan,
                      [&](const Turn&) {
                        stop = ++turns == 4;
                        return absl::OkStatus();
                      })
                .code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(turns, 4);
  stop = false;
  EXPECT_EQ(RunRounds(plan, [&](const Turn&) { return absl::AbortedError("gone"); }).message(), "gone");
}

TEST(Load, ReadsAndPrintsItsName) {
  const auto loads = ParseLoads({"closed-1", "open-500"}, {.closed = 64, .open = 1000});
  ASSERT_TRUE(loads.ok()) << loads.status();
  EXPECT_EQ((*loads)[0].Name(), "closed-1");
  EXPECT_EQ((*loads)[1].Name(), "open-500");
  EXPECT_TRUE((*loads)[1].open());
}

TEST(Load, RefusesWhatIsBeyondTheLimits) {
  for (const char* name : {"", "closed-0", "closed-65", "open-", "open-1.5", "closed"}) {
    EXPECT_EQ(ParseLoads({name}, {.closed = 64, .open = 1000}).status().code(),
              absl::StatusCode::kInvalidArgument)
        << name;
  }
}

TEST(SpreadOf, IsTheMedianWithItsRange) {
  const Spread odd = SpreadOf({5, 1, 3});
  EXPECT_EQ(odd.median, 3);
  EXPECT_EQ(odd.min, 1);
  EXPECT_EQ(odd.max, 5);
  EXPECT_EQ(SpreadOf({1, 2, 4, 9}).median, 3);
  EXPECT_EQ(SpreadOf({}).median, 0);
  EXPECT_FALSE(SpreadIfAny({}).has_value());
  EXPECT_EQ(SpreadIfAny({1, 2, 4, 9})->median, 3);
}

TEST(Table, PadsItsColumns) {
  const Table table{1, {{"name", "n"}, {"a", "1,000"}}};
  EXPECT_EQ(table.ToText(), "name      n\na     1,000\n");
  EXPECT_EQ(table.ToMarkdown(), "| name |     n |\n| ---- | ----: |\n| a    | 1,000 |\n");
}

}  // namespace
}  // namespace curtail::bench
