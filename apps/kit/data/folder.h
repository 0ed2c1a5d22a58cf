// SPDX-License-Identifier: Apache-2.0
//
// folder.h - the folder in which the application keeps everything: stores, the secret, the tokens of load tests.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace curtail::apps {

// The folder that `--data` names; "auto" and nothing mean $XDG_STATE_HOME/curtail/APPLICATION, or
// ~/.local/state/curtail/APPLICATION. It is made, private to the user, if it is not there. Errors: FAILED_PRECONDITION.
absl::StatusOr<std::string> DataFolder(std::string_view application, const std::string& given);

}  // namespace curtail::apps
