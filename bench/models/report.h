// SPDX-License-Identifier: Apache-2.0
//
// report.h - the results as Markdown and as JSON. Pure functions; partial results are
// reported as far as they go.
#pragma once

#include <string>

#include "results.h"

namespace curtail::models {

// Which figures of the paper the tables stand for is said in their headings.
std::string ToMarkdown(const Results& results);
// Every round of every cell, and the medians.
std::string ToJson(const Results& results);

}  // namespace curtail::models
