// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/common/card_number.h"

#include <string_view>

#include "apps/kit/luhn.h"
#include "curtail/base/strings.h"

namespace curtail::bank {
namespace {

// 9 is for issuers of one country, whose number follows. No country has 999.
constexpr std::string_view kIssuer = "999900";
constexpr size_t kDigitsOfCard = 9;

}  // namespace

std::string CardNumberOf(uint64_t card) {
  const std::string digits = std::to_string(card);
  std::string number = Join(kIssuer, std::string(kDigitsOfCard - digits.size(), '0'), digits);
  number += apps::LuhnDigit(number);
  return number;
}

}  // namespace curtail::bank
