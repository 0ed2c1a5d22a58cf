// SPDX-License-Identifier: Apache-2.0
//
// logs_command.h - `curtail logs`: what the processes of an application wrote.
#pragma once

#include <atomic>
#include <string>

#include "curtail/term/console.h"

namespace curtail::tool {

struct LogsFlags {
  std::string application;  // or "APP/PROCESS"
  std::string process;      // as target.h understands it; empty: all
  bool follow = false;
  int tail = 100;  // lines of each
};

// Also of an application that is no longer up. Returns the exit code.
int RunLogs(const LogsFlags& flags, Console& console, const std::atomic<bool>& stop);

}  // namespace curtail::tool
