// SPDX-License-Identifier: Apache-2.0
//
// report.h - load plans and results as text for people and as JSON for programs.
//
// docs/load.md says what each line and key means. Pure functions, but for ThisOrigin() and WriteFile(); any thread.
// The other forms: report_html.h, report_hgrm.h; back from JSON: report_read.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "curtail/load/report/result.h"

namespace curtail {

// One line: what is sent where, how, for how long.
std::string PlanText(const LoadPlan& plan);

// The summary below the plan: rates, latency table, histogram, codes and errors, validity. Ends with a
// newline.
std::string SummaryText(const LoadResult& result);

// How the percentiles of several runs of one plan spread; ends with a newline.
std::string BetweenRunsText(const LoadReport& report);

// The number that `schema_version` carries; raised when a key changes its meaning or goes away.
inline constexpr int kLoadSchemaVersion = 2;

// The machine that the generator ran on.
struct Machine {
  int cpus = 0;                    // that this process may run on
  std::string cpu_model;           // empty where the system does not say
  std::string kernel;              // "Linux 6.1.0"
  double load_average_before = 0;  // of one minute, before the first run: what else the machine did
};

// Where a report comes from.
struct ReportOrigin {
  std::string curtail_version;  // empty: not known
  std::optional<Machine> machine;
};

// This machine now: call it before the first run. It reads a few files of /proc.
ReportOrigin ThisOrigin(std::string_view curtail_version);

// A run with its plan, as one JSON object ($defs/result of curtail/load/report/result.schema.json); ends with a newline.
std::string ResultJson(const LoadResult& result);

// The whole report as one JSON object, as described by result.schema.json; ends with a newline. The plan stands there
// once: runs differ from it in nothing but the seed and whether they got real-time priority.
std::string ReportJson(const LoadReport& report, const ReportOrigin& origin = {});

// Writes a whole file: into a temporary beside it, flushed to the disk and then renamed, so that readers see the old or
// the new content; devices and pipes are written directly. Errors: what the system said, with the path.
absl::Status WriteFile(const std::string& path, std::string_view content);

}  // namespace curtail
