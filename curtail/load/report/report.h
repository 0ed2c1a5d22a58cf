// SPDX-License-Identifier: Apache-2.0
//
// report.h - load plans and results as text for people and as JSON for programs.
//
// docs/load.md explains each line and key. Pure functions, but for ThisOrigin() and WriteFile();
// any thread. Other forms: report_page.h, report_hgrm.h; back from JSON: report_read.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "curtail/load/report/result.h"

namespace curtail {

// One line: target, method, load and length of the run.
std::string PlanText(const LoadPlan& plan);

// The summary below the plan: rates, latency table, histogram, codes and errors, validity. Ends
// with a newline.
std::string SummaryText(const LoadResult& result);

// The spread of the percentiles of several runs of one plan; ends with a newline.
std::string BetweenRunsText(const LoadReport& report);

// The value of `schema_version`; raised when a key changes its meaning or goes away.
inline constexpr int kLoadSchemaVersion = 2;

// The machine that the generator ran on.
struct Machine {
  int cpus = 0;                    // that this process may run on
  std::string cpu_model;           // empty where the system does not say
  std::string kernel;              // "Linux 6.1.0"
  double load_average_before = 0;  // of one minute, before the first run: the machine's other work
};

// The origin of a report.
struct ReportOrigin {
  std::string curtail_version;  // empty: not known
  std::optional<Machine> machine;
  // Empty where not known:
  std::string started;  // "2026-01-31T12:00:00Z"
  std::string command;  // the command line, without secrets
  std::string request;  // the request as it was given: JSON, the name of a file, metadata
};

// This machine and time: call it before the first run. It reads a few files of /proc.
ReportOrigin ThisOrigin(std::string_view curtail_version);

// A run with its plan, as one JSON object ($defs/result of curtail/load/report/result.schema.json);
// ends with a newline.
std::string ResultJson(const LoadResult& result);

// The whole report as one JSON object, as result.schema.json describes it; ends with a newline. It
// holds the plan once: runs differ from it only in the seed and in real-time priority.
std::string ReportJson(const LoadReport& report, const ReportOrigin& origin = {});

// Writes a whole file: into a temporary beside it, flushed to the disk and then renamed. Readers
// see the old or the new content. Links stay. Devices, pipes and open files such as /dev/fd/3 are
// written directly.
// Errors: the system's, with the path.
absl::Status WriteFile(const std::string& path, std::string_view content);

}  // namespace curtail
