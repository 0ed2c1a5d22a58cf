// SPDX-License-Identifier: Apache-2.0
//
// read_file.h - a file as one string.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace curtail {

// Returns the whole file. Errors: NOT_FOUND; INVALID_ARGUMENT for a folder or a path that this
// process must not read; RESOURCE_EXHAUSTED for more than `limit` bytes; INTERNAL.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path, size_t limit);

}  // namespace curtail
