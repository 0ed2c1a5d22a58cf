// SPDX-License-Identifier: Apache-2.0
//
// down_command.h - `curtail down`: ends an application that is up.
#pragma once

#include <atomic>
#include <string>

#include "curtail/term/console.h"

namespace curtail::tool {

struct DownFlags {
  std::string application;
  std::string timeout = "60s";  // to drain; what is left then is killed
};

// Returns the exit code.
int RunDown(const DownFlags& flags, Console& console, const std::atomic<bool>& stop);

}  // namespace curtail::tool
