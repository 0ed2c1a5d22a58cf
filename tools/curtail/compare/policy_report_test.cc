// SPDX-License-Identifier: Apache-2.0
//
// The tables of made-up comparisons, and their JSON, which tests/schema checks by its schema.
#include "tools/curtail/compare/policy_report.h"

#include <stdlib.h>

#include "absl/strings/str_split.h"
#include "curtail/base/schema_testing.h"
#include "curtail/term/console.h"
#include "curtail/term/exit_code.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tools/curtail/compare/compare_command.h"
#include "tools/curtail/compare/policy_summary.h"
#include "tools/curtail/compare/policy_tables.h"
#include "tools/curtail/compare/policy_testing.h"

namespace curtail::tool {
namespace {

using nlohmann::json;
using std::chrono::microseconds;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// Without colours, also where the test runs on a terminal.
std::string TextOf(const PolicyComparison& c) {
  setenv("NO_COLOR", "1", 1);
  return PolicyTables(c, Console());
}

// Eight policies of long names, whose p99 has a wide range.
PolicyComparison Wide() {
  return MadeUpComparison(
      {"mutune", "online", "mutune:paper", "fm", "ipi", "tbd", "static:SIP1", "static:ADB1-4-4"}, 3,
      [](size_t policy, const Phase&, int round) -> Nanos {
        return microseconds(9000 + 100 * static_cast<int>(policy) + 12'345 * round);
      });
}

TEST(PolicyTables, SteadyLoadsAreRowsAndPoliciesColumns) {
  const std::string text = TextOf(SampleComparison());
  EXPECT_THAT(text, HasSubstr("steady: steady loads from 100/s to 1000/s and down again"));
  EXPECT_THAT(text, ContainsRegex("\nload +mutune +fm +SIP1 +SDB1-50\n"));
  EXPECT_THAT(text, ContainsRegex("\n100/s up +1\\.01 \\(1\\.00-1\\.02\\) \\* +1\\.31 \\(1\\.30-1\\.32\\) +"
                                  "1\\.02 \\(1\\.00-1\\.04\\) = +1\\.51 \\(1\\.50-1\\.52\\)\n"));
  EXPECT_THAT(text, ContainsRegex("\n1000/s +1\\.01 \\(1\\.00-1\\.02\\) \\* .*2\\.02 \\(2\\.00-2\\.04\\)  "));
  EXPECT_THAT(text, ContainsRegex("\nCPU cores +0\\.25 +0\\.50 +0\\.75 +1\\.00\n"));
  EXPECT_THAT(text,
              HasSubstr("hdsearch over 10000 made-up points; profile profile.json (5 configs); SLO 10 ms; "
                        "5 rounds, seed 7\n"));
}

TEST(ReportComparison, MayWriteToTheStandardOutput) {
  Console console;
  console.print_to_stderr();
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  EXPECT_EQ(ReportComparison(SampleComparison(), "-", "", console), kOk);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), Not(HasSubstr("written  ")));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), PolicyComparisonJson(SampleComparison()));
}

TEST(PolicyTables, BeginWithP99AndCpuOverAllLoads) {
  const std::string text = TextOf(SampleComparison());
  EXPECT_THAT(text, ContainsRegex("\npolicy +p99 +CPU, s +front +ratio +verdict\n"
                                  "mutune +1\\.01 +7\\.5 +yes +- +-\n"
                                  "fm +1\\.31 +15 +- +0\\.77 \\(0\\.77-0\\.77\\) +better\n"));
  EXPECT_THAT(text, HasSubstr("\nBy the medians, no other policy has both a lower p99 and less CPU than "
                              "mutune (1.01 ms, 7.5 s)."));
}

TEST(PolicyTables, AFlashCrowdHasARowAPolicy) {
  const std::string text = TextOf(SampleComparison());
  EXPECT_THAT(text, ContainsRegex("\npolicy +before +spike +1 s after +after +failed +backlog +reaction +"
                                  "switches +cores +config\n"));
  EXPECT_THAT(text, ContainsRegex("\nmutune +1\\.01\\* .* 0 +0 +2\\.00 +2 +0\\.25 +SDB1-16\n"))
      << "reaction and switches";
  EXPECT_THAT(text, ContainsRegex("\nSIP1 +2\\.02  +> 1 s  +> 1 s .* 2100 +990 +- +0 +0\\.75 +SDB1-50\n"))
      << "failed, backlog, no reaction";
}

TEST(PolicyTables, ARampHasItsWholeAndItsParts) {
  const std::string text = TextOf(SampleComparison());
  EXPECT_THAT(text,
              ContainsRegex("\npolicy +whole +rising low +rising high +falling high +falling low +failed +"
                            "switches +CPU cores\n"));
  EXPECT_THAT(text, ContainsRegex("\nSDB1-50( +1\\.51 ){5} +0 +0 +1\\.00\n( +\\(1\\.50-1\\.52\\)){5}\n"));
}

TEST(PolicyTables, ConfigsAreShownForThoseThatChange) {
  PolicyComparison c = SampleComparison();
  EXPECT_THAT(TextOf(c), Not(HasSubstr("config in force the longest"))) << "none did at steady loads";
  for (PolicyRun& run : c.runs) {
    if (run.policy != "mutune" || run.scenario != 0) continue;
    run.switches = 2;
    run.phases[1].config = "SDP1-8";
  }
  EXPECT_THAT(TextOf(c), ContainsRegex("\nload +mutune\n100/s up +SIP1\n1000/s +SDP1-8\n100/s down +SIP1\n"));
}

