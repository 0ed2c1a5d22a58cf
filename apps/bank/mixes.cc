// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/mixes.h"

namespace curtail::bank {

const std::vector<Mix>& AllMixes() {
  static const std::vector<Mix> mixes = {
      {"mixed",
       {{Kind::kBalance, 38},
        {Kind::kActivity, 24},
        {Kind::kPay, 16},
        {Kind::kOwnTransfer, 8},
        {Kind::kFindBank, 3},
        {Kind::kBranches, 1},
        {Kind::kSearchBanks, 1},
        {Kind::kPurchase, 1.5},
        {Kind::kPayCard, 1.5},
        {Kind::kQuote, 2},
        {Kind::kPortfolio, 1.5},
        {Kind::kBuy, 0.5},
        {Kind::kLogin, 1.5},
        {Kind::kSlots, 0.1},
        {Kind::kBookings, 0.1},
        {Kind::kMessages, 0.1},
        {Kind::kLoan, 0.1},
        {Kind::kApplyForCard, 0.1}}},
      // The weights of Bank of Anthos's load generator. Its page "home" has the balance and the last movements.
      {"anthos",
       {{Kind::kBalance, 10},
        {Kind::kActivity, 10},
        {Kind::kPay, 5},
        {Kind::kOwnTransfer, 5},
        {Kind::kLogin, 5},
        {Kind::kLogout, 1}}},
      {"balance", {{Kind::kBalance, 1}}},
      {"activity", {{Kind::kActivity, 1}}},
      {"pay", {{Kind::kPay, 1}}},
      {"transfer", {{Kind::kOwnTransfer, 1}}},
      {"hot", {{Kind::kPayMerchant, 1}}},
      {"card", {{Kind::kPurchase, 1}, {Kind::kPayCard, 1}}},
      {"new-card", {{Kind::kApplyForCard, 1}}},
      {"quote", {{Kind::kQuote, 1}}},
      {"loan", {{Kind::kLoan, 1}}},
      {"mortgage", {{Kind::kQuoteMortgage, 1}, {Kind::kMortgage, 1}}},
      {"deposit", {{Kind::kDeposit, 1}}},
      {"wealth", {{Kind::kPortfolio, 1}, {Kind::kBuy, 1}}},
      {"info", {{Kind::kFindBank, 3}, {Kind::kBranches, 1}, {Kind::kSearchBanks, 1}}},
      {"contact",
       {{Kind::kRepresentatives, 1}, {Kind::kSlots, 1}, {Kind::kBookings, 1}, {Kind::kMessages, 1}}},
      {"customer", {{Kind::kCustomer, 1}}},
      {"offers", {{Kind::kOffers, 1}}},
      {"login", {{Kind::kLogin, 1}}}};
  return mixes;
}

}  // namespace curtail::bank
