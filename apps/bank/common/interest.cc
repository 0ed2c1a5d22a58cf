// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/common/interest.h"

namespace curtail::bank {
namespace {

constexpr int64_t kParts = 10'000;  // basis points of a whole

// To the nearest, a half up. REQUIRES: neither is negative.
int64_t Rounded(int64_t value, int64_t divisor) { return (value + divisor / 2) / divisor; }

// True if instalments of so many cents leave at most as much for the last.
bool IsEnough(int64_t cents, uint32_t months, uint32_t rate_bp, int64_t instalment) {
  int64_t debt = cents;
  for (uint32_t month = 1; month < months && debt > 0; ++month) {
    debt += MonthsInterest(debt, rate_bp) - instalment;
    if (debt > cents) return false;  // it would grow for ever
  }
  return debt <= 0 || debt + MonthsInterest(debt, rate_bp) <= instalment;
}

}  // namespace

int64_t MonthsInterest(int64_t cents, uint32_t rate_bp) { return Rounded(cents * rate_bp, 12 * kParts); }

int64_t DaysInterest(int64_t cents, uint32_t rate_bp, uint32_t days) {
  return Rounded(cents * (int64_t{rate_bp} * days), 365 * kParts);
}

std::vector<Due> Annuity(int64_t cents, uint32_t months, uint32_t rate_bp) {
  int64_t little = (cents - 1) / months, enough = cents + MonthsInterest(cents, rate_bp);
  while (enough - little > 1) {
    const int64_t middle = little + (enough - little) / 2;
    (IsEnough(cents, months, rate_bp, middle) ? enough : little) = middle;
  }
  std::vector<Due> all;
  int64_t debt = cents;
  for (uint32_t month = 1; month <= months; ++month) {
    const int64_t interest = MonthsInterest(debt, rate_bp);
    all.push_back({month < months ? enough : debt + interest, interest});
    debt -= all.back().cents - interest;
  }
  return all;
}

}  // namespace curtail::bank
