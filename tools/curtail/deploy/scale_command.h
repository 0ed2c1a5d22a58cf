// SPDX-License-Identifier: Apache-2.0
//
// scale_command.h - `curtail scale`: more or fewer instances of a service while it serves.
#pragma once

#include <atomic>
#include <string>

#include "curtail/term/console.h"

namespace curtail::tool {

struct ScaleFlags {
  std::string target;  // APP/SERVICE
  int count = 0;
  std::string timeout = "60s";  // until they serve, or have ended
};

// Returns the exit code.
int RunScale(const ScaleFlags& flags, Console& console, const std::atomic<bool>& stop);

}  // namespace curtail::tool
