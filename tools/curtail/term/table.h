// SPDX-License-Identifier: Apache-2.0
//
// table.h - tables for terminals. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/curtail/term/screen.h"

namespace curtail::tool {

struct TableColumn {
  std::string_view title;
  int rank = 0;  // 0 is the most important; the highest is left out first
  bool left = false;
};

// REQUIRES: as many cells as there are columns.
struct TableRow {
  std::vector<std::string> cells;
  ScreenLine::Style style = ScreenLine::Style::kPlain;
};

// The titles and the rows, in lines of at most `room` columns: columns of the table that have no room are left out. 0:
// there is room for all.
std::vector<ScreenLine> TableLines(const std::vector<TableColumn>& columns, std::vector<TableRow> rows,
                                   size_t room);
// One after the other, without styles.
std::string PlainText(const std::vector<ScreenLine>& lines);
// `value * scale` with so many digits after the point; "-" for none.
std::string NumberCell(const std::optional<double>& value, int digits, double scale = 1);

}  // namespace curtail::tool
