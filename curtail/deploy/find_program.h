// SPDX-License-Identifier: Apache-2.0
//
// find_program.h - where the programs of a topology lie.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace curtail::deploy {

// The path of a program that a topology names: as it is when it has a slash, otherwise in the
// folders of $CURTAIL_PATH, beside this program, where an installation or a build has the
// applications, or in $PATH. Errors: NOT_FOUND, which says where it looked.
absl::StatusOr<std::string> FindProgram(const std::string& name);

// True if PATH has a program of this name, or, for a path, if there is such a file.
bool HasTool(const std::string& name);

}  // namespace curtail::deploy
