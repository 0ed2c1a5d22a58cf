// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/card_number.h"

#include "curtail/base/strings.h"

namespace curtail::bank {
namespace {

// 9 is for issuers of one country, whose number follows. No country has 999.
constexpr std::string_view kIssuer = "999900";
constexpr size_t kDigitsOfCard = 9;

}  // namespace

char LuhnDigit(std::string_view digits) {
  int sum = 0;
  for (size_t i = 0; i < digits.size(); ++i) {
    int digit = digits[digits.size() - 1 - i] - '0';
    if (i % 2 == 0) digit = digit > 4 ? 2 * digit - 9 : 2 * digit;
    sum += digit;
  }
  return static_cast<char>('0' + (10 - sum % 10) % 10);
}

std::string CardNumberOf(uint64_t card) {
  const std::string digits = std::to_string(card);
  std::string number = Join(kIssuer, std::string(kDigitsOfCard - digits.size(), '0'), digits);
  number += LuhnDigit(number);
  return number;
}

}  // namespace curtail::bank
