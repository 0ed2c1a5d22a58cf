// SPDX-License-Identifier: Apache-2.0
//
// output.h - reads what the generators write. All of them take any text: what is not as expected is an error.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "generator.h"

namespace curtail::bench {

// Of latencies in any order.
Percentiles PercentilesOf(const std::vector<Nanos>& values);

// The JSON of `curtail load --json`, schema versions 1 and 2.
absl::StatusOr<GeneratorRun> ParseCurtail(const std::string& json);
// The JSON of `ghz -O json`: percentiles from the single requests, as its own stop at p99.
absl::StatusOr<GeneratorRun> ParseGhzJson(const std::string& json);
// The output of ghz by default: no latencies.
absl::StatusOr<GeneratorRun> ParseGhzSummary(const std::string& text);
// The output of h2load: no latencies.
absl::StatusOr<GeneratorRun> ParseH2load(const std::string& text);
// The file of `h2load --log-file`, a line a request. INVALID_ARGUMENT when a request failed.
absl::StatusOr<Percentiles> ParseH2loadLog(const std::string& log);

}  // namespace curtail::bench
