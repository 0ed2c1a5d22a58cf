// SPDX-License-Identifier: Apache-2.0
//
// profile_file.h - reads a profile that a command was given.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "curtail/adapt/profile.h"

namespace curtail::tool {

// Errors: INVALID_ARGUMENT with the file's name: it cannot be read, is no profile, or is of another machine.
absl::StatusOr<Profile> ReadProfileFile(const std::string& path, bool any_machine);

}  // namespace curtail::tool
