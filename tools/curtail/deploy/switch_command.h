// SPDX-License-Identifier: Apache-2.0
//
// switch_command.h - `curtail switch`: puts another config in force on a running server.
#pragma once

#include <string>

#include "curtail/term/console.h"

namespace curtail::tool {

struct SwitchFlags {
  std::string target;  // the admin address, or what target.h understands
  std::string config;  // empty: only print the one in force
};

// Prints the config before and after, of each process that the target names; returns the exit code, of several the first
// that is not 0.
int RunSwitch(const SwitchFlags& flags, Console& console);

}  // namespace curtail::tool
