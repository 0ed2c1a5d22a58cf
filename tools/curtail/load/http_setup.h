// SPDX-License-Identifier: Apache-2.0
//
// http_setup.h - what the flags of `curtail load` come to where the targets are URLs, and what gRPC shares with them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/curtail/load/load_setup.h"

namespace curtail::tool {

// Returns `why` with the flag in front: "--rps: ...".
absl::Status FlagError(std::string_view flag, const absl::Status& why);

// The bytes of --data-hex or --data-binary; empty without either. An error names the flag.
absl::StatusOr<std::string> ReadBytes(const LoadFlags& flags);

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
