// SPDX-License-Identifier: Apache-2.0
//
// prices.h - prices of stocks by day, and how many cents some units of a stock cost. A unit is a hundredth of a share.
//
// The prices are real, from the beginnings of months (data/stocks.tsv). The bank replays them: each day has the price of another
// month, forward and then back, so that no day jumps from the last month to the first.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace curtail::bank {

inline constexpr int64_t kUnitsOfShare = 100;
inline constexpr int64_t kMostUnits = 1'000'000'000;  // of a trade

// A value type.
class Prices {
 public:
  // Parses lines of a symbol, a month, and prices in cents. DATA_LOSS: a line is not in this form.
  [[nodiscard]] static absl::StatusOr<Prices> Parse(std::string_view text);
  // The prices that the build has put into the program.
  [[nodiscard]] static absl::StatusOr<Prices> Builtin();

  // In the order of the alphabet.
  std::vector<std::string> Symbols() const;
  // Returns the cents of a share on a day since 1970, in UTC. NOT_FOUND: the symbol is unknown.
  [[nodiscard]] absl::StatusOr<int64_t> CentsOn(const std::string& symbol, uint32_t day) const;

 private:
  std::map<std::string, std::vector<int64_t>> months_;  // of each symbol, not empty
};

// A customer pays a part of a cent as a whole one, and is not paid it. REQUIRES: 0 <= units <= 10^11, 0 <= share_cents <= 10^7.
int64_t CostOfUnits(int64_t units, int64_t share_cents);
int64_t ProceedsOfUnits(int64_t units, int64_t share_cents);

}  // namespace curtail::bank
