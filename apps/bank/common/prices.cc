// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/common/prices.h"

#include <charconv>
#include <span>
#include <utility>

#include "absl/strings/str_split.h"
#include "curtail/base/embedded_file.h"
#include "curtail/base/strings.h"

namespace curtail::bank {

std::span<const EmbeddedFile> StockFiles();  // made by CMake of data/stocks.tsv

namespace {

constexpr int64_t kMostShareCents = 10'000'000;

absl::StatusOr<std::vector<int64_t>> ParseMonths(const std::string& cell) {
  const std::vector<std::string> words = absl::StrSplit(cell, ' ');
  std::vector<int64_t> cents;
  for (const std::string& word : words) {
    const char* const end = word.data() + word.size();
    const auto read = std::from_chars(word.data(), end, cents.emplace_back());
    if (read.ec != std::errc() || read.ptr != end || cents.back() <= 0 || cents.back() > kMostShareCents)
      return absl::DataLossError(Join("prices: \"", word, "\" is not a price, 1 to ", kMostShareCents));
  }
  return cents;
}

}  // namespace

absl::StatusOr<Prices> Prices::Parse(std::string_view text) {
  Prices prices;
  const std::vector<std::string> lines = absl::StrSplit(std::string(text), '\n', absl::SkipEmpty());
  for (const std::string& line : lines) {
    if (line[0] == '#') continue;
    const std::vector<std::string> cells = absl::StrSplit(line, '\t');
    if (cells.size() != 3 || cells[0].empty())
      return absl::DataLossError(Join("prices: not a symbol, a month and prices: ", line));
    absl::StatusOr<std::vector<int64_t>> months = ParseMonths(cells[2]);
    if (!months.ok()) return months.status();
    if (!prices.months_.emplace(cells[0], *std::move(months)).second)
      return absl::DataLossError(Join("prices: ", cells[0], " is there twice"));
  }
  return prices;
}

absl::StatusOr<Prices> Prices::Builtin() { return Parse(StockFiles()[0].bytes); }

std::vector<std::string> Prices::Symbols() const {
  std::vector<std::string> symbols;
  for (const auto& [symbol, months] : months_) symbols.push_back(symbol);
  return symbols;
}

absl::StatusOr<int64_t> Prices::CentsOn(const std::string& symbol, uint32_t day) const {
  const auto found = months_.find(symbol);
  if (found == months_.end()) return absl::NotFoundError("the bank does not offer this stock");
  const std::vector<int64_t>& months = found->second;
  if (months.size() == 1) return months[0];
  const size_t at = day % (2 * months.size() - 2);
  return months[at < months.size() ? at : 2 * months.size() - 2 - at];
}

int64_t CostOfUnits(int64_t units, int64_t share_cents) {
  return (units * share_cents + kUnitsOfShare - 1) / kUnitsOfShare;
}

int64_t ProceedsOfUnits(int64_t units, int64_t share_cents) { return units * share_cents / kUnitsOfShare; }

}  // namespace curtail::bank
