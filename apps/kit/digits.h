// SPDX-License-Identifier: Apache-2.0
//
// digits.h - numbers in texts of clients.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace curtail::apps {

// The number that the whole `text` writes in decimal digits, below 2^64; none for any other text.
inline std::optional<uint64_t> ParseDigits(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace curtail::apps
