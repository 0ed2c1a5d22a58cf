// SPDX-License-Identifier: Apache-2.0
#include "bench/common/spread.h"

#include <algorithm>

namespace curtail::bench {
namespace {

double Quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

}  // namespace

Spread SpreadOf(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const double low = Quantile(values, 0.25), high = Quantile(values, 0.75);
  return {Quantile(values, 0.5), values.front(), values.back(), low, (high - low) / 2};
}

std::optional<Spread> SpreadIfAny(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  return SpreadOf(std::move(values));
}

}  // namespace curtail::bench
