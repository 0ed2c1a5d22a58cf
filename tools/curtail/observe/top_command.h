// SPDX-License-Identifier: Apache-2.0
//
// top_command.h - `curtail top`: the load, latency and resources of each service of an application, once a second.
#pragma once

#include <atomic>
#include <string>

#include "curtail/term/console.h"

namespace curtail::tool {

struct TopFlags {
  std::string application;
  double seconds = 0;  // 0: until it is ended
  std::string sort = "cpu";
  bool json = false;  // a line a second
};

// Fills a terminal, else prints a block a second; on a terminal the last one stays when it ends. Ends with `stop`, with
// the key q, and with the application. Returns the exit code.
int RunTop(const TopFlags& flags, Console& console, const std::atomic<bool>& stop);

}  // namespace curtail::tool
