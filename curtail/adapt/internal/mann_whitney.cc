// SPDX-License-Identifier: Apache-2.0
#include "curtail/adapt/internal/mann_whitney.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace curtail::internal {
namespace {

size_t PairsBelow(const RankStratum& stratum) {
  size_t pairs = 0;
  for (const double low : stratum.low) {
    pairs += static_cast<size_t>(
        std::count_if(stratum.high.begin(), stratum.high.end(), [low](double high) { return low < high; }));
  }
  return pairs;
}

// How many orders of n and m values have 0, 1, ... n x m pairs: the coefficients of the Gaussian binomial,
// the product of (1 - x^(m+i)) / (1 - x^i) over i from 1 to n.
std::vector<double> Orders(size_t n, size_t m) {
  std::vector<double> orders(n * m + 1);
  orders[0] = 1;
  for (size_t i = 1; i <= n; ++i) {
    for (size_t u = orders.size(); u-- > m + i;) orders[u] -= orders[u - m - i];
    for (size_t u = i; u < orders.size(); ++u) orders[u] += orders[u - i];
  }
  return orders;
}

std::vector<double> Convolve(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> sums(a.size() + b.size() - 1);
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < b.size(); ++j) sums[i + j] += a[i] * b[j];
  }
  return sums;
}

}  // namespace

double ChanceOfLower(std::span<const RankStratum> strata) {
  bool exact = true;
  double mean = 0, variance = 0;
  size_t pairs = 0;
  for (const RankStratum& stratum : strata) {
    const auto n = static_cast<double>(stratum.low.size()), m = static_cast<double>(stratum.high.size());
    exact = exact && std::max(stratum.low.size(), stratum.high.size()) <= kExactValues;
    mean += n * m / 2;
    variance += n * m * (n + m + 1) / 12;
    pairs += PairsBelow(stratum);
  }
  if (!exact) return std::erfc((static_cast<double>(pairs) - 0.5 - mean) / std::sqrt(2 * variance)) / 2;
  std::vector<double> orders = {1};
  for (const RankStratum& stratum : strata)
    orders = Convolve(orders, Orders(stratum.low.size(), stratum.high.size()));
  const auto first = orders.begin() + static_cast<std::ptrdiff_t>(pairs);
  return std::accumulate(first, orders.end(), 0.0) / std::accumulate(orders.begin(), orders.end(), 0.0);
}

}  // namespace curtail::internal
