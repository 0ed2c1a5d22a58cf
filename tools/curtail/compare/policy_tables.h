// SPDX-License-Identifier: Apache-2.0
//
// policy_tables.h - what the tables of a comparison of policies say, before they become text or
// JSON.
//
// Plain values and pure functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/curtail/compare/policy_runs.h"
#include "tools/curtail/compare/policy_summary.h"

namespace curtail::tool {

struct ReportCell {
  std::string text;   // the median, or words; "-" where there is none
  std::string range;  // "0.95-1.10": lowest and highest round; empty where they are the same
  Standing standing = Standing::kUnknown;
};

struct ReportRow {
  std::string name;
  std::vector<ReportCell> cells;  // one a column
};

struct ReportTable {
  std::string title;
  std::string text;    // what the numbers are, with their unit; a line
  std::string corner;  // above the names of the rows
  std::vector<std::string> columns;
  std::vector<ReportRow> rows;
};

// One over all scenarios, then one or two a scenario, in order.
std::vector<ReportTable> ReportTables(const PolicyComparison& comparison);

// The mark of a standing in a table: '*', '=' or ' '.
char MarkOf(Standing standing);
inline constexpr std::string_view kMarksText =
    "* lowest   = not told apart from it (t test over the rounds, corrected for all cells and pairs); the "
    "arrivals are the same for all";
// The config of a policy that never switches, "SDB1-50" for "static:SDB1-50"; others as they are.
std::string_view ShortName(std::string_view policy);
// "hdsearch over 10k points, profile p.json; 5 rounds, seed 7": a line.
std::string OriginText(const PolicyComparison& comparison);

}  // namespace curtail::tool
