// SPDX-License-Identifier: Apache-2.0
//
// admin_failure.h - why a call of an admin interface failed, for a user.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "curtail/term/console.h"

namespace curtail::tool {

// Prints why a call of deploy::AdminClient failed, or the search for `process`, which is empty where an address was given;
// returns the exit code.
int AdminFailure(const absl::Status& status, std::string_view process, Console& console);

// Prints why a command could not look at an application that is up, or at a file; returns the exit code.
int LookFailure(const absl::Status& status, Console& console);

}  // namespace curtail::tool
