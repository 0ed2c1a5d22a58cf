// SPDX-License-Identifier: Apache-2.0
//
// load.h - the loads that benchmarks name alike: "closed-16" keeps 16 requests under way, "open-500" sends 500 a second
// whatever the answers do.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace curtail::bench {

struct Load {
  enum class Kind { kClosed, kOpen };
  Kind kind = Kind::kClosed;
  uint32_t number = 1;  // under way, or a second

  bool open() const { return kind == Kind::kOpen; }
  std::string Name() const;
  auto operator<=>(const Load&) const = default;
};

// The limits of a benchmark; 0: none of the kind.
struct LoadLimits {
  uint32_t closed = 0;
  uint32_t open = 0;
};

// Errors: INVALID_ARGUMENT that says what is wrong with which.
absl::StatusOr<std::vector<Load>> ParseLoads(const std::vector<std::string>& names, const LoadLimits& limits);

}  // namespace curtail::bench
