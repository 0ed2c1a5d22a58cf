// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/common/card_number.h"

#include <gtest/gtest.h>

#include "apps/kit/luhn.h"

namespace curtail::bank {
namespace {

TEST(CardNumber, LuhnDigitIsThatOfKnownNumbers) {
  // The example of ISO/IEC 7812-1, and numbers that card schemes publish for tests.
  for (const std::string_view number :
       {"79927398713", "4111111111111111", "5555555555554444", "378282246310005", "6011111111111117"})
    EXPECT_EQ(apps::LuhnDigit(number.substr(0, number.size() - 1)), number.back()) << number;
}

TEST(CardNumber, HasSixteenDigitsOfWhichAnyWrongOneShows) {
  for (const uint64_t card : {uint64_t{0}, uint64_t{1}, uint64_t{4'711'815}, kMostCard}) {
    const std::string number = CardNumberOf(card);
    EXPECT_EQ(number.size(), 16u);
    EXPECT_EQ(number.substr(0, 6), "999900");
    for (size_t i = 0; i < 15; ++i) {
      std::string wrong = number.substr(0, 15);
      wrong[i] = wrong[i] == '9' ? '0' : static_cast<char>(wrong[i] + 1);
      EXPECT_NE(apps::LuhnDigit(wrong), number.back()) << wrong;
    }
  }
}

}  // namespace
}  // namespace curtail::bank
