// SPDX-License-Identifier: Apache-2.0
//
// status_command.h - `curtail status`: what a running server does.
#pragma once

#include <string>

#include "curtail/term/console.h"

namespace curtail::tool {

struct StatusFlags {
  std::string target;  // the admin address, or what target.h understands
  bool json = false;
};

// Prints config, pools, queue and threads of each process that the target names; returns the exit code.
int RunStatus(const StatusFlags& flags, Console& console);

}  // namespace curtail::tool
