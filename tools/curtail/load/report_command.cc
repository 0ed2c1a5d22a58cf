// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/load/report_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "curtail/load/report/join.h"
#include "curtail/load/report/report.h"
#include "curtail/load/report/report_read.h"
#include "curtail/load/report/threshold.h"
#include "curtail/term/exit_code.h"
#include "tools/curtail/load/load_results.h"
#include "tools/curtail/load/request_flags.h"
#include "tools/curtail/term/command.h"

namespace curtail::tool {
namespace {

// The files of a test, as they were read.
struct Given {
  std::vector<ShareReport> reports;
  std::vector<ReportOrigin> origins;  // of each
  std::vector<std::string> lost;      // why a file has no report
};

// The report that is shown and written.
struct Shown {
  LoadReport report;
  ReportOrigin origin;
  std::string generators;  // a line each, where several sent it
};

Given ReadAll(const std::vector<std::string>& files) {
  Given given;
  for (const std::string& file : files) {
    ReportOrigin origin;
    absl::StatusOr<LoadReport> report = ReadReport(file, &origin);
    if (!report.ok()) {
      given.lost.emplace_back(report.status().message());
      continue;
    }
    given.reports.push_back({file, *std::move(report)});
    given.origins.push_back(std::move(origin));
  }
  return given;
}

std::string GeneratorLine(const ShareReport& share, const ReportOrigin& origin) {
  uint64_t sent = 0;
  Nanos lag{0};
  for (const LoadResult& run : share.report.runs) {
    sent += run.sent;
    lag = std::max(lag, run.send_lag.Percentile(99));
  }
  return absl::StrFormat("generator     %s: share %d, %d sent, send lag p99 %.1f us%s\n", share.name,
                         share.report.runs.front().plan.share, sent, InMicros(lag),
                         origin.machine ? absl::StrCat("; ", MachineText(*origin.machine)) : "");
}

// The machine that all generators are like; absent where they differ.
std::optional<Machine> CommonMachine(const std::vector<ReportOrigin>& origins) {
  std::optional<Machine> common = origins.front().machine;
  for (const ReportOrigin& origin : origins) {
    if (!common || !origin.machine || MachineText(*origin.machine) != MachineText(*common))
      return std::nullopt;
    common->load_average_before = std::max(common->load_average_before, origin.machine->load_average_before);
  }
  return common;
}

absl::StatusOr<Shown> Joined(const Given& given, const std::string& command) {
  absl::StatusOr<LoadReport> report = JoinReports(given.reports);
  if (!report.ok()) return report.status();
  for (LoadResult& run : report->runs)
    run.invalid.insert(run.invalid.begin(), given.lost.begin(), given.lost.end());
  Shown shown{.report = *std::move(report), .origin = given.origins.front()};
  shown.origin.command = command;
  shown.origin.machine = CommonMachine(given.origins);
  for (size_t i = 0; i < given.reports.size(); ++i)
    shown.generators += GeneratorLine(given.reports[i], given.origins[i]);
  return shown;
}

std::string Summary(const LoadReport& report) {
  std::string text = absl::StrCat("load ", PlanText(report.runs.front().plan), "\n");
  const size_t runs = report.runs.size();
  for (size_t i = 0; i < runs; ++i) {
    if (runs > 1)
      absl::StrAppend(&text, "\nrun ", i + 1, " of ", runs, ", seed ", report.runs[i].plan.seed, "\n");
    absl::StrAppend(&text, SummaryText(report.runs[i]));
  }
  if (runs > 1) absl::StrAppend(&text, "\n", BetweenRunsText(report));
  return text;
}

constexpr char kReads[] = "curtail load --json FILE writes what this reads";

int RefuseReport(Console& console, absl::string_view why, const char* hint = "") {
  console.Error(std::string(why), hint);
  return kBadConfig;
}

}  // namespace

int RunReport(const ReportFlags& flags, Console& console) {
  Given given = ReadAll(flags.files);
  if (given.reports.empty()) return RefuseReport(console, given.lost.front(), kReads);
  const bool joins = flags.files.size() > 1 || given.reports.front().report.runs.front().plan.share > 0;
  absl::StatusOr<Shown> shown =
      joins ? Joined(given, flags.command)
            : Shown{.report = std::move(given.reports.front().report), .origin = given.origins.front()};
  if (!shown.ok()) return RefuseReport(console, shown.status().message());
  if (!flags.fail_if.empty()) {
    const absl::StatusOr<std::vector<Threshold>> thresholds = ParseThresholds(flags.fail_if);
    if (!thresholds.ok())
      return RefuseReport(console, absl::StrCat("--fail-if: ", thresholds.status().message()));
    shown->report.thresholds.clear();
    for (const Threshold& threshold : *thresholds) shown->report.thresholds.push_back(threshold.text);
  }
  if (absl::Status status = CheckOutputs(flags, console); !status.ok()) return FailWriting(console, status);
  const bool writes = !(flags.json + flags.html + flags.hgrm + flags.csv + flags.junit).empty();
  if (joins || !writes) console.Print(absl::StrCat(shown->generators, Summary(shown->report)));
  const bool judges = joins || !flags.fail_if.empty();
  const int verdict = judges ? CheckThresholds(shown->report, console) : kOk;
  if (absl::Status status = WriteResults(flags, shown->report, shown->origin, console); !status.ok())
    return FailWriting(console, status);
  return judges && !shown->report.valid() ? kVoid : verdict;
}

Command AddReport(CLI::App& app) {
  const auto f = std::make_shared<ReportFlags>();
  CLI::App* command =
      app.add_subcommand("report", "Show the result of a load test once more, or of its generators as one");
  command->add_option("file", f->files, "Written by curtail load --json; of --share, those of all generators")
      ->required();
  AddResultFlags(*command, f.get());
  command->footer(
      "Without a file to write it prints the summary.\n"
      "Examples:\n"
      "  curtail report run.json --html run.html\n"
      "  curtail report a.json b.json c.json --fail-if 'p99<5ms' --json all.json   # of load --share 1/3, "
      "2/3, 3/3\n"
      "Exit codes, of shares and --fail-if: 0 ok, 98 a share is missing or void, 99 a condition does not "
      "hold.");
  return {command, [f](const Invocation& given) {
            f->command = given.command;
            return RunReport(*f, given.console);
          }};
}

}  // namespace curtail::tool
