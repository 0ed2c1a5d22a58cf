// SPDX-License-Identifier: Apache-2.0
//
// ps_command.h - `curtail ps`: the processes of the applications that are up, and how they are.
#pragma once

#include <string>

#include "curtail/term/console.h"

namespace curtail::tool {

struct PsFlags {
  std::string application;  // empty: all
  bool json = false;
};

// Returns the exit code.
int RunPs(const PsFlags& flags, Console& console);

}  // namespace curtail::tool
