// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "bench/common/load.h"
#include "bench/common/program.h"
#include "bench/common/report.h"
#include "bench/common/round.h"
#include "bench/common/spread.h"
#include "bench/common/table.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace curtail::bench {
namespace {

// The error of a program of the flags --rounds and --stack about wrong words.
std::string Refused(std::vector<std::string> words) {
  CLI::App app("A benchmark", "demo");
  CommonFlags flags;
  std::string stack;
  AddCommonFlags(app, &flags, {});
  app.add_option("--stack", stack)->check(CLI::IsMember({"curtail", "grpc"}));
  words.insert(words.begin(), "demo");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  testing::internal::CaptureStderr();
  EXPECT_EQ(ParseFlags(app, static_cast<int>(argv.size()), argv.data(), &flags), kBadConfig);
  return testing::internal::GetCapturedStderr();
}

TEST(ParseFlags, SaysWhatIsWrongAsOtherProgramsDo) {
  const std::string hint = "\nhint: see demo --help\n";
  EXPECT_EQ(Refused({"--stack", "nope"}),
            "demo: --stack: unknown value \"nope\"; write curtail or grpc" + hint);
  EXPECT_EQ(Refused({"--rounds", "0"}), "demo: --rounds: 0 is not from 1 to 1000" + hint);
  EXPECT_EQ(Refused({"--round", "3"}),
            "demo: --round: unknown flag or word; did you mean \"--rounds\"?" + hint);
  EXPECT_EQ(Refused({"--json", "/nowhere/x.json"}),
            "demo: cannot write /nowhere/x.json: No such file or directory\n");
}

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

TEST(Values, AreOfTheRoundsThatHaveThem) {
  struct Round {
    int sure;
    std::optional<double> maybe;
  };
  const std::vector<Round> rounds = {{1, {}}, {2, 0.5}};
  EXPECT_EQ(Values(rounds, &Round::sure), (std::vector<double>{1, 2}));
  EXPECT_EQ(Values(rounds, &Round::maybe), (std::vector<double>{0.5}));
}

TEST(Style, PrintsASpread) {
  const Spread wide{1234.5, 0.0123, 5}, same{7, 7, 7};
  EXPECT_EQ(Median(Fixed(2))(wide), "1234.50");
  EXPECT_EQ(Range(Short)(wide), "1,234 (0.0123-5.00)");
  EXPECT_EQ(Range(Short)(same), "7.00");
  EXPECT_EQ(MinToMax(Grouped)(same), "7-7");
  EXPECT_EQ(YesNo("yes", "no")(same), "yes");
  EXPECT_EQ(YesNo("yes", "no")({}), "no");
  EXPECT_EQ(Short(12.345), "12.3");
}

// A row of every kind of cell, one of nothing, and one that ends early.
Table Example(const char* name = "cells") {
  const auto row = [](Cell text, Cell number, Cell mark, Cell ok) -> std::vector<Field> {
    return {
        {"name", "name", text}, {"n", "n", number, Range(Grouped)}, {"", "mark", mark}, {"ok", kHidden, ok}};
  };
  return Table(name)
      .Add(row("a", std::vector<double>{1000, 2000, 1500}, "x", true))
      .Add(row("", std::vector<double>(), std::optional<double>(), {}))
      .Add({{"name", "name", "b"}, {"n", "n", 7, Range(Grouped)}});
}

TEST(Table, PadsItsColumns) {
  EXPECT_EQ(Example().ToText(),
            "name                    n  mark\n"
            "a     1,500 (1,000-2,000)     x\n"
            "                        -     -\n"
            "b                       7     -\n");
  EXPECT_EQ(Example().ToMarkdown(),
            "| name |                   n | mark |\n"
            "| ---- | ------------------: | ---: |\n"
            "| a    | 1,500 (1,000-2,000) |    x |\n"
            "|      |                   - |    - |\n"
            "| b    |                   7 |    - |\n");
  EXPECT_EQ(Table().ToText() + Table().ToMarkdown(), "");
  EXPECT_EQ(Table().Add({{"n", kHidden, 1}}).ToText(), "");
}

TEST(Table, HasAnObjectARow) {
  EXPECT_EQ(Example().ToJson(), Json::parse(R"([
    {"name": "a", "n": {"median": 1500.0, "min": 1000.0, "max": 2000.0, "rounds": [1000.0, 2000.0, 1500.0]}, "ok": true},
    {"name": null, "n": null, "ok": null},
    {"name": "b", "n": 7}])"));
}

TEST(Report, SaysTheSameToPeopleAndPrograms) {
  CommonFlags flags{.seed = 9, .seeded = true, .command = "demo --rounds 5"};
  Report report("demo", flags, {});
  const Table hidden = Table("more").Add({{"n", kHidden, 7}});
  report.Set("cell_s", 1.5).Say("# Demo").Say("").Add(Example()).Add(hidden).Add(Example("")).Say("The end.");
  EXPECT_EQ(report.ToText(), "# Demo\n\n" + Example().ToText() + "\n" + Example().ToText() + "\nThe end.\n");
  EXPECT_EQ(report.ToMarkdown().substr(0, 10), "# Demo\n\n| ");
  const Json json = Json::parse(report.ToJson());
  EXPECT_EQ(json["schema_version"], kSchemaVersion);
  EXPECT_EQ(json["benchmark"], "demo");
  EXPECT_EQ(json["command"], "demo --rounds 5");
  EXPECT_EQ(json["seed"], 9);
  EXPECT_EQ(json["cell_s"], 1.5);
  EXPECT_EQ(json["tables"]["cells"], Example().ToJson());
  EXPECT_EQ(json["tables"]["more"][0]["n"], 7);
  EXPECT_EQ(json["tables"].size(), 2u) << "a table without a name is for people";
}

}  // namespace
}  // namespace curtail::bench
