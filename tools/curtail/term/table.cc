// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/term/table.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace curtail::tool {
namespace {

constexpr size_t kTableGap = 2;

// For each column its width; 0: it is left out.
std::vector<size_t> FitColumns(const std::vector<TableColumn>& columns, const std::vector<TableRow>& rows,
                               size_t room) {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns.size(); ++i) {
    size_t& width = widths.emplace_back(columns[i].title.size());
    for (const TableRow& row : rows) width = std::max(width, row.cells[i].size());
    width += i == 0 ? 0 : kTableGap;
  }
  while (room > 0 && std::accumulate(widths.begin(), widths.end(), size_t{0}) > room) {
    size_t least = 0;
    for (size_t i = 1; i < columns.size(); ++i) {
      if (widths[i] > 0 && columns[i].rank > columns[least].rank) least = i;
    }
    if (least == 0) break;  // what is left is cut off
    widths[least] = 0;
  }
  return widths;
}

}  // namespace

std::vector<ScreenLine> TableLines(const std::vector<TableColumn>& columns, std::vector<TableRow> rows,
                                   size_t room) {
  TableRow& titles = *rows.emplace(rows.begin());
  titles.style = ScreenLine::Style::kBold;
  for (const TableColumn& column : columns) titles.cells.emplace_back(column.title);
  const std::vector<size_t> widths = FitColumns(columns, rows, room);
  std::vector<ScreenLine> lines;
  for (const TableRow& row : rows) {
    ScreenLine& line = lines.emplace_back(ScreenLine{.text = "", .style = row.style});
    for (size_t i = 0; i < columns.size(); ++i) {
      if (widths[i] == 0) continue;
      if (columns[i].left && i > 0) line.text.append(kTableGap, ' ');
      const auto width = static_cast<int>(columns[i].left && i > 0 ? widths[i] - kTableGap : widths[i]);
      absl::StrAppendFormat(&line.text, "%*s", columns[i].left ? -width : width, row.cells[i]);
    }
    line.text.resize(line.text.find_last_not_of(' ') + 1);
    if (room > 0 && line.text.size() > room) line.text.resize(room);
  }
  return lines;
}

std::string PlainText(const std::vector<ScreenLine>& lines) {
  std::string text;
  for (const ScreenLine& line : lines) absl::StrAppend(&text, line.text, "\n");
  return text;
}

std::string NumberCell(const std::optional<double>& value, int digits, double scale) {
  return value ? absl::StrFormat("%.*f", digits, *value * scale) : "-";
}

}  // namespace curtail::tool
