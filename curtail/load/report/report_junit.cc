// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/report/report_junit.h"

#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "curtail/load/report/threshold.h"

namespace curtail {
namespace {

// An attribute's value. XML has no form for control characters.
std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return escaped;
}

struct Suite {
  std::string cases;
  int tests = 0, failures = 0, errors = 0;

  // `bad` is "failure", "error" or empty.
  void Add(std::string_view of, std::string_view name, size_t run, const LoadReport& report,
           std::string_view bad, std::string_view message) {
    ++tests;
    if (bad == "failure") ++failures;
    if (bad == "error") ++errors;
    const std::string which = report.runs.size() == 1 ? "" : absl::StrCat(", run ", run + 1);
    absl::StrAppendFormat(&cases, "  <testcase classname=\"%s\" name=\"%s%s\" time=\"%.3f\"", Escaped(of),
                          Escaped(name), which, Seconds(report.runs[run]));
    if (bad.empty()) {
      absl::StrAppend(&cases, "/>\n");
    } else {
      absl::StrAppendFormat(&cases, "><%s message=\"%s\"/></testcase>\n", std::string(bad), Escaped(message));
    }
  }
  static double Seconds(const LoadResult& run) { return static_cast<double>(run.measured.count()) / 1e9; }
};

}  // namespace

std::string ReportJunit(const LoadReport& report) {
  Suite suite;
  const std::string& method = report.runs.front().plan.method;
  double seconds = 0;
  for (size_t run = 0; run < report.runs.size(); ++run) {
    const LoadResult& result = report.runs[run];
    seconds += Suite::Seconds(result);
    suite.Add(method, "valid", run, report, result.valid() ? "" : "error",
              absl::StrJoin(result.invalid, "; "));
  }
  for (const std::vector<ThresholdOutcome>& of_runs : EvaluateAll(report)) {
    for (size_t run = 0; run < of_runs.size(); ++run) {
      const ThresholdOutcome& outcome = of_runs[run];
      suite.Add(method, outcome.threshold.text, run, report,
                outcome.met         ? ""
                : outcome.undecided ? "error"
                                    : "failure",
                Describe(outcome));
    }
  }
  return absl::StrFormat(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"curtail load\" tests=\"%d\" "
      "failures=\"%d\" "
      "errors=\"%d\" time=\"%.3f\">\n%s</testsuite>\n",
      suite.tests, suite.failures, suite.errors, seconds, suite.cases);
}

}  // namespace curtail
