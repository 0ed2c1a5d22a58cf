// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/load/report_command.h"

#include "absl/strings/str_cat.h"
#include "curtail/load/report/report.h"
#include "curtail/load/report/report_hgrm.h"
#include "curtail/load/report/report_page.h"
#include "curtail/load/report/report_read.h"
#include "curtail/term/exit_code.h"

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

}  // namespace curtail::tool
