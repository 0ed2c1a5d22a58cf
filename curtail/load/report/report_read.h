// SPDX-License-Identifier: Apache-2.0
//
// report_read.h - load reports back from the JSON of report.h.
//
// Pure functions, but for reading the file; any thread.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "curtail/load/report/report.h"

namespace curtail {

// The report that `json` holds, equal to the written one: percentiles, intervals and all. Derived
// values are computed, not read; unknown keys are passed over. `origin` may be null.
// Errors: INVALID_ARGUMENT with one line that names the place: not JSON, another schema_version, a
// missing key, or an impossible value.
absl::StatusOr<LoadReport> ParseReport(std::string_view json, ReportOrigin* origin = nullptr);

// The same from a file; its path precedes each error. Errors: also NOT_FOUND, and
// RESOURCE_EXHAUSTED above 128 MiB.
absl::StatusOr<LoadReport> ReadReport(const std::string& path, ReportOrigin* origin = nullptr);

}  // namespace curtail
