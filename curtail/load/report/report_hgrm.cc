// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/report/report_hgrm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_format.h"
#include "curtail/base/clock.h"
#include "curtail/load/report/run_metrics.h"

namespace curtail {
namespace {

constexpr double kTicksPerHalfDistance = 5;

double Middle(const Histogram::Bucket& b) { return (InMillis(b.low) + InMillis(b.high)) / 2; }

double Deviation(const std::vector<Histogram::Bucket>& buckets, const Histogram& h) {
  if (h.empty()) return 0;
  double squares = 0;
  for (const Histogram::Bucket& b : buckets) {
    squares += std::pow(Middle(b) - InMillis(h.mean()), 2) * static_cast<double>(b.count);
  }
  return std::sqrt(squares / static_cast<double>(h.count()));
}

// The step after `percent`: a fifth of the distance from the last halving to the next one.
double NextPercent(double percent) {
  const double halvings = std::floor(std::log2(100 / (100 - percent))) + 1;
  return percent + 100 / (kTicksPerHalfDistance * std::exp2(halvings));
}

}  // namespace

std::string HgrmText(const Histogram& h) {
  const std::vector<Histogram::Bucket> buckets = h.Buckets();
  std::string text =
      absl::StrFormat("%12s %12s %12s %12s\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
  uint64_t seen = 0;
  double percent = 0;
  for (const Histogram::Bucket& b : buckets) {
    seen += b.count;
    const bool last = seen == h.count();
    const double value = InMillis(std::min(b.high, h.max()));
    // A line for each step that lies in this bucket; but one in the last, where steps would never end.
    while (percent <= 100 * static_cast<double>(seen) / static_cast<double>(h.count())) {
      absl::StrAppendFormat(&text, "%12.3f %12.6f %12d %12.2f\n", value, percent / 100, seen,
                            100 / (100 - percent));
      const double next = NextPercent(percent);
      if (last || next <= percent) break;  // of more than 2^51 requests the steps would vanish
      percent = next;
    }
    if (last) absl::StrAppendFormat(&text, "%12.3f %12.6f %12d %12s\n", value, 1.0, seen, "inf");
  }
  absl::StrAppendFormat(&text, "#[Mean    = %12.3f, StdDeviation   = %12.3f]\n", InMillis(h.mean()),
                        Deviation(buckets, h));
  absl::StrAppendFormat(&text, "#[Max     = %12.3f, Total count    = %12d]\n", InMillis(h.max()), h.count());
  absl::StrAppendFormat(&text, "#[Buckets = %12d, SubBuckets     = %12d]\n", buckets.size(), 128);
  return text;
}

std::string ReportHgrm(const LoadReport& report) { return HgrmText(MergedLatency(report)); }

}  // namespace curtail
