// SPDX-License-Identifier: Apache-2.0
//
// find_program.h - looks for a program as the shell does.
#pragma once

#include <optional>
#include <string>

namespace curtail::bench {

// The path of the program; a name without a slash is looked for in PATH. Nothing when there is none.
std::optional<std::string> FindProgram(const std::string& name);

}  // namespace curtail::bench
