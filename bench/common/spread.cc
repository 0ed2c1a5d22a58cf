// SPDX-License-Identifier: Apache-2.0
#include "bench/common/spread.h"

#include <algorithm>

namespace curtail::bench {

Spread SpreadOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  const double median = values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {median, values.front(), values.back()};
}

}  // namespace curtail::bench
