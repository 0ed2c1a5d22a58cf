// SPDX-License-Identifier: Apache-2.0
//
// report.h - what a benchmark reports: sentences for people, and tables for people and for programs.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "bench/common/machine.h"
#include "bench/common/program.h"
#include "bench/common/table.h"

namespace curtail::bench {

// Of the JSON of every benchmark. Another name, or another meaning, of any field of any benchmark raises it.
inline constexpr int kSchemaVersion = 4;

// A Report is filled in the order in which it is read. Value type.
class Report {
 public:
  Report(std::string benchmark, const CommonFlags& flags, const Machine& machine);

  // A field of the JSON's head, with its unit in its name.
  Report& Set(std::string field, Cell value);
  // A paragraph. An empty one is none.
  Report& Say(std::string paragraph);
  Report& Add(Table table);

  // For people: paragraphs and tables with a blank line between them.
  std::string ToText() const;
  std::string ToMarkdown() const;
  // The head: what measured, when built from which revision, called how, where. Then "tables", an array of rows by the
  // name of each. What is not UTF-8 is replaced.
  std::string ToJson() const;

 private:
  std::string Print(std::string (Table::*print)() const) const;

  const std::string benchmark_;
  const CommonFlags flags_;
  const Machine machine_;
  std::vector<std::pair<std::string, Cell>> fields_;
  std::vector<std::variant<std::string, Table>> parts_;
};

}  // namespace curtail::bench