TEST(PolicyTables, FitOneHundredAndTwentyColumns) {
  const std::string text = TextOf(Wide());
  for (const auto line : absl::StrSplit(text, '\n')) EXPECT_LE(line.size(), 120u) << std::string(line);
  EXPECT_THAT(text, ContainsRegex("\nload +mutune +online +mutune:paper +fm +ipi +tbd +SIP1 +ADB1-4-4\n"));
  EXPECT_THAT(text, ContainsRegex("\n100/s up +21\\.3\\* +21\\.4= ")) << "the range is below";
  EXPECT_THAT(text, ContainsRegex("\n +\\(9\\.00-33\\.7\\)"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(PolicyTables, SayWhatWasVoid) {
  const PolicyComparison c =
      MadeUpComparison({"mutune", "fm"}, 3, [](size_t policy, const Phase&, int) -> Nanos {
        return policy == 0 ? Nanos(-1) : Nanos(microseconds(1000));
      });
  const std::string text = TextOf(c);
  EXPECT_THAT(text, ContainsRegex("\n100/s up +- +1\\.00\n"));
  EXPECT_THAT(text, HasSubstr("9 of 18 runs are void and left out: the generator was <late> (9)."));
}

TEST(PolicyTables, TakeEmptyComparisons) {
  EXPECT_THAT(TextOf(PolicyComparison{}), HasSubstr("Nothing was measured."));
  PolicyComparison none = SampleComparison();
  none.runs.clear();
  EXPECT_THAT(TextOf(none), ContainsRegex("\n100/s up +- +- +- +-\n"));
}

// --- JSON
// --------------------------------------------------------------------------------------------------------

TEST(PolicyComparisonJson, IsCheckedByItsSchema) {
  PolicyComparison empty, none = SampleComparison(), nobody = SampleComparison();
  none.runs.clear();
  nobody.machine.reset();
  nobody.runs[0].invalid = {"late"};
  KeepForSchemaTest("comparison", PolicyComparisonJson(SampleComparison()));
  KeepForSchemaTest("comparison-wide", PolicyComparisonJson(Wide()));
  KeepForSchemaTest("comparison-empty", PolicyComparisonJson(empty));
  KeepForSchemaTest("comparison-no-runs", PolicyComparisonJson(none));
  KeepForSchemaTest("comparison-no-machine", PolicyComparisonJson(nobody));
}

TEST(PolicyComparisonJson, CarriesTheNumbers) {
  const json j = json::parse(PolicyComparisonJson(SampleComparison()));
  EXPECT_EQ(j["schema_version"], kComparisonSchemaVersion);
  EXPECT_EQ(j["seed"], 7);
  EXPECT_EQ(j["slo_ms"], 10);
  ASSERT_EQ(j["runs"].size(), 4u * 3 * 5);
  const json& crowd = j["runs"][4];
  EXPECT_EQ(crowd["policy"], "mutune");
  EXPECT_EQ(crowd["scenario"], 1);
  EXPECT_EQ(crowd["changes"][0]["to"], "SDB1-16");
  EXPECT_EQ(crowd["changes_left_out"], 0);
  EXPECT_EQ(crowd["reaction_ms"], 2);
  EXPECT_EQ(crowd["backlog_after_spike_ms"], 0);
  EXPECT_EQ(crowd["phases"][1]["name"], "spike");
  EXPECT_EQ(crowd["phases"][1]["p99_us"], 1000);
  EXPECT_EQ(crowd["series"]["due"].size(), 90u);
  EXPECT_EQ(crowd["series"]["p99_us"][45], 1000);
  EXPECT_TRUE(crowd["series"]["p99_us"][0].is_null()) << "no samples of the warm-up";
  EXPECT_TRUE(j["runs"][0]["reaction_ms"].is_null());
  EXPECT_EQ(j["summary"][0]["phase"], "whole");
  EXPECT_EQ(crowd["server_cpu_s"], 2.5);
  EXPECT_EQ(j["costs"][0]["server_cpu_s"], 7.5);
  EXPECT_TRUE(j["costs"][0]["on_front"]);
  EXPECT_FALSE(j["costs"][3]["on_front"]);
  const json& against_sip = j["judgements"][1];
  EXPECT_EQ(against_sip["against"], "static:SIP1");
  EXPECT_EQ(against_sip["overall"]["verdict"], "better");
  EXPECT_EQ(against_sip["overall"]["rounds"], 5);
  EXPECT_LT(against_sip["overall"]["ratio_ci95"][1], 0.2);
  EXPECT_EQ(against_sip["cells"][0]["phase"], "100/s up");
  EXPECT_EQ(against_sip["cells"][0]["judgement"]["verdict"], "level");
  EXPECT_EQ(against_sip["cells"].size(), 3u + 4 + 4 + 3);
  EXPECT_EQ(j["summary"][1]["policies"][2]["standing"], "matched");
  EXPECT_EQ(j["summary"][1]["policies"][0]["p99_us"]["median"], 1010);
}

TEST(PolicyComparisonJson, HoldsAThousandChangesARun) {
  PolicyComparison c = SampleComparison();
  c.runs[0].changes.assign(2500, ConfigChange{Nanos(5), 1, "SIP1", "SDP1-4", "\xff"});
  c.runs[0].switches = 12'571;
  const std::string text = PolicyComparisonJson(c);
  KeepForSchemaTest("comparison-many-changes", text);
  const json j = json::parse(text);
  EXPECT_EQ(j["runs"][0]["changes"].size(), 1000u);
  EXPECT_EQ(j["runs"][0]["changes_left_out"], 11'571);
}

TEST(PolicyComparisonJson, ARunIsALine) {
  const std::string text = PolicyComparisonJson(SampleComparison());
  EXPECT_THAT(text, ContainsRegex("\n  \\{\"policy\":\"mutune\",\"scenario\":0,\"round\":0,"));
  EXPECT_EQ(text.back(), '\n');
}

}  // namespace
}  // namespace curtail::tool
