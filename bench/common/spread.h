// SPDX-License-Identifier: Apache-2.0
//
// spread.h - what one subject did under one load, a value a round; and the median and spread of the rounds.
//
// Pure functions; any thread.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace curtail::bench {

// Middle, smallest and largest of the rounds.
struct Spread {
  double median = 0;
  double min = 0;
  double max = 0;
};

// All zeros for no values.
Spread SpreadOf(std::vector<double> values);

// Nothing for no values.
std::optional<Spread> SpreadIfAny(std::vector<double> values);

// A field of each round; of a field that a round need not have, the rounds that have it.
template <class Round, class Number>
std::vector<double> Values(const std::vector<Round>& rounds, Number Round::* field) {
  std::vector<double> values;
  for (const Round& round : rounds) {
    if constexpr (std::is_same_v<Number, std::optional<double>>) {
      if (round.*field) values.push_back(*(round.*field));
    } else {
      values.push_back(static_cast<double>(round.*field));
    }
  }
  return values;
}

}  // namespace curtail::bench
