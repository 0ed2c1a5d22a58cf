// SPDX-License-Identifier: Apache-2.0
//
// html_page.h - what all reports as HTML have in common: a page that needs no other file, no script and no
// network, light or dark as the reader's system is.
//
// Texts are escaped here unless something else is said. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

#include "curtail/load/report/report.h"

namespace curtail::internal {

// A page up to where its content begins. `css` is added to the rules as it is; see the .cc for the classes
// there are.
std::string HtmlHead(std::string_view title, std::string_view css = {});
// The end of the page, behind the content.
inline constexpr char kHtmlEnd[] = "</body>\n</html>\n";

// A number in large letters, to stand within <div class="tiles">.
std::string HtmlTile(std::string_view name, std::string_view value, std::string_view detail);

// A row of a <table> of facts; nothing without a value.
std::string HtmlFact(std::string_view name, std::string_view value);

// A line.
std::string MachineText(const Machine& machine);

}  // namespace curtail::internal
