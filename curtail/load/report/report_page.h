// SPDX-License-Identifier: Apache-2.0
//
// report_page.h - a report as one HTML file to look at, mail, or put into a ticket.
#pragma once

#include <string>
#include <string_view>

namespace curtail {

// Returns the page that shows `json`, a document of ReportJson(), `curtail compare --json` or
// `curtail provision --json`. The page loads nothing and draws itself by its own script. It holds
// the JSON unchanged, but with each `<` written as \u003c, so that no text becomes markup. Its
// sources are in web/report.
// REQUIRES: `json` is JSON in UTF-8. Pure function; any thread.
std::string ReportPage(std::string_view json);

}  // namespace curtail
