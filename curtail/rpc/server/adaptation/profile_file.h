// SPDX-License-Identifier: Apache-2.0
//
// profile_file.h - the profile that a server's options name: read, and checked for whom it is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/adapt/profile.h"
#include "curtail/fence/fence.h"
#include "curtail/rpc/server.h"

namespace curtail::internal {

// Nothing if the options name no file. `services` are the full names of the server's services, its own before those
// that each server has. Errors: INVALID_ARGUMENT with the file's name: it cannot be read, is no profile, is of another
// service or machine, or is of no use to this server, which has neither a policy nor a fence with limits in it.
absl::StatusOr<std::optional<Profile>> ReadServerProfile(const ServerOptions& options,
                                                         const std::vector<std::string>& services);

// The limits that a fence begins with.
std::vector<ClassLimit> LimitsOf(const Profile& profile);

}  // namespace curtail::internal
