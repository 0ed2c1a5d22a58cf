// SPDX-License-Identifier: Apache-2.0
#include "bench/common/report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/common/revision.h"
#include "nlohmann/json.hpp"

namespace curtail::bench {
namespace {

// At least 3, for the line below a header of Markdown.
std::vector<size_t> Widths(const std::vector<Row>& rows) {
  std::vector<size_t> widths(rows[0].size(), 3);
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  return widths;
}

std::string Padded(const std::string& text, size_t width, bool left) {
  const std::string padding(width - text.size(), ' ');
  return left ? text + padding : padding + text;
}

}  // namespace

std::string Grouped(double value) {
  std::string digits = absl::StrFormat("%.0f", value);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), 1, ',');
  return digits;
}

std::string Table::ToText() const {
  const std::vector<size_t> widths = Widths(rows);
  std::string out;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i)
      absl::StrAppend(&line, Padded(row[i], widths[i], i < names), "  ");
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&out, line, "\n");
  }
  return out;
}

std::string Table::ToMarkdown() const {
  const std::vector<size_t> widths = Widths(rows);
  std::string out;
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      absl::StrAppend(&out, "| ", Padded(row[i], widths[i], i < names), " ");
    }
    out += "|\n";
    if (&row != &rows[0]) continue;
    for (size_t i = 0; i < row.size(); ++i) {
      absl::StrAppend(&out, "| ", std::string(widths[i] - 1, '-'), i < names ? "- " : ": ");
    }
    out += "|\n";
  }
  return out;
}

Json ReportHead(const char* benchmark, int schema_version, const CommonFlags& flags, const Machine& machine) {
  Json json = {{"schema_version", schema_version},
               {"benchmark", benchmark},
               {"revision", kRevision},
               {"command", flags.command},
               {"rounds", flags.rounds}};
  if (flags.seeded) json["seed"] = flags.seed;
  json["machine"] = ToJson(machine);
  return json;
}

Json ToJson(const Machine& machine) {
  return {{"cpu_model", machine.cpu_model},
          {"cpus", machine.cpus},
          {"kernel", machine.kernel},
          {"memory_gib", machine.memory_gib},
          {"load_average", machine.load_average},
          {"busy_cpus", machine.busy_cpus},
          {"disturbed", machine.Disturbed()}};
}

Json ToJson(const Spread& spread) {
  return {{"median", spread.median}, {"min", spread.min}, {"max", spread.max}};
}

Json OrNull(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json OrNull(std::optional<double> value) { return value ? Json(*value) : Json(); }

std::string Dump(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace curtail::bench
