// SPDX-License-Identifier: Apache-2.0
//
// report.h - the results for a terminal, as Markdown and as JSON.
#pragma once

#include <string>
#include <vector>

#include "bench/common/machine.h"
#include "options.h"
#include "work.h"

namespace curtail::bench {

std::string ToText(const Machine& machine, const std::vector<TruthRow>& rows);
std::string ToMarkdown(const Machine& machine, const std::vector<TruthRow>& rows);
std::string ToJson(const Options& options, const Machine& machine, const std::vector<TruthRow>& rows);

std::string ToText(const Machine& machine, const CostResults& results);
std::string ToMarkdown(const Machine& machine, const CostResults& results);
std::string ToJson(const Options& options, const Machine& machine, const CostResults& results);

}  // namespace curtail::bench
