// SPDX-License-Identifier: Apache-2.0
//
// control_groups.h - the limits of this process's control groups, of cgroup v1 and v2.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace curtail::internal {

// Reads the limit in a group's folder, of v2 or of v1; infinite where there is none.
using GroupLimit = std::function<double(const std::filesystem::path& group, bool v2)>;

// The least limit that `limit_in` reads, in the process's own group of `controller` ("cpu") and the groups above it;
// infinite without one. Reads files of /proc. `root` stands before each path.
double LeastLimit(const std::string& root, std::string_view controller, const GroupLimit& limit_in);

}  // namespace curtail::internal
