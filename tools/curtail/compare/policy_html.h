// SPDX-License-Identifier: Apache-2.0
//
// policy_html.h - a comparison of policies as one HTML file to look at, mail, or put into a ticket.
#pragma once

#include <string>

#include "tools/curtail/compare/policy_runs.h"

namespace curtail::tool {

// The verdict, the tables of policy_report.h, and for each scenario a chart a policy, all with the same
// axes: offered load and p99 over time with the config in force above them, of the round whose p99 is the
// median one. Needs no other file, no script and no network; light or dark as the reader's system is. All
// text is escaped. Pure function; any thread.
std::string PolicyHtml(const PolicyComparison& comparison);

}  // namespace curtail::tool
