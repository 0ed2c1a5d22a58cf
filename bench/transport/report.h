// SPDX-License-Identifier: Apache-2.0
//
// report.h - the results as a table and as JSON.
#pragma once

#include <string>
#include <vector>

#include "bench/common/machine.h"
#include "measure.h"

namespace curtail::bench {

// `before` and `after` the run.
std::string ToTable(const Options& options, const Machine& before, const Machine& after,
                    const std::vector<VariantResults>& results);
std::string ToJson(const Options& options, const Machine& before, const Machine& after,
                   const std::vector<VariantResults>& results);

}  // namespace curtail::bench
