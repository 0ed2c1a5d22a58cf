// SPDX-License-Identifier: Apache-2.0
#include "bench/common/report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "bench/common/revision.h"
#include "nlohmann/json.hpp"

namespace curtail::bench {

Report::Report(std::string benchmark, const CommonFlags& flags, const Machine& machine)
    : benchmark_(std::move(benchmark)), flags_(flags), machine_(machine) {}

Report& Report::Set(std::string field, Cell value) {
  fields_.emplace_back(std::move(field), std::move(value));
  return *this;
}

Report& Report::Say(std::string paragraph) {
  parts_.emplace_back(std::move(paragraph));
  return *this;
}

Report& Report::Add(Table table) {
  parts_.emplace_back(std::move(table));
  return *this;
}

std::string Report::Print(std::string (Table::*print)() const) const {
  std::string out;
  for (const auto& part : parts_) {
    const auto* const table = std::get_if<Table>(&part);
    const std::string text = table != nullptr ? (table->*print)() : std::get<std::string>(part);
    if (!text.empty()) absl::StrAppend(&out, out.empty() ? "" : "\n", absl::StripSuffix(text, "\n"), "\n");
  }
  return out;
}

std::string Report::ToText() const { return Print(&Table::ToText); }
std::string Report::ToMarkdown() const { return Print(&Table::ToMarkdown); }

std::string Report::ToJson() const {
  Json json = {{"schema_version", kSchemaVersion},
               {"benchmark", benchmark_},
               {"revision", kRevision},
               {"command", flags_.command},
               {"rounds", flags_.rounds}};
  if (flags_.seeded) json["seed"] = flags_.seed;
  json["machine"] = {{"cpu_model", machine_.cpu_model},
                     {"cpus", machine_.cpus},
                     {"kernel", machine_.kernel},
                     {"memory_gib", machine_.memory_gib},
                     {"load_average", machine_.load_average},
                     {"busy_cpus", machine_.busy_cpus},
                     {"disturbed", machine_.Disturbed()}};
  for (const auto& [name, value] : fields_) json[name] = value.ToJson();
  Json& tables = json["tables"] = Json::object();
  for (const auto& part : parts_) {
    const auto* const table = std::get_if<Table>(&part);
    if (table != nullptr && !table->name().empty()) tables[table->name()] = table->ToJson();
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace curtail::bench
