// SPDX-License-Identifier: Apache-2.0
//
// luhn.h - the check digit of card numbers (ISO/IEC 7812, annex B).
#pragma once

#include <cstddef>
#include <string_view>

namespace curtail::apps {

// Returns the digit that Luhn's check demands behind `digits`.
inline char LuhnDigit(std::string_view digits) {
  int sum = 0;
  for (size_t i = 0; i < digits.size(); ++i) {
    int digit = digits[digits.size() - 1 - i] - '0';
    if (i % 2 == 0) digit = digit > 4 ? 2 * digit - 9 : 2 * digit;
    sum += digit;
  }
  return static_cast<char>('0' + (10 - sum % 10) % 10);
}

}  // namespace curtail::apps
