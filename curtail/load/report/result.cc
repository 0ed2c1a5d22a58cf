// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/report/result.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "curtail/base/clock.h"
#include "curtail/load/report/statistics.h"

namespace curtail {
namespace {

constexpr double kMaxLagShare = 0.25;  // of the same percentile of the latency
// Lags up to these are harmless: the lateness of a timer, a preemption, two slices of a scheduler. The rarer, the longer.
constexpr std::pair<double, Nanos> kHarmless[] = {{50, std::chrono::microseconds(50)},
                                                  {90, std::chrono::microseconds(50)},
                                                  {95, std::chrono::microseconds(50)},
                                                  {99, std::chrono::microseconds(250)},
                                                  {99.9, std::chrono::milliseconds(10)}};
constexpr double kCorrectable = 0.10;  // of a percentile, worth a warning
constexpr Nanos kSmallestCorrection = std::chrono::microseconds(10);
constexpr double kMaxRateError = 0.01;
constexpr double kMaxBusy = 0.95;  // of a CPU
constexpr double kMaxTrend = 0.2;
constexpr double kMaxNeighbours = 0.5;  // beyond it widening the intervals is a guess

std::string Advice(const LoadPlan& plan) {
  return absl::StrCat("give the generator a CPU of its own, ",
                      plan.realtime ? "" : "real-time priority (CAP_SYS_NICE), ", "or another machine");
}

// V2 and V3.
void JudgeLag(LoadResult& r) {
  for (const auto& [percent, harmless] : kHarmless) {
    const Nanos lag = r.send_lag.Percentile(percent);
    const Nanos latency = r.all.Percentile(percent);
    const double share =
        static_cast<double>(lag.count()) / std::max(1.0, static_cast<double>(latency.count()));
    if (share <= kMaxLagShare || lag <= harmless) continue;
    r.invalid.push_back(absl::StrFormat(
        "the generator was late: its send lag p%g is %.0f us, %.0f %% of the p%g latency of %.0f "
        "us, and %.0f %% are allowed; %s",
        percent, InMicros(lag), 100 * share, percent, InMicros(latency), 100 * kMaxLagShare, Advice(r.plan)));
    return;
  }
}

// W1.
void WarnOfLag(LoadResult& r) {
  std::vector<std::string> parts;
  for (const LaggedPercentile& p : LaggedPercentiles(r)) {
    parts.push_back(absl::StrFormat("p%g (%.0f us, %.0f us since sent)", p.percent, InMicros(p.latency),
                                    InMicros(p.since_sent)));
  }
  if (parts.empty()) return;
  const double lag_us = InMicros(r.send_lag.Percentile(99));
  r.warnings.push_back(absl::StrFormat(
      "the generator's lateness adds to %s: go by the numbers since sent, or %s (send lag p99 is "
      "%.0f us, %.0f %% of the mean gap between requests)",
      absl::StrJoin(parts, ", "), Advice(r.plan), lag_us, lag_us * r.scheduled_per_s / 1e4));
}

void Warn(LoadResult& result) {
  const LoadChecks& checks = result.checks;
  if (result.valid()) WarnOfLag(result);
  if (result.dropped > 0) {
    result.warnings.push_back(absl::StrFormat(
        "%d requests were not sent, as too many were in flight already: the server does not keep up",
        result.dropped));
  }
  if (checks.gaps_a2 && *checks.gaps_a2 > kAndersonDarling1Percent) {
    result.warnings.push_back(absl::StrFormat(
        "requests did not leave as a Poisson process: Anderson-Darling A2 of their gaps is %.1f, over %.3f "
        "(99 %% sure); the generator sends in bursts at this rate",
        *checks.gaps_a2, kAndersonDarling1Percent));
  }
  const bool level = result.plan.closed() || result.plan.peak_per_s < 1.01 * result.plan.rate_per_s;
  if (level && checks.trend && std::abs(*checks.trend) > kMaxTrend) {
    result.warnings.push_back(
        absl::StrFormat("latencies %s during the run (rank correlation with time %+.2f): %s",
                        *checks.trend > 0 ? "rose" : "fell", *checks.trend,
                        *checks.trend > 0 ? "the server does not keep up, or slows down"
                                          : "the server was still warming up, or had stalled early on"));
  }
  if (checks.neighbours && *checks.neighbours > kMaxNeighbours) {
    result.warnings.push_back(
        absl::StrFormat("latencies of neighbours are alike (rank correlation %+.2f): the 95 %% intervals say "
                        "little; repeat the run "
                        "(--repeat 5)",
                        *checks.neighbours));
  }
}

// The share of a CPU that a sending thread kept busy.
double Busy(const LoadResult& r) {
  return r.measured <= Nanos::zero() ? 0
                                     : static_cast<double>((r.cpu - r.spin).count()) /
                                           static_cast<double>(r.measured.count()) / r.plan.senders();
}

}  // namespace

void Judge(LoadResult& result) {
  result.invalid.clear();
  result.warnings.clear();
  if (result.scheduled == 0) {
    result.invalid.push_back("no request was due in the measured window");
    return;
  }
  JudgeLag(result);
  // A request not sent because the server had too much to do already is the server's doing.
  const double meant = result.sent == 0
                           ? result.scheduled_per_s * static_cast<double>(result.dropped) /
                                 static_cast<double>(result.scheduled)
                           : result.sent_per_s * static_cast<double>(result.sent + result.dropped) /
                                 static_cast<double>(result.sent);
  const double off = (meant - result.scheduled_per_s) / result.scheduled_per_s;
  if (std::abs(off) > kMaxRateError) {
    result.invalid.push_back(
        absl::StrFormat("sent %.1f requests a second where %.1f were scheduled (%+.1f %%)", meant,
                        result.scheduled_per_s, 100 * off));
  }
  if (result.plan.closed() && Busy(result) > kMaxBusy) {
    result.invalid.push_back(
        absl::StrFormat("the generator's thread was busy %.0f %% of the time: its own speed was measured",
                        100 * Busy(result)));
  }
  if (result.unfinished > 0) {
    result.invalid.push_back(absl::StrFormat("%d calls never ended", result.unfinished));
  }
  Warn(result);
}

std::vector<LaggedPercentile> LaggedPercentiles(const LoadResult& r) {
  std::vector<LaggedPercentile> lagged;
  if (r.since_sent.empty()) return lagged;
  for (const auto& [percent, unused] : kHarmless) {
    if (!PercentileInterval95(r.all, percent, r.neighbours()).high) continue;
    const Nanos latency = r.all.Percentile(percent);
    const Nanos since_sent = r.since_sent.Percentile(percent);
    const Nanos lag = latency - since_sent;
    if (lag > kSmallestCorrection &&
        static_cast<double>(lag.count()) > kCorrectable * static_cast<double>(latency.count())) {
      lagged.push_back({percent, latency, since_sent});
    }
  }
  return lagged;
}

RankInterval PercentileRanks95(double percent, uint64_t n, double neighbours) {
  const double p = percent / 100;
  const double mid = static_cast<double>(n) * p;
  const double r = std::clamp(neighbours, 0.0, 0.99);
  const double half = 1.96 * std::sqrt(mid * (1 - p) * (1 + r) / (1 - r));
  RankInterval ranks;
  const double low = std::floor(mid - half);
  const double high = std::ceil(mid + half) + 1;
  if (low >= 1) ranks.low = static_cast<uint64_t>(low);
  if (high <= static_cast<double>(n)) ranks.high = static_cast<uint64_t>(high);
  return ranks;
}

uint64_t SamplesForInterval95(double percent, double neighbours) {
  const auto enough = [&](uint64_t n) {
    const RankInterval ranks = PercentileRanks95(percent, n, neighbours);
    return ranks.low && ranks.high;
  };
  uint64_t few = 0, many = 1;
  while (!enough(many) && many < uint64_t{1} << 60) few = many, many *= 2;
  while (many - few > 1) {
    const uint64_t middle = few + (many - few) / 2;
    (enough(middle) ? many : few) = middle;
  }
  return many;
}

ValueInterval PercentileInterval95(const Histogram& histogram, double percent, double neighbours) {
  const RankInterval ranks = PercentileRanks95(percent, histogram.count(), neighbours);
  ValueInterval values;
  if (ranks.low) values.low = histogram.ValueAtRank(*ranks.low);
  if (ranks.high) values.high = histogram.ValueAtRank(*ranks.high);
  return values;
}

}  // namespace curtail
