// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/load/compare_results_command.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "curtail/load/report/compare.h"
#include "curtail/load/report/report_read.h"
#include "curtail/term/exit_code.h"
#include "tools/curtail/load/load_results.h"
#include "tools/curtail/term/command.h"

namespace curtail::tool {
namespace {

std::optional<LoadReport> Read(const std::string& path, ReportOrigin* origin, Console& console) {
  absl::StatusOr<LoadReport> report = ReadReport(path, origin);
  if (report.ok()) return *std::move(report);
  console.Error(std::string(report.status().message()), "curtail load --json FILE writes what this reads");
  return std::nullopt;
}

void WarnOfMachines(const ReportOrigin& a, const ReportOrigin& b, Comparison* comparison) {
  if (!a.machine || !b.machine || MachineText(*a.machine) == MachineText(*b.machine)) return;
  comparison->warnings.push_back(absl::StrCat("they were measured from different machines: ",
                                              MachineText(*a.machine), " and ", MachineText(*b.machine)));
}

int RefuseResults(const std::string& why, const char* hint, Console& console) {
  console.Error(why, hint);
  return kBadConfig;
}

}  // namespace

int RunCompareResults(const CompareResultsFlags& flags, Console& console) {
  if (absl::Status status = CheckPaths({flags.json}, console); !status.ok())
    return RefuseResults(std::string(status.message()), "", console);
  ReportOrigin origin_a, origin_b;
  const std::optional<LoadReport> a = Read(flags.a, &origin_a, console);
  if (!a) return kBadConfig;
  const std::optional<LoadReport> b = Read(flags.b, &origin_b, console);
  if (!b) return kBadConfig;
  for (const auto& [file, report] : {std::pair(&flags.a, &*a), {&flags.b, &*b}}) {
    if (const LoadPlan& plan = report->runs.front().plan; plan.share > 0) {
      return RefuseResults(
          absl::StrCat(*file, " is share ", plan.share, " of ", plan.shares, ", not a whole run"),
          "join all shares: curtail report FILE FILE --json WHOLE.json", console);
    }
  }
  Comparison comparison = Compare(*a, *b);
  WarnOfMachines(origin_a, origin_b, &comparison);
  console.Print(absl::StrCat("A  ", flags.a, "\nB  ", flags.b, "\n", ComparisonText(comparison)));
  if (!flags.json.empty()) {
    if (absl::Status status = WriteResult(flags.json, ComparisonJson(comparison), console); !status.ok()) {
      console.Error(std::string(status.message()), "free some space, or write elsewhere");
      return kFailed;
    }
  }
  if (!flags.fail_if_worse) return kOk;
  if (comparison.runs_a == 0 || comparison.runs_b == 0) return kVoid;
  return comparison.worse() ? kThreshold : kOk;
}

Command AddCompareResults(CLI::App& app) {
  const auto f = std::make_shared<CompareResultsFlags>();
  CLI::App* command =
      app.add_subcommand("compare-results", "Whether two load tests differ, or only by noise");
  command->add_option("A", f->a, "Written by curtail load --repeat 5 --json")->required();
  command->add_option("B", f->b, "The same, to be judged against A")->required();
  command->add_option("--json", f->json, "Write the comparison here as JSON; - is the standard output");
  command->add_flag("--fail-if-worse", f->fail_if_worse,
                    "Exit with 99 when some number is worse, with 98 when A or B has no valid run");
  command->footer("Example: curtail compare-results before.json after.json --fail-if-worse");
  return {command, [f](const Invocation& given) { return RunCompareResults(*f, given.console); }};
}

}  // namespace curtail::tool
