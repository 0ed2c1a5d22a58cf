// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/load/report_command.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "absl/strings/str_cat.h"
#include "curtail/load/report/report.h"
#include "curtail/load/report/report_hgrm.h"
#include "curtail/load/report/report_page.h"
#include "curtail/load/report/report_read.h"
#include "curtail/term/exit_code.h"
#include "tools/curtail/term/command.h"

namespace curtail::tool {
namespace {

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

}  // namespace

int RunReport(const ReportFlags& flags, Console& console) {
  ReportOrigin origin;
  const absl::StatusOr<LoadReport> report = ReadReport(flags.file, &origin);
  if (!report.ok()) {
    console.Error(std::string(report.status().message()), "curtail load --json FILE writes what this reads");
    return kBadConfig;
  }
  absl::Status written;
  if (!flags.html.empty()) written.Update(WriteFile(flags.html, ReportPage(ReportJson(*report, origin))));
  if (!flags.hgrm.empty()) written.Update(WriteFile(flags.hgrm, ReportHgrm(*report)));
  if (!written.ok()) {
    console.Error(std::string(written.message()), "free some space, or write elsewhere");
    return kFailed;
  }
  if (flags.html.empty() && flags.hgrm.empty()) console.Print(Summary(*report));
  return kOk;
}

Command AddReport(CLI::App& app) {
  const auto f = std::make_shared<ReportFlags>();
  CLI::App* command = app.add_subcommand("report", "Show the result of a load test once more");
  command->add_option("file", f->file, "Written by curtail load --json")->required();
  command->add_option("--html", f->html, "Write a page with charts here");
  command->add_option("--hgrm", f->hgrm, "Write the percentile spectrum here, for HdrHistogram's plotters");
  command->footer(
      "Without --html and --hgrm it prints the summary.\nExample: curtail report run.json --html run.html");
  return {command, [f](const Invocation& given) { return RunReport(*f, given.console); }};
}

}  // namespace curtail::tool
