// SPDX-License-Identifier: Apache-2.0
//
// report.h - the results as a table, as Markdown and as JSON.
#pragma once

#include <string>
#include <vector>

#include "bench/common/machine.h"
#include "instructions.h"
#include "measure.h"
#include "options.h"

namespace curtail::bench {

std::string ToTable(const Options& options, const Machine& machine, const std::vector<StackResults>& results);
std::string ToMarkdown(const Options& options, const Machine& machine,
                       const std::vector<StackResults>& results);
// Three numbers a stack, in Markdown.
std::string ToShortMarkdown(const std::vector<StackResults>& results);
std::string ToJson(const Options& options, const Machine& machine, const std::vector<StackResults>& results);

// The same of --instructions.
std::string InstructionsToTable(const Options& options, const std::vector<Instructions>& results);
std::string InstructionsToMarkdown(const Options& options, const std::vector<Instructions>& results);
std::string InstructionsToJson(const Options& options, const Machine& machine,
                               const std::vector<Instructions>& results);

}  // namespace curtail::bench
