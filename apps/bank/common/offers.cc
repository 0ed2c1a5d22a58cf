// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/common/offers.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace curtail::bank {
namespace {

constexpr int64_t kIdleCents = 100'000, kIncomeCents = 100'000, kLowCents = 10'000;
constexpr uint64_t kManyPayments = 10;
constexpr uint32_t kMostScore = 100;

Offer Make(const char* product, uint64_t score, std::string reason) {
  Offer offer;
  offer.set_product(product);
  offer.set_score(static_cast<uint32_t>(std::min<uint64_t>(score, kMostScore)));
  offer.set_reason(std::move(reason));
  return offer;
}

}  // namespace

std::vector<Offer> OffersFor(const OfferFacts& facts) {
  int64_t idle = 0, received = 0, lowest = std::numeric_limits<int64_t>::max();
  uint64_t times_sent = 0;
  for (const ActivitySummary::One& one : facts.activity.accounts()) {
    idle = std::max(idle, one.lowest_cents());
    lowest = std::min(lowest, one.lowest_cents());
    received += one.received_cents();
    times_sent += one.times_sent();
  }
  std::vector<Offer> offers;
  if (idle >= kIdleCents)
    offers.push_back(Make("term-deposit", 50 + static_cast<uint64_t>(idle / kIdleCents),
                          "an account has had 1,000.00 or more for 30 days"));
  if (received >= kIncomeCents && lowest < kLowCents)
    offers.push_back(Make("personal-loan", 60,
                          "1,000.00 or more has come in 30 days, and an account had less than 100.00"));
  if (times_sent >= kManyPayments && !facts.has_card)
    offers.push_back(Make("credit-card", 30 + times_sent, "ten or more payments in 30 days, and no card"));
  if (!facts.has_email) offers.push_back(Make("electronic-mail", 10, "the bank has no email address"));
  return offers;
}

}  // namespace curtail::bank
