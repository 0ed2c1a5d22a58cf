// SPDX-License-Identifier: Apache-2.0
//
// command.h - a word after `curtail`: its flags, and what it does. The table of them is in main.cc.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "curtail/term/console.h"

namespace CLI {
class App;
}

namespace curtail::tool {

struct Invocation {
  Console& console;
  const std::atomic<bool>& stop;  // Ctrl-C, SIGTERM
  std::string command;            // the command line, without secrets
};

struct Command {
  // Its words, declared below those of the program; true once they were parsed.
  CLI::App* words;
  // Carries it out with the flags that were parsed. Returns the exit code.
  std::function<int(const Invocation& given)> run;
  // Its log lines have the format of CURTAIL_LOG_FORMAT. Others start processes, which must say "ready" to them in text.
  bool keeps_log_format = false;
};
// Declares a command below `app`.
using AddCommand = Command(CLI::App& app);

}  // namespace curtail::tool
