// SPDX-License-Identifier: Apache-2.0
//
// priority.h - how important a request is, by the metadata that it brings.
//
// A priority has two parts, as in DAGOR (H. Zhou et al., SoCC 2018): business, which says what the
// request is for, and user, which tells requests of one business apart. A front end sets both, and
// every call that follows carries them on. Zero is the most important.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "curtail/base/clock.h"

namespace curtail {

// The key of the metadata: "curtail-priority: 3.17".
inline constexpr std::string_view kPriorityKey = "curtail-priority";

struct Priority {
  static constexpr uint8_t kLeast = 127;

  // Of a request that brings none: the middle.
  uint8_t business = 64;
  uint8_t user = 64;

  friend auto operator<=>(const Priority&, const Priority&) = default;
};

// A server refuses the least important requests first while requests wait too long
// (priority_limit.h).
struct PriorityOptions {
  bool on = false;
  // The mean wait for a thread above which the server counts as overloaded, and the time after
  // which it decides again. Raise the target for handlers that take longer than it.
  Nanos target = std::chrono::milliseconds(20);
  Nanos window = std::chrono::seconds(1);

  // INVALID_ARGUMENT for a target that is not above zero, or a window shorter than the target.
  absl::Status Check() const;
};

// "3.17": two numbers of 0 to 127, without signs, spaces or leading zeros; empty for other texts.
std::optional<Priority> ParsePriority(std::string_view text);
std::string ToString(Priority priority);

}  // namespace curtail
