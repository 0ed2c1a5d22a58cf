// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/report/report_csv.h"

#include "absl/strings/str_format.h"

namespace curtail {

std::string ReportCsv(const LoadReport& report) {
  std::string csv = "run,end_s,length_s,due,sent,ok,failed,p50_us,p99_us,in_flight,config\n";
  const auto s = [](Nanos t) { return static_cast<double>(t.count()) / 1e9; };
  for (size_t run = 0; run < report.runs.size(); ++run) {
    for (const LoadInterval& i : report.runs[run].series) {
      // Configs are words and numbers: nothing to quote.
      absl::StrAppendFormat(&csv, "%d,%.9g,%.9g,%d,%d,%d,%d,%.9g,%.9g,%d,%s\n", run + 1, s(i.end),
                            s(i.length), i.due, i.sent, i.ok, i.failed, InMicros(i.p50), InMicros(i.p99),
                            i.in_flight, i.config);
    }
  }
  return csv;
}

}  // namespace curtail
