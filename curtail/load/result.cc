// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/result.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace curtail {
namespace {

constexpr double kMaxLagShare = 0.10;
constexpr Nanos kLagFloor = std::chrono::microseconds(50);
constexpr double kMaxRateError = 0.01;

double Us(Nanos t) { return static_cast<double>(t.count()) / 1e3; }

}  // namespace

void Judge(LoadResult& result) {
  result.invalid.clear();
  if (result.scheduled == 0) {
    result.invalid.push_back("no request was due in the measured window");
    return;
  }
  const Nanos lag = result.send_lag.Percentile(99);
  const Nanos p50 = result.all.Percentile(50);
  const Nanos allowed =
      std::max(kLagFloor, Nanos(static_cast<int64_t>(kMaxLagShare * static_cast<double>(p50.count()))));
  if (lag > allowed) {
    result.invalid.push_back(absl::StrFormat(
        "the generator was late: send lag p99 is %.0f us, at most %.0f us are allowed (10 %% of the "
        "median latency of %.0f us, or 50 us)",
        Us(lag), Us(allowed), Us(p50)));
  }
  const double off = (result.sent_per_s - result.scheduled_per_s) / result.scheduled_per_s;
  if (std::abs(off) > kMaxRateError) {
    result.invalid.push_back(
        absl::StrFormat("sent %.1f requests a second where %.1f were scheduled (%+.1f %%)", result.sent_per_s,
                        result.scheduled_per_s, 100 * off));
  }
  if (result.unfinished > 0) {
    result.invalid.push_back(absl::StrFormat("%d calls never ended", result.unfinished));
  }
}

RankInterval PercentileRanks95(double percent, uint64_t n) {
  const double p = percent / 100;
  const double mid = static_cast<double>(n) * p;
  const double half = 1.96 * std::sqrt(mid * (1 - p));
  RankInterval ranks;
  const double low = std::floor(mid - half);
  const double high = std::ceil(mid + half) + 1;
  if (low >= 1) ranks.low = static_cast<uint64_t>(low);
  if (high <= static_cast<double>(n)) ranks.high = static_cast<uint64_t>(high);
  return ranks;
}

ValueInterval PercentileInterval95(const Histogram& histogram, double percent) {
  const RankInterval ranks = PercentileRanks95(percent, histogram.count());
  ValueInterval values;
  if (ranks.low) values.low = histogram.ValueAtRank(*ranks.low);
  if (ranks.high) values.high = histogram.ValueAtRank(*ranks.high);
  return values;
}

}  // namespace curtail
