// SPDX-License-Identifier: Apache-2.0
//
// http_setup.h - what the flags of `curtail load` come to where the targets are URLs.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tools/curtail/load/load_setup.h"

namespace curtail::tool {

// Moves the paths of URLs that have placeholders into the flags' metadata, which are drawn for each request. Errors:
// INVALID_ARGUMENT naming the URL, or that the paths differ.
absl::Status DrawPaths(LoadFlags* flags);

// The lines of -H; over HTTP a body has a type.
std::vector<std::string> HeaderLines(const LoadFlags& flags, bool http);

// Targets that are URLs: checked, and what they ask for. Errors: INVALID_ARGUMENT naming the flag or the URL.
absl::Status ReadUrls(const LoadFlags& flags, LoadTargets* targets);

// The requests to them. Errors: INVALID_ARGUMENT naming the flag; those of reading files.
absl::StatusOr<WorkloadMaker> MakeHttpRequests(const LoadFlags& flags, const LoadTargets& targets);

}  // namespace curtail::tool
