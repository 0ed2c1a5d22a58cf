// SPDX-License-Identifier: Apache-2.0
//
// memory.h - the memory that this process may use.
#pragma once

#include <string>

namespace curtail {

// The memory that the control groups grant, in bytes: the least limit of the process's own group
// and of the groups above it, in cgroup v1 (memory.limit_in_bytes) and v2 (memory.max), as a
// container's memory limit is. Infinite without one. Reads files, so call it when something is set
// up. Any thread. Tests give a `root`, which stands before each path.
double MemoryLimit(const std::string& root = "");

}  // namespace curtail
