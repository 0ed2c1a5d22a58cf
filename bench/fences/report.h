// SPDX-License-Identifier: Apache-2.0
//
// report.h - the results for people and for machines. Pure functions.
#pragma once

#include <string>

#include "bench/fences/results.h"

namespace curtail::fences {

// A table and a verdict for each part, as Markdown that also reads well on a terminal.
std::string ToMarkdown(const Results& results);
std::string ToJson(const Results& results);

}  // namespace curtail::fences
