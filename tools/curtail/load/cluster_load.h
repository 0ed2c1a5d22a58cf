// SPDX-License-Identifier: Apache-2.0
//
// cluster_load.h - `curtail load --kubernetes`: the generator runs in the cluster, beside what it measures.
//
// A pod of the application's own image makes the load, so that no way into the cluster is part of the numbers. Results are
// printed, judged and written here, as those of a load from this machine are.
#pragma once

#include <atomic>

#include "curtail/term/console.h"
#include "tools/curtail/load/load_flags.h"

namespace curtail::tool {

// Runs it as a Job, which is removed at the end. Returns the exit code.
int RunClusterLoad(const LoadFlags& flags, Console& console, const std::atomic<bool>& stop);

}  // namespace curtail::tool
