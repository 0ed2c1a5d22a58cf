// SPDX-License-Identifier: Apache-2.0
//
// spread.h - the rounds of a cell, summed up.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "measure.h"

namespace curtail::bench {

using Rounds = std::vector<Measurement>;

// Middle, smallest and largest of the rounds.
struct Spread {
  double median = 0;
  double min = 0;
  double max = 0;
};

// The rounds of a cell, or null if there are none.
const Rounds* Find(const StackResults& results, const std::string& cell);
// REQUIRES: not empty.
Spread SpreadOf(std::vector<double> values);
Spread SpreadOf(const Rounds& rounds, double Measurement::* field);
// Nothing where no round has it.
std::optional<double> Median(const Rounds& rounds, std::optional<double> Measurement::* field);

}  // namespace curtail::bench
