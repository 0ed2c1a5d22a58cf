// SPDX-License-Identifier: Apache-2.0
//
// spread.h - the rounds of a cell, summed up.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/common/spread.h"
#include "measure.h"

namespace curtail::bench {

using Rounds = std::vector<Measurement>;

// The rounds of a cell, or null if there are none.
const Rounds* Find(const StackResults& results, const std::string& cell);
// REQUIRES: not empty.
Spread SpreadOf(const Rounds& rounds, double Measurement::* field);
// Nothing where no round has it.
std::optional<double> Median(const Rounds& rounds, std::optional<double> Measurement::* field);

}  // namespace curtail::bench
