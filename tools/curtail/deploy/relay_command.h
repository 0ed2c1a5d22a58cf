// SPDX-License-Identifier: Apache-2.0
//
// relay_command.h - `curtail relay`: a server of any kind, seen through a slower network.
#pragma once

#include <atomic>
#include <string>

#include "curtail/term/console.h"

namespace curtail::tool {

struct RelayFlags {
  std::string listen = "127.0.0.1:0";
  std::string to;
  std::string link;  // "delay=20ms,..."
  uint64_t seed = 1;
};

// Relays until `stop`. Returns the exit code.
int RunRelay(const RelayFlags& flags, Console& console, const std::atomic<bool>& stop);

}  // namespace curtail::tool
