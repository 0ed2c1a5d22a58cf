// SPDX-License-Identifier: Apache-2.0
//
// failover_command.h - `curtail failover`: the standby of a store becomes its primary while the application serves.
#pragma once

#include <string>

#include "curtail/term/console.h"

namespace curtail::tool {

struct FailoverFlags {
  std::string target;  // APP/STORE
};

// Runs the command that the topology has for the store in this process's place. Returns the exit code if that fails.
int RunFailover(const FailoverFlags& flags, Console& console);

}  // namespace curtail::tool
