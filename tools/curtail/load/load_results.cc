// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/load/load_results.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "curtail/base/internal/output_path.h"
#include "curtail/load/report/report_csv.h"
#include "curtail/load/report/report_hgrm.h"
#include "curtail/load/report/report_junit.h"
#include "curtail/load/report/report_page.h"
#include "curtail/load/report/threshold.h"
#include "curtail/term/exit_code.h"
#include "tools/curtail/term/flags.h"

namespace curtail::tool {

absl::Status CheckOutputs(const ResultFlags& flags, Console& console) {
  return CheckPaths({flags.json, flags.html, flags.hgrm, flags.csv, flags.junit, flags.raw}, console);
}

absl::Status CheckPaths(const std::vector<std::string>& paths, Console& console) {
  int to_stdout = 0;
  for (const std::string& path : paths) {
    if (absl::Status status = CheckWritable(path); !status.ok()) return status;
    to_stdout += internal::IsStdout(path) ? 1 : 0;
  }
  if (to_stdout > 1) {
    return absl::InvalidArgumentError(
        "'-' is given for several results, and the standard output takes one: name files for the others");
  }
  if (to_stdout > 0) console.print_to_stderr();
  return absl::OkStatus();
}

int CheckThresholds(const LoadReport& report, Console& console) {
  bool failed = false, undecided = false;
  for (const std::vector<ThresholdOutcome>& of_runs : EvaluateAll(report)) {
    for (size_t run = 0; run < of_runs.size(); ++run) {
      const ThresholdOutcome& outcome = of_runs[run];
      const std::string mark = outcome.met         ? console.Green("ok    ")
                               : outcome.undecided ? console.Red("VOID  ")
                                                   : console.Red("FAILED");
      const std::string which = of_runs.size() == 1 ? "" : absl::StrCat("  run ", run + 1);
      console.Print(absl::StrCat("threshold     ", mark, "  ", Describe(outcome), which, "\n"));
      failed |= !outcome.met && !outcome.undecided;
      undecided |= outcome.undecided;
    }
  }
  return failed ? kThreshold : undecided ? kVoid : kOk;
}

absl::Status WriteResult(const std::string& path, std::string_view content, Console& console) {
  return internal::IsStdout(path) ? console.Deliver(content) : WriteFile(path, content);
}

absl::Status WriteResults(const ResultFlags& flags, const LoadReport& report, const ReportOrigin& origin,
                          Console& console) {
  absl::Status first;
  const auto write = [&](const std::string& path, const std::function<std::string()>& content) {
    if (!path.empty()) first.Update(WriteResult(path, content(), console));
  };
  write(flags.json, [&] { return ReportJson(report, origin); });
  write(flags.html, [&] { return ReportPage(ReportJson(report, origin)); });
  write(flags.hgrm, [&] { return ReportHgrm(report); });
  write(flags.csv, [&] { return ReportCsv(report); });
  write(flags.junit, [&] { return ReportJunit(report); });
  return first;
}

std::string MachineText(const Machine& machine) {
  return absl::StrFormat("%d x %s, %s", machine.cpus, machine.cpu_model, machine.kernel);
}

int FailWriting(Console& console, const absl::Status& status) {
  console.Error(std::string(status.message()), absl::IsResourceExhausted(status)
                                                   ? "free some space, or write elsewhere"
                                                   : "write elsewhere, or change the folder's permissions");
  return kFailed;
}

}  // namespace curtail::tool
