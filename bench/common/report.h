// SPDX-License-Identifier: Apache-2.0
//
// report.h - results as a table, for a terminal and for Markdown, and what begins every JSON report. Pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "bench/common/machine.h"
#include "bench/common/program.h"
#include "bench/common/spread.h"
#include "nlohmann/json_fwd.hpp"

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
  std::string ToMarkdown() const;  // its columns are padded, so that it reads as text, too
};

using Json = nlohmann::ordered_json;

// Of every report: what measured, in which version of what follows, when built from which revision, called how, where.
Json ReportHead(const char* benchmark, int schema_version, const CommonFlags& flags, const Machine& machine);
Json ToJson(const Machine& machine);
// median, min, max.
Json ToJson(const Spread& spread);
Json OrNull(const std::string& text);  // null when empty
Json OrNull(std::optional<double> value);
// Ends with a newline. What is no UTF-8 is replaced.
std::string Dump(const Json& json);

}  // namespace curtail::bench
