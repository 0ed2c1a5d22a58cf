// SPDX-License-Identifier: Apache-2.0
//
// card_number.h - numbers of cards in the form of ISO/IEC 7812.
#pragma once

#include <cstdint>
#include <string>

namespace curtail::bank {

// The greatest number of a card of this bank: nine digits.
inline constexpr uint64_t kMostCard = 999'999'999;

// Returns the 16 digits of a card of this bank. REQUIRES: card <= kMostCard.
std::string CardNumberOf(uint64_t card);

}  // namespace curtail::bank
