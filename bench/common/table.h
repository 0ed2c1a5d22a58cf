// SPDX-License-Identifier: Apache-2.0
//
// table.h - a table of results in all its forms: text, Markdown and JSON. Pure functions.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "bench/common/spread.h"
#include "nlohmann/json_fwd.hpp"

namespace curtail::bench {

using Json = nlohmann::ordered_json;

using NumberText = std::function<std::string(double)>;
NumberText Fixed(int decimals);
// 1234567.8 as 1,234,568.
std::string Grouped(double value);
// Three significant digits; from 100 on Grouped().
std::string Short(double value);

// How the numbers of a column are printed; a single number is all of its spread.
using Style = std::function<std::string(const Spread&)>;
Style Median(NumberText number);
// "12 (10-15)"; "12" where all rounds are equal.
Style Range(NumberText number);
// "10-15".
Style MinToMax(NumberText number);
// Of a truth.
Style YesNo(std::string if_true, std::string if_false);

// A Cell is a text, a truth, a number, what the rounds measured, or nothing. Value type.
class Cell {
 public:
  Cell() = default;  // printed as "-", null in JSON
  Cell(std::string text) : value_(std::move(text)) {}
  Cell(const char* text) : value_(std::string(text)) {}
  Cell(std::vector<double> rounds);  // nothing if there are none
  Cell(const Spread& spread) : value_(Measured{spread, {}}) {}
  template <class T>
  Cell(const std::optional<T>& value) {
    if (value) *this = Cell(*value);
  }
  template <class Number>
    requires std::integral<Number> || std::floating_point<Number>
  Cell(Number number) {
    if constexpr (std::same_as<Number, bool> || std::floating_point<Number>) {
      value_ = number;
    } else {
      value_ = static_cast<int64_t>(number);
    }
  }

  std::string Print(const Style& style) const;
  Json ToJson() const;  // of an empty text null; of rounds their spread and themselves

 private:
  struct Measured {
    Spread spread;
    std::vector<double> rounds;
  };
  std::variant<std::monostate, std::string, bool, int64_t, double, Measured> value_;
};

// The title of a column that only JSON has.
inline constexpr std::nullopt_t kHidden = std::nullopt;

// A cell and the column that it is in.
struct Field {
  std::string name;  // in JSON, with its unit: "p99_us"; empty: only printed
  std::optional<std::string> title;
  Cell value;
  Style style = Median(Short);
};

// A Table is filled row by row. Value type.
class Table {
 public:
  // `name` is that of the field in JSON; empty: only printed. So many printed columns as `texts` are set to the left.
  explicit Table(std::string name = {}, size_t texts = 1) : name_(std::move(name)), texts_(texts) {}

  // All rows have the same columns; a row may end early with cells of nothing.
  Table& Add(std::vector<Field> row);

  const std::string& name() const { return name_; }
  bool empty() const { return rows_.empty(); }
  // Empty without rows, or if all columns are hidden.
  std::string ToText() const;
  std::string ToMarkdown() const;  // its columns are padded, so that it reads as text, too
  // An object a row.
  Json ToJson() const;

 private:
  using Line = std::vector<std::string>;
  // The printed cells, padded, the titles first.
  std::vector<Line> Lines() const;

  std::string name_;
  size_t texts_;
  std::vector<std::vector<Field>> rows_;
};

}  // namespace curtail::bench
