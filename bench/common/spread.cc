// SPDX-License-Identifier: Apache-2.0
#include "bench/common/spread.h"

#include <algorithm>

namespace curtail::bench {

Spread SpreadOf(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const size_t count = values.size();
  return {(values[(count - 1) / 2] + values[count / 2]) / 2, values.front(), values.back()};
}

std::optional<Spread> SpreadIfAny(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  return SpreadOf(std::move(values));
}

}  // namespace curtail::bench
