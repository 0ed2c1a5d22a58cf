// SPDX-License-Identifier: Apache-2.0

#include "curtail/wire/limit.h"

#include <array>

namespace curtail::wire {

std::string_view LimitName(Limit limit) {
  constexpr std::array<std::string_view, kLimits> kNames = {
      "resets",        "malformed", "settings", "empty frames", "reactions", "header block",
      "header fields", "streams",   "message",  "held bytes",   "inflating"};
  return kNames[static_cast<size_t>(limit)];
}

}  // namespace curtail::wire
