// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/memory.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

#include "curtail/base/internal/control_groups.h"

namespace curtail {
namespace {

// A group of v1 without a limit has the greatest number of pages, some 2^63 bytes.
constexpr double kMostBytes = 1e18;

double BytesIn(const std::filesystem::path& group, bool v2) {
  std::string text;
  std::ifstream(group / (v2 ? "memory.max" : "memory.limit_in_bytes")) >> text;  // "max" in v2: no limit
  const double bytes = std::strtod(text.c_str(), nullptr);
  return bytes > 0 && bytes < kMostBytes ? bytes : std::numeric_limits<double>::infinity();
}

}  // namespace

double MemoryLimit(const std::string& root) { return internal::LeastLimit(root, "memory", BytesIn); }

}  // namespace curtail
