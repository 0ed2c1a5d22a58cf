// SPDX-License-Identifier: Apache-2.0
//
// load_command.h - `curtail load`: an honest load test of one method of any gRPC server.
#pragma once

#include <atomic>

#include "curtail/term/console.h"
#include "tools/curtail/load/load_flags.h"

namespace curtail::tool {

// Runs it. Returns the exit code.
int RunLoad(const LoadFlags& flags, Console& console, const std::atomic<bool>& stop);

}  // namespace curtail::tool
