// SPDX-License-Identifier: Apache-2.0
//
// report_html.h - a load report as one HTML file to look at, mail, or put into a ticket.
#pragma once

#include <string>

#include "curtail/load/report/report.h"

namespace curtail {

// Headline numbers, validity, plan, tables, and charts over time and over percentiles. Needs no
// other file, no script and no network; light or dark as the reader's system is. Charts over time
// hold at most some hundred points a line, which keep the extremes. Text from servers is escaped.
// Pure function; any thread.
std::string ReportHtml(const LoadReport& report, const ReportOrigin& origin = {});

}  // namespace curtail
