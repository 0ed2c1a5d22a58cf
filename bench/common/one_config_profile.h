// SPDX-License-Identifier: Apache-2.0
//
// one_config_profile.h - a profile by which a policy works as ever and leaves the config as it is.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "curtail/exec/config.h"

namespace curtail::bench {

// The text of a profile of this machine that has `config` as its only one, the best at every load. Its times are made up:
// they steer that choice and nothing else. `service` is the full gRPC name. Errors: those of ProfileJson().
absl::StatusOr<std::string> OneConfigProfile(const Config& config, std::string_view service);

}  // namespace curtail::bench
