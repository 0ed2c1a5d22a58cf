// SPDX-License-Identifier: Apache-2.0
//
// mann_whitney.h - may one config's measurements be lower than another one's by chance?
//
// The test is that of Mann and Whitney (1947), stratified: values are compared within a load only. It knows no
// distribution, so a hiccup that takes ten times as long counts as any other value that is too high. Pure functions; any
// thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace curtail::internal {

// The repeats of two configs at one load.
struct RankStratum {
  std::vector<double> low, high;
};

// The chance that the values of `low` lie below those of `high` in so many pairs, or in more, if in each stratum both
// came from one distribution. Equal values speak against `low`. 1 without values. Exact; for more than kExactValues
// values on a side of a stratum by the normal distribution.
double ChanceOfLower(std::span<const RankStratum> strata);

inline constexpr size_t kExactValues = 8;

}  // namespace curtail::internal
