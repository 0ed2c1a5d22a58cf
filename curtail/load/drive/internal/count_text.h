// SPDX-License-Identifier: Apache-2.0
//
// count_text.h - large numbers for people.
#pragma once

#include <cmath>
#include <string>

#include "absl/strings/str_format.h"

namespace curtail::internal {

// "500", "10 million", "864 billion". Thread-safe.
inline std::string CountText(double count) {
  if (count >= 1e9 && count < 1e12) return absl::StrFormat("%.4g billion", count / 1e9);
  if (count >= 1e6 && count < 1e9) return absl::StrFormat("%.4g million", count / 1e6);
  return absl::StrFormat("%g", count);
}

}  // namespace curtail::internal
