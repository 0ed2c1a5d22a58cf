// SPDX-License-Identifier: Apache-2.0
#include "bench/common/table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace curtail::bench {

std::string Grouped(double value) {
  std::string digits = absl::StrFormat("%.0f", value);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), 1, ',');
  return digits;
}

std::string Table::ToText() const {
  std::vector<size_t> widths(rows[0].size());
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const int width = static_cast<int>(widths[i]);
      absl::StrAppendFormat(&line, "%*s  ", i < names ? -width : width, row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&out, line, "\n");
  }
  return out;
}

std::string Table::ToMarkdown() const {
  std::string out;
  for (const Row& row : rows) {
    absl::StrAppend(&out, "| ", absl::StrJoin(row, " | "), " |\n");
    if (&row != &rows[0]) continue;
    for (size_t i = 0; i < row.size(); ++i) out += i < names ? "| --- " : "| ---: ";
    out += "|\n";
  }
  return out;
}

}  // namespace curtail::bench
