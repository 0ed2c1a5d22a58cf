// SPDX-License-Identifier: Apache-2.0
#include "spread.h"

#include <algorithm>

namespace curtail::bench {

const Rounds* Find(const StackResults& results, const std::string& cell) {
  const auto found = results.by_cell.find(cell);
  return found == results.by_cell.end() || found->second.empty() ? nullptr : &found->second;
}

Spread SpreadOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  const double median = values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {median, values.front(), values.back()};
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
