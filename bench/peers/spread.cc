// SPDX-License-Identifier: Apache-2.0
#include "spread.h"

#include <utility>

namespace curtail::bench {

const Rounds* Find(const StackResults& results, const std::string& cell) {
  const auto found = results.by_cell.find(cell);
  return found == results.by_cell.end() || found->second.empty() ? nullptr : &found->second;
}

Spread SpreadOf(const Rounds& rounds, double Measurement::* field) {
  std::vector<double> values;
  for (const Measurement& round : rounds) values.push_back(round.*field);
  return SpreadOf(std::move(values));
}

std::optional<double> Median(const Rounds& rounds, std::optional<double> Measurement::* field) {
  std::vector<double> values;
  for (const Measurement& round : rounds) {
    if (round.*field) values.push_back(*(round.*field));
  }
  if (values.empty()) return std::nullopt;
  return SpreadOf(std::move(values)).median;
}

}  // namespace curtail::bench
