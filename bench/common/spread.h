// SPDX-License-Identifier: Apache-2.0
//
// spread.h - a cell: what one subject did under one load, a value a round; and its median and spread.
//
// A cell is a vector of measurements, one a round. Pure functions; any thread.
#pragma once

#include <optional>
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

// Of a field over the rounds of a cell.
template <class Measurement, class Number>
Spread SpreadOf(const std::vector<Measurement>& rounds, Number Measurement::* field) {
  std::vector<double> values;
  for (const Measurement& round : rounds) values.push_back(static_cast<double>(round.*field));
  return SpreadOf(std::move(values));
}

// Of a field that a round need not have; nothing where no round has it.
template <class Measurement>
std::optional<double> Median(const std::vector<Measurement>& rounds,
                             std::optional<double> Measurement::* field) {
  std::vector<double> values;
  for (const Measurement& round : rounds) {
    if (round.*field) values.push_back(*(round.*field));
  }
  if (values.empty()) return std::nullopt;
  return SpreadOf(std::move(values)).median;
}

}  // namespace curtail::bench
