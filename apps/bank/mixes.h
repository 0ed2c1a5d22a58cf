// SPDX-License-Identifier: Apache-2.0
//
// mixes.h - the kinds of requests of `curtail load bank`, and how often each mix sends them.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace curtail::bank {

enum class Kind {
  kBalance,
  kActivity,
  kPay,
  kOwnTransfer,
  kPayMerchant,
  kPurchase,
  kPayCard,
  kApplyForCard,
  kQuote,
  kLoan,
  kQuoteMortgage,
  kMortgage,
  kDeposit,
  kPortfolio,
  kBuy,
  kBranches,
  kFindBank,
  kSearchBanks,
  kRepresentatives,
  kSlots,
  kBookings,
  kMessages,
  kCustomer,
  kOffers,
  kLogin,
  kLogout
};

struct Mix {
  std::string_view name;
  std::vector<std::pair<Kind, double>> weights;  // the most frequent first
};

const std::vector<Mix>& AllMixes();

}  // namespace curtail::bank
