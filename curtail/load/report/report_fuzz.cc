// SPDX-License-Identifier: Apache-2.0
//
// Any bytes against ParseReport(), and what it accepts through all that is written of a report. No text of it gets out of the
// data of its page.
//
// An input that begins with an even byte is the text itself. Otherwise it edits a good report: six bytes an edit, the
// first three of which say where, then how many bytes to take away, how many to put in, and which.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "curtail/load/report/compare.h"
#include "curtail/load/report/report_hgrm.h"
#include "curtail/load/report/report_page.h"
#include "curtail/load/report/report_read.h"
#include "curtail/load/report/report_testing.h"

namespace curtail {
namespace {

constexpr std::string_view kPieces[] = {"0",  "9",    "-1", "e9", "1e308", "null", "[]",
                                        "{}", "\"\"", "\"", ",",  ":",     "."};

LoadReport SmallReport() {
  LoadReport report = SampleReport(2);
  for (LoadResult& run : report.runs) {
    run.series.resize(2);
    run.send_lag = run.success = Histogram();
    run.all.Clear();
    for (int i = 1; i < 6; ++i) run.all.Record(Nanos(i * i * 100'000), 700);
  }
  return report;
}

std::string Edited(std::string text, const uint8_t* data, size_t size) {
  for (; size >= 6; data += 6, size -= 6) {
    const size_t at = (data[0] + 256u * data[1] + 65536u * data[2]) % text.size();
    text.erase(at, data[3] % 8);
    for (int i = 0; i < data[4] % 3; ++i) text.insert(at, kPieces[data[5] % std::size(kPieces)]);
    if (text.empty()) return text;
  }
  return text;
}

void Require(bool condition) {
  if (!condition) std::abort();
}

// The data that the script of a page reads.
std::string_view DataOf(std::string_view page) {
  constexpr std::string_view kBegin = R"(type="application/json">)";
  page.remove_prefix(page.find(kBegin) + kBegin.size());
  return page.substr(0, page.find('<'));
}

}  // namespace
}  // namespace curtail

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace curtail;
  static const LoadReport good = SmallReport();
  static const std::string text = ReportJson(good, SampleOrigin());
  const bool raw = size == 0 || data[0] % 2 == 0;
  const std::string input =
      raw ? std::string(reinterpret_cast<const char*>(data), size) : Edited(text, data + 1, size - 1);
  ReportOrigin origin;
  const absl::StatusOr<LoadReport> report = ParseReport(input, &origin);
  if (!report.ok()) {
    Require(report.status().message().size() < 10'000);
    return 0;
  }
  // A report that was read once is read again as the same.
  const std::string written = ReportJson(*report, origin);
  const absl::StatusOr<LoadReport> again = ParseReport(written, &origin);
  Require(again.ok() && ReportJson(*again, origin) == written);
  const std::string page = ReportPage(written);
  const absl::StatusOr<LoadReport> shown = ParseReport(DataOf(page), &origin);
  Require(shown.ok() && ReportJson(*shown, origin) == written);
  Require(!HgrmText(MergedLatency(*report)).empty());
  Require(!ComparisonText(Compare(good, *report)).empty() && !ComparisonJson(Compare(*report, good)).empty());
  return 0;
}
