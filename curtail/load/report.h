// SPDX-License-Identifier: Apache-2.0
//
// report.h - load plans and results as text for people and as JSON for programs.
//
// docs/load.md says what each line and key means. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "curtail/load/result.h"

namespace curtail {

// One line: what is sent where, how, for how long.
std::string PlanText(const LoadPlan& plan);

// The summary below the plan: rates, latency table, histogram, codes and errors, validity. Ends with a
// newline.
std::string SummaryText(const LoadResult& result);

// The number that `schema_version` carries; raised when a key changes its meaning or goes away.
inline constexpr int kLoadSchemaVersion = 1;

// One JSON object as described by curtail/load/result.schema.json; ends with a newline.
std::string ResultJson(const LoadResult& result);

// Writes a whole file: into a temporary beside it, then renamed, so that readers see the old or the new
// content; devices and pipes are written directly. Errors: what the system said, with the path.
absl::Status WriteFile(const std::string& path, std::string_view content);

}  // namespace curtail
