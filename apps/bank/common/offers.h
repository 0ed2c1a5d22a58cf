// SPDX-License-Identifier: Apache-2.0
//
// offers.h - the rules by which the bank offers products.
//
// A rule has named conditions and a score of its own: pure and repeatable. No rule is learned. Each looks at 30 days:
//
//  term-deposit     An account had 1,000.00 or more all the time. The more, the better.
//  personal-loan    1,000.00 or more came from others, and an account fell below 100.00.
//  credit-card      The customer paid others ten times or more, and has no card.
//  electronic-mail  The bank has no email address of the customer.
#pragma once

#include <cstdint>
#include <vector>

#include "services.pb.h"

namespace curtail::bank {

inline constexpr int64_t kOfferDayMs = 86'400'000, kOfferDays = 30;

struct OfferFacts {
  ActivitySummary activity;  // of all accounts of the customer, in kOfferDays
  bool has_card = false, has_email = false;
};

// Returns one offer of each rule that applies, without a time. They stand in the order of the rules.
std::vector<Offer> OffersFor(const OfferFacts& facts);

}  // namespace curtail::bank
