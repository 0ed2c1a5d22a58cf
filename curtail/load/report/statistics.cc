// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/report/statistics.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

namespace curtail {
namespace {

namespace policies = boost::math::policies;

// Boost.Math throws by default.
using NoThrow = policies::policy<
    policies::domain_error<policies::ignore_error>, policies::pole_error<policies::ignore_error>,
    policies::overflow_error<policies::ignore_error>, policies::evaluation_error<policies::ignore_error>>;
using StudentT = boost::math::students_t_distribution<double, NoThrow>;
using Binomial = boost::math::binomial_distribution<double, NoThrow>;

// As many values are dealt in all ways; beyond, counting them costs more than it tells.
constexpr size_t kMaxExact = 60;

std::vector<double> Sorted(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

// The rank of each value, from 1; equal values share the mean of theirs.
std::vector<double> Ranks(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t first = 0, end = 0; first < order.size(); first = end) {
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    for (size_t i = first; i < end; ++i) ranks[order[i]] = static_cast<double>(first + 1 + end) / 2;
  }
  return ranks;
}

double Mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Of the mean of two or more values.
double StandardError(std::span<const double> values, double mean) {
  const double n = static_cast<double>(values.size());
  double squares = 0;
  for (const double v : values) squares += (v - mean) * (v - mean);
  return std::sqrt(squares / (n - 1) / n);
}

// The share of all ways to deal ranks to a side of `n` that give a rank sum at least as far from the middle as
// `rank_sum`. Mean ranks are multiples of 1/2, so twice a rank is a whole number.
double ExactRankSumP(std::span<const double> ranks, size_t n, double rank_sum) {
  const size_t most = ranks.size() * (ranks.size() + 1);  // twice the sum of all ranks
  // ways[k][s]: in how many ways k of the ranks so far have the doubled sum s.
  std::vector<std::vector<double>> ways(n + 1, std::vector<double>(most + 1, 0.0));
  ways[0][0] = 1;
  for (const double rank : ranks) {
    const size_t twice = static_cast<size_t>(std::lround(2 * rank));
    for (size_t k = n; k >= 1; --k) {
      for (size_t s = most; s >= twice; --s) ways[k][s] += ways[k - 1][s - twice];
    }
  }
  const double middle = static_cast<double>(n * (ranks.size() + 1));
  const double distance = std::abs(2 * rank_sum - middle);
  double extreme = 0, all = 0;
  for (size_t s = 0; s <= most; ++s) {
    all += ways[n][s];
    if (std::abs(static_cast<double>(s) - middle) >= distance - 0.5) extreme += ways[n][s];
  }
  return extreme / all;
}

double NormalRankSumP(std::span<const double> ranks, double na, double nb, double u) {
  const double n = na + nb;
  // Each set of t tied values lowers the variance by t^3 - t; their ranks are equal.
  const std::vector<double> sorted = Sorted(ranks);
  double ties = 0;
  for (size_t first = 0, end = 0; first < sorted.size(); first = end) {
    while (end < sorted.size() && sorted[end] == sorted[first]) ++end;
    const double t = static_cast<double>(end - first);
    ties += t * t * t - t;
  }
  const double variance = na * nb / 12 * (n + 1 - ties / (n * (n - 1)));
  if (variance <= 0) return 1;  // all are the same
  const double distance = std::max(0.0, std::abs(u - na * nb / 2) - 0.5);
  return std::erfc(distance / std::sqrt(2 * variance));
}

}  // namespace

double AndersonDarlingExponential(std::span<const double> gaps) {
  const std::vector<double> sorted = Sorted(gaps);
  const size_t n = sorted.size();
  double sum = 0;
  for (size_t i = 0; i < n; ++i) {
    const double gap = std::max(sorted[i], std::numeric_limits<double>::min());
    // ln F(x_i) + ln(1 - F(x_(n-1-i))); the second is -x for the exponential distribution.
    sum += static_cast<double>(2 * i + 1) * (std::log(-std::expm1(-gap)) - sorted[n - 1 - i]);
  }
  return -static_cast<double>(n) - sum / static_cast<double>(n);
}

Correlation Spearman(std::span<const double> x, std::span<const double> y) {
  const size_t n = std::min(x.size(), y.size());
  if (n < 3) return {};
  const std::vector<double> rx = Ranks(x.first(n)), ry = Ranks(y.first(n));
  const double middle = static_cast<double>(n + 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < n; ++i) {
    xy += (rx[i] - middle) * (ry[i] - middle);
    xx += (rx[i] - middle) * (rx[i] - middle);
    yy += (ry[i] - middle) * (ry[i] - middle);
  }
  if (xx <= 0 || yy <= 0) return {};
  Correlation found;
  found.r = std::clamp(xy / std::sqrt(xx * yy), -1.0, 1.0);
  const double freedom = static_cast<double>(n - 2);
  const double rest = 1 - found.r * found.r;
  if (rest <= 0) {
    found.p = 0;
  } else {
    const double t = std::abs(found.r) * std::sqrt(freedom / rest);
    found.p = 2 * cdf(complement(StudentT(freedom), t));
  }
  return found;
}

double StudentTQuantile(double p, double freedom) { return quantile(StudentT(freedom), p); }

std::optional<Interval> MeanInterval(std::span<const double> values, double confidence) {
  if (values.size() < 2) return std::nullopt;
  const double mean = Mean(values);
  const double half = StudentTQuantile((1 + confidence) / 2, static_cast<double>(values.size() - 1)) *
                      StandardError(values, mean);
  return Interval{mean - half, mean + half};
}

double MeanZeroP(std::span<const double> values) {
  if (values.size() < 2) return 1;
  const double mean = Mean(values), error = StandardError(values, mean);
  if (error <= 0) return mean == 0 ? 1 : 0;
  return 2 * cdf(complement(StudentT(static_cast<double>(values.size() - 1)), std::abs(mean) / error));
}

double Median(std::span<const double> values) {
  const std::vector<double> sorted = Sorted(values);
  const size_t n = sorted.size();
  return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

std::optional<Interval> MedianInterval(std::span<const double> values, double confidence) {
  const size_t n = values.size();
  // The median is below the k-th smallest value when fewer than k fall below it: a binomial tail, at each end.
  const double outside = (1 - confidence) / 2;
  const Binomial below(static_cast<double>(n), 0.5);
  size_t k = 0;
  for (double tail = 0; k < n; ++k) {
    tail += pdf(below, static_cast<double>(k));
    if (tail > outside) break;
  }
  if (k == 0) return std::nullopt;
  const std::vector<double> sorted = Sorted(values);
  return Interval{sorted[k - 1], sorted[n - k]};
}

Difference MannWhitney(std::span<const double> a, std::span<const double> b) {
  if (a.empty() || b.empty()) return {};
  std::vector<double> both(a.begin(), a.end());
  both.insert(both.end(), b.begin(), b.end());
  const std::vector<double> ranks = Ranks(both);
  const double na = static_cast<double>(a.size()), nb = static_cast<double>(b.size());
  const double sum_a = std::accumulate(ranks.begin(), ranks.begin() + static_cast<ptrdiff_t>(a.size()), 0.0);
  Difference found;
  found.u = sum_a - na * (na + 1) / 2;
  found.p = both.size() <= kMaxExact ? ExactRankSumP(ranks, a.size(), sum_a)
                                     : NormalRankSumP(ranks, na, nb, found.u);
  return found;
}

}  // namespace curtail
