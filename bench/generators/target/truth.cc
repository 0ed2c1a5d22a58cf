// SPDX-License-Identifier: Apache-2.0
#include "truth.h"

#include <algorithm>
#include <cmath>

#include "curtail/base/histogram.h"

namespace curtail::bench {
namespace {

constexpr Nanos kMostBetween = std::chrono::microseconds(200);

// log of the probability that exactly k of n are below the percentile.
double LogBinomial(uint64_t n, uint64_t k, double p) {
  const auto log_factorial = [](uint64_t m) { return std::lgamma(static_cast<double>(m) + 1); };
  return log_factorial(n) - log_factorial(k) - log_factorial(n - k) + static_cast<double>(k) * std::log(p) +
         static_cast<double>(n - k) * std::log1p(-p);
}

}  // namespace

std::vector<ServedRequest> LastOf(const std::vector<ServedRequest>& log, size_t count) {
  return {log.end() - static_cast<std::ptrdiff_t>(std::min(count, log.size())), log.end()};
}

std::vector<Nanos> DrawnTimes(const std::vector<ServedRequest>& log) {
  std::vector<Nanos> times;
  for (const ServedRequest& request : log) times.push_back(request.drawn);
  return times;
}

std::vector<Nanos> ServiceTimes(const std::vector<ServedRequest>& log) {
  std::vector<Nanos> times;
  for (const ServedRequest& request : log) times.push_back(request.ended - request.began);
  return times;
}

Nanos PercentileOf(std::vector<Nanos> values, double percent) {
  if (values.empty()) return Nanos::zero();
  const uint64_t rank = std::clamp<uint64_t>(Histogram::RankOf(percent, values.size()), 1, values.size());
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(rank - 1), values.end());
  return values[rank - 1];
}

std::vector<Nanos> OccupiedTimes(const std::vector<ServedRequest>& log) {
  std::vector<Nanos> times = ServiceTimes(log);
  for (size_t i = 0; i + 1 < log.size(); ++i) {
    const Nanos between = log[i + 1].began - log[i].ended;
    if (between > Nanos::zero() && between <= kMostBetween) times[i] += between;
  }
  return times;
}

std::vector<Nanos> FifoLatencies(Nanos gap, const std::vector<Nanos>& service,
                                 const std::vector<Nanos>& occupied) {
  std::vector<Nanos> latencies;
  Nanos wait{0};
  for (size_t i = 0; i < service.size(); ++i) {
    latencies.push_back(wait + service[i]);
    wait = std::max(Nanos::zero(), wait + occupied[i] - gap);
  }
  return latencies;
}

Ranks PercentileRanks(double percent, uint64_t n, double confidence) {
  const double p = percent / 100;
  const double tail = (1 - confidence) / 2;
  Ranks ranks{0, n + 1};
  double below = 0;  // the probability that at most k samples are below
  for (uint64_t k = 0; k <= n; ++k) {
    below += std::exp(LogBinomial(n, k, p));
    // Sample `k + 1` is above the percentile when at most k are below.
    if (below <= tail) ranks.low = k + 1;
    if (below >= 1 - tail) {
      ranks.high = k + 1;
      break;
    }
  }
  return ranks;
}

}  // namespace curtail::bench
