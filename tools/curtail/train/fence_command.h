// SPDX-License-Identifier: Apache-2.0
//
// fence_command.h - `curtail train --fences`: how many requests of each path class should run at once.
#pragma once

#include <atomic>

#include "curtail/term/console.h"
#include "tools/curtail/train/train_command.h"

namespace curtail::tool {

// Drives each path class of the server alone, and writes its limit into the profile, beside what that holds already.
// Returns the exit code.
int RunFenceTraining(const TrainFlags& flags, Console& console, const std::atomic<bool>& stop);

}  // namespace curtail::tool
