// SPDX-License-Identifier: Apache-2.0
//
// The text half of policy_report.h.
#include "tools/curtail/compare/policy_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/curtail/compare/policy_summary.h"
#include "tools/curtail/compare/policy_tables.h"

namespace curtail::tool {
namespace {

constexpr size_t kMaxWidth = 120;
constexpr size_t kColumnGap = 2;

// How a table is laid out: with the range behind the median, or below it where that would be too wide.
struct Layout {
  explicit Layout(const ReportTable& table) {
    Measure(table, false);
    if (Total() > kMaxWidth) Measure(table, true);
  }

  // The cell on the first line, with the column of marks that its neighbours may need.
  std::string Above(const ReportTable& table, const ReportCell& cell, size_t column) const {
    std::string text = cell.text;
    if (!stacked && !cell.range.empty()) absl::StrAppend(&text, " (", cell.range, ")");
    // The mark stands above the bracket that closes the range, or after it.
    if (HasMarks(table, column))
      absl::StrAppend(&text, stacked ? "" : " ", std::string(1, MarkOf(cell.standing)));
    return text;
  }
  // On the second.
  std::string Below(const ReportCell& cell) const {
    if (!stacked || cell.range.empty()) return {};
    return absl::StrCat("(", cell.range, ")");
  }

  bool stacked = false;
  size_t names = 0;
  std::vector<size_t> widths;

 private:
  static bool HasMarks(const ReportTable& table, size_t column) {
    return std::any_of(table.rows.begin(), table.rows.end(),
                       [&](const ReportRow& row) { return MarkOf(row.cells[column].standing) != ' '; });
  }
  size_t Total() const {
    size_t total = names;
    for (size_t width : widths) total += width + kColumnGap;
    return total;
  }
  void Measure(const ReportTable& table, bool stack) {
    stacked = stack;
    names = table.corner.size();
    for (const ReportRow& row : table.rows) names = std::max(names, row.name.size());
    widths.clear();
    for (size_t i = 0; i < table.columns.size(); ++i) {
      widths.push_back(table.columns[i].size());
      for (const ReportRow& row : table.rows) {
        for (const std::string& text : {Above(table, row.cells[i], i), Below(row.cells[i])})
          widths.back() = std::max(widths.back(), text.size());
      }
    }
  }
};

// `text` at the right of `width`, after the gap.
std::string Right(std::string_view text, size_t width) {
  return std::string(kColumnGap + width - std::min(width, text.size()), ' ').append(text);
}

void AppendRow(const ReportTable& table, const Layout& layout, const ReportRow& row, const Console& console,
               std::string& out) {
  absl::StrAppendFormat(&out, "%-*s", static_cast<int>(layout.names), row.name);
  std::string below(layout.names, ' ');
  for (size_t i = 0; i < row.cells.size(); ++i) {
    const std::string cell = Right(layout.Above(table, row.cells[i], i), layout.widths[i]);
    out += row.cells[i].standing == Standing::kBest ? console.Green(cell) : cell;
    below += Right(layout.Below(row.cells[i]), layout.widths[i]);
  }
  out.erase(out.find_last_not_of(' ') + 1);
  out += "\n";
  below.erase(below.find_last_not_of(' ') + 1);
  if (!below.empty()) out.append(below).append("\n");
}

std::string TableText(const ReportTable& table, const Console& console) {
  const Layout layout(table);
  std::string out = "\n";
  if (!table.title.empty()) out.append(console.Bold(table.title)).append("\n");
  out.append(table.text).append("\n");
  absl::StrAppendFormat(&out, "%-*s", static_cast<int>(layout.names), table.corner);
  for (size_t i = 0; i < table.columns.size(); ++i) out += Right(table.columns[i], layout.widths[i]);
  out += "\n";
  for (const ReportRow& row : table.rows) AppendRow(table, layout, row, console, out);
  return out;
}

// Sentences of any length in lines of at most kMaxWidth.
void AppendWrapped(std::string_view text, std::string& out) {
  constexpr std::string_view kIndent = "  ";
  size_t column = 0;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (column > 0 && column + 1 + word.size() > kMaxWidth) {
      out.append("\n").append(kIndent);
      column = kIndent.size();
    } else if (column > 0) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  out += "\n";
}

}  // namespace

std::string PolicyTables(const PolicyComparison& comparison, const Console& console) {
  std::string out;
  AppendWrapped(OriginText(comparison), out);
  const std::vector<ReportTable> tables = ReportTables(comparison);
  for (const ReportTable& table : tables) out += TableText(table, console);
  if (!tables.empty()) {
    out += "\n";
    AppendWrapped(kMarksText, out);
  }
  out.append("\n").append(console.Bold("Verdict")).append("\n");
  for (const std::string& line : Verdict(comparison)) AppendWrapped(line, out);
  for (const std::string& line : Caveats(comparison)) AppendWrapped(line, out);
  return out;
}

}  // namespace curtail::tool
