// SPDX-License-Identifier: Apache-2.0
//
// spread.h - a measurement repeated in rounds, summed up.
#pragma once

#include <vector>

namespace curtail::bench {

// Middle, smallest and largest of the rounds.
struct Spread {
  double median = 0;
  double min = 0;
  double max = 0;
};

// REQUIRES: not empty.
Spread SpreadOf(std::vector<double> values);

}  // namespace curtail::bench
