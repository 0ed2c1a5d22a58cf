// SPDX-License-Identifier: Apache-2.0
//
// median.h - the middle of some numbers. Any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace curtail::internal {

// The middle value, or the mean of the two in the middle. REQUIRES: not empty; no NaN.
inline double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace curtail::internal
