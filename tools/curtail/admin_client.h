// SPDX-License-Identifier: Apache-2.0
//
// admin_client.h - calls of a server's admin interface, for the commands that use it.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "console.h"

namespace curtail::tool {

// Calls `method` of curtail.admin.v1.Admin at `target`, whose messages hold one string each.
absl::Status CallAdmin(const std::string& target, std::string_view method, const std::string& in,
                       std::string* out);
// Prints why such a call failed; returns the exit code.
int AdminFailure(const absl::Status& status, Console& console);

}  // namespace curtail::tool
