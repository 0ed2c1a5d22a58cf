// SPDX-License-Identifier: Apache-2.0
//
// policy_report.h - a comparison of policies as text for people and as JSON for programs. Pure functions;
// any thread.
//
// ReportPage() shows the JSON; what is compared with what, in policy_summary.h.
#pragma once

#include <string>

#include "curtail/term/console.h"
#include "tools/curtail/compare/policy_runs.h"

namespace curtail::tool {

// The number that `schema_version` carries; raised when a key changes its meaning or goes away.
inline constexpr int kComparisonSchemaVersion = 2;

// A table over all of them, with CPU; a table for each scenario: steady loads as in figure 14 of muTune (Sriraman and Wenisch, OSDI 2018), a
// flash crowd as in its table 2, others with a line a policy; then the verdict in words, and what was void.
// At most about 120 columns for eight policies. Ends with a newline.
std::string PolicyTables(const PolicyComparison& comparison, const Console& console);

// One JSON object, as described by comparison.schema.json beside this file; ends with a newline. Holds at
// most 1000 changes of config a run.
std::string PolicyComparisonJson(const PolicyComparison& comparison);

}  // namespace curtail::tool
