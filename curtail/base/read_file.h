// SPDX-License-Identifier: Apache-2.0
//
// read_file.h - a file as one string.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace curtail {

// The whole file. Errors: NOT_FOUND, INTERNAL, RESOURCE_EXHAUSTED when it is longer than `limit`
// bytes.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path, size_t limit);

}  // namespace curtail
