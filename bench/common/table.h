// SPDX-License-Identifier: Apache-2.0
//
// table.h - results as a table, for a terminal and for Markdown.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace curtail::bench {

// 1234567.8 as 1,234,568.
std::string Grouped(double value);

using Row = std::vector<std::string>;

// A table, the first row of which is its header; `names` columns are text, the others numbers.
struct Table {
  size_t names = 0;
  std::vector<Row> rows;

  // REQUIRES: there is a header, and no row is longer.
  std::string ToText() const;
  std::string ToMarkdown() const;
};

}  // namespace curtail::bench
