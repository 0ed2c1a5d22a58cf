// SPDX-License-Identifier: Apache-2.0
//
// observe_command.h - `curtail observe`: the operating system's share of each service, for some seconds.
#pragma once

#include <atomic>
#include <string>

#include "curtail/term/console.h"

namespace curtail::tool {

struct ObserveFlags {
  std::string target;  // APP, APP/SERVICE or APP/SERVICE.INSTANCE
  double seconds = 10;
  std::string json;  // "-": the standard output; else a path; empty: none
};

// Counts switches, wake-ups, system calls and the rest of os_source.h while the application serves, and prints them a
// second and a request. Ends early when `stop` is set. Returns the exit code.
int RunObserve(const ObserveFlags& flags, Console& console, const std::atomic<bool>& stop);

}  // namespace curtail::tool
