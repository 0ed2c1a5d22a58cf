// SPDX-License-Identifier: Apache-2.0
#include "bench/common/table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"

namespace curtail::bench {
NumberText Fixed(int decimals) {
  return [decimals](double value) { return absl::StrFormat("%.*f", decimals, value); };
}

std::string Grouped(double value) {
  std::string digits = absl::StrFormat("%.0f", value);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), 1, ',');
  return digits;
}

std::string Short(double value) {
  if (value >= 100) return Grouped(value);
  return value >= 1 ? absl::StrFormat("%.*f", value >= 10 ? 1 : 2, value) : absl::StrFormat("%.3g", value);
}

Style Median(NumberText number) {
  return [number = std::move(number)](const Spread& s) { return number(s.median); };
}

Style Range(NumberText number) {
  return [number = std::move(number)](const Spread& s) {
    if (s.min == s.max) return number(s.median);
    return absl::StrCat(number(s.median), " (", number(s.min), "-", number(s.max), ")");
  };
}

Style MinToMax(NumberText number) {
  return [number = std::move(number)](const Spread& s) {
    return absl::StrCat(number(s.min), "-", number(s.max));
  };
}

Style YesNo(std::string if_true, std::string if_false) {
  return [if_true = std::move(if_true), if_false = std::move(if_false)](const Spread& s) {
    return s.median != 0 ? if_true : if_false;
  };
}

Cell::Cell(std::vector<double> rounds) {
  if (!rounds.empty()) value_ = Measured{SpreadOf(rounds), std::move(rounds)};
}

std::string Cell::Print(const Style& style) const {
  if (const auto* text = std::get_if<std::string>(&value_)) return *text;
  if (const auto* measured = std::get_if<Measured>(&value_)) return style(measured->spread);
  const auto print = [&style](double value) { return style({value, value, value}); };
  if (const auto* truth = std::get_if<bool>(&value_)) return print(*truth ? 1 : 0);
  if (const auto* number = std::get_if<int64_t>(&value_)) return print(static_cast<double>(*number));
  if (const auto* number = std::get_if<double>(&value_)) return print(*number);
  return "-";
}

Json Cell::ToJson() const {
  if (const auto* text = std::get_if<std::string>(&value_)) return text->empty() ? Json() : Json(*text);
  if (const auto* truth = std::get_if<bool>(&value_)) return *truth;
  if (const auto* number = std::get_if<int64_t>(&value_)) return *number;
  if (const auto* number = std::get_if<double>(&value_)) return *number;
  const auto* measured = std::get_if<Measured>(&value_);
  if (measured == nullptr) return {};
  const Spread& s = measured->spread;
  Json json = {{"median", s.median}, {"min", s.min}, {"max", s.max}};
  if (!measured->rounds.empty()) json["rounds"] = measured->rounds;
  return json;
}

Table& Table::Add(std::vector<Field> row) {
  rows_.push_back(std::move(row));
  return *this;
}

std::vector<Table::Line> Table::Lines() const {
  std::vector<Line> lines(rows_.size() + 1);
  if (rows_.empty()) return lines;
  const auto longest = std::max_element(rows_.begin(), rows_.end(),
                                        [](const auto& a, const auto& b) { return a.size() < b.size(); });
  for (size_t c = 0; c < longest->size(); ++c) {
    const Field& column = (*longest)[c];
    if (!column.title) continue;
    const bool left = lines[0].size() < texts_;
    lines[0].push_back(*column.title);
    for (size_t r = 0; r < rows_.size(); ++r) {
      lines[r + 1].push_back((c < rows_[r].size() ? rows_[r][c].value : Cell()).Print(column.style));
    }
    size_t width = 3;  // for the line below a header of Markdown
    for (const Line& line : lines) width = std::max(width, line.back().size());
    for (Line& line : lines)
      line.back().insert(left ? line.back().size() : 0, width - line.back().size(), ' ');
  }
  return lines;
}

std::string Table::ToText() const {
  std::string out;
  for (const Line& cells : Lines()) {
    std::string line = absl::StrJoin(cells, "  ");
    line.erase(line.find_last_not_of(' ') + 1);
    if (!cells.empty()) absl::StrAppend(&out, line, "\n");
  }
  return out;
}

std::string Table::ToMarkdown() const {
  std::vector<Line> lines = Lines();
  if (lines[0].empty()) return {};
  Line rule;
  for (const std::string& title : lines[0])
    rule.push_back(std::string(title.size() - 1, '-') + (rule.size() < texts_ ? "-" : ":"));
  lines.insert(lines.begin() + 1, std::move(rule));
  std::string out;
  for (const Line& line : lines) absl::StrAppend(&out, "| ", absl::StrJoin(line, " | "), " |\n");
  return out;
}

Json Table::ToJson() const {
  Json json = Json::array();
  for (const std::vector<Field>& row : rows_) {
    Json& object = json.emplace_back(Json::object());
    for (const Field& field : row) {
      if (!field.name.empty()) object[field.name] = field.value.ToJson();
    }
  }
  return json;
}

}  // namespace curtail::bench
