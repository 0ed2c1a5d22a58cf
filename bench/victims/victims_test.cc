// SPDX-License-Identifier: Apache-2.0
//
// A short run of the program, as its users run it: every attack has a row with all of its numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "bench/common/scratch.h"
#include "bench/victims/attacks.h"
#include "curtail/base/clock.h"
#include "curtail/deploy/process/process.h"
#include "nlohmann/json.hpp"

namespace curtail::victims {
namespace {

TEST(Victims, HasARowForEachAttackAtEachPort) {
  const bench::ScratchFolder folder;
  const std::string json = folder.File("victims.json");
  auto run = deploy::Process::Spawn({.name = "victims",
                                     .argv = {CURTAIL_VICTIMS, "--quick", "--quiet", "--json", json},
                                     .log_path = folder.File("log")});
  ASSERT_TRUE(run.ok()) << run.status();
  constexpr Nanos kLongest = std::chrono::minutes(2);
  ASSERT_TRUE((*run)->ReadToEnd(Deadline::In(kLongest)).ok());
  ASSERT_EQ((*run)->Terminate(kLongest), 0) << (*run)->HowItEnded() << (*run)->LogTail();
  std::multiset<std::string> expected, rows;
  for (const Attack& attack : Attacks()) {
    for (const Port port : attack.ports) expected.insert(NameOf(port) + ": " + attack.name);
  }
  const auto report = nlohmann::json::parse(bench::ReadFile(json));
  for (const auto& row : report.at("tables").at("attacks")) {
    const std::string name = row.at("port").get<std::string>() + ": " + row.at("attack").get<std::string>();
    rows.insert(name);
    if (!row.at("left_out").is_null()) continue;
    EXPECT_FALSE(row.at("ended").get<bool>()) << name;
    for (const char* number : {"victim.p50_ms", "victim.p99_ms", "victim.failed", "twin.p99_ms",
                               "over_idle_mib", "sent_mb", "cpu_s"}) {
      EXPECT_TRUE(row.at(number).at("median").is_number()) << name << ", " << number;
    }
    const bool speaks = name.find("silent") == std::string::npos;
    EXPECT_EQ(row.at("sent_mb").at("median").get<double>() > 0, speaks) << name;
  }
  EXPECT_EQ(rows, expected);
  EXPECT_GE(rows.size(), 20u);
}

}  // namespace
}  // namespace curtail::victims
