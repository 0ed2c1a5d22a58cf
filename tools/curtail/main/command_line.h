// SPDX-License-Identifier: Apache-2.0
//
// command_line.h - reads the command line, and carries out the command that it names.
#pragma once

#include <atomic>
#include <span>

#include "curtail/term/console.h"
#include "tools/curtail/term/command.h"

namespace curtail::tool {

// Declares `commands`, reads the command line, and runs the one that it names. Returns the exit code; that of an error or
// of --help, which are printed, if there is nothing to run.
int RunCommandLine(std::span<AddCommand* const> commands, int argc, char** argv, Console& console,
                   const std::atomic<bool>& stop);

}  // namespace curtail::tool
