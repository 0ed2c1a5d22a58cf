// SPDX-License-Identifier: Apache-2.0
//
// folder.h - the folder in which the application keeps everything: stores, the secret, the tokens of load tests.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace curtail::social {

// The folder that `--data` names; "auto" and nothing mean $XDG_STATE_HOME/curtail/social, or ~/.local/state/curtail/social.
// It is made, private to the user, if it is not there. Errors: FAILED_PRECONDITION.
absl::StatusOr<std::string> DataFolder(const std::string& given);

}  // namespace curtail::social
