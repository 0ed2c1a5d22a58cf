// SPDX-License-Identifier: Apache-2.0
//
// load_checks.h - the checks of replies that --check asks for.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "tools/curtail/load/load_setup.h"

namespace curtail::tool {

// True if a --check names a file.
bool NamesCheckFile(const LoadFlags& flags);

// Puts the checks of the flags into `options`: of the replies to requests of `workload`, or to the last steps of its
// journeys. Errors: INVALID_ARGUMENT naming the flag; those of Catalog and of reading files.
absl::Status SetChecks(const LoadFlags& flags, const LoadTargets& targets, const Workload& workload,
                       RunOptions* options);

// The text that --debug prints: a line a check, held or failed. Empty without checks.
std::string DebugChecks(const RunOptions& options, const std::string& reply);

}  // namespace curtail::tool
