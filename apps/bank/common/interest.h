// SPDX-License-Identifier: Apache-2.0
//
// interest.h - interest in whole cents, and the instalments of a loan.
//
// The rounding rule of the bank: interest is computed in integers, and rounded to the nearest cent, a half up. Rates are of a
// year, in basis points. A month is the twelfth part of a year, and a day the 365th.
#pragma once

#include <cstdint>
#include <vector>

namespace curtail::bank {

// Of a debt in one month. REQUIRES: 0 <= cents <= 10^12, rate_bp <= 100,000.
int64_t MonthsInterest(int64_t cents, uint32_t rate_bp);

// Of money that rests for some days. A day's interest is this minus the interest of the days before it. So the days sum to the
// whole. REQUIRES: 0 <= cents <= 10^12, rate_bp * days <= 9 * 10^6.
int64_t DaysInterest(int64_t cents, uint32_t rate_bp, uint32_t days);

struct Due {
  int64_t cents = 0;
  int64_t interest = 0;  // a part of the cents
};
// The instalments of a loan by annuity. All are equal but the last, which pays the rest: they are the least with which it is
// not more than the others. REQUIRES: 1,000 * months <= cents <= 10^12, 0 < months <= 360, rate_bp <= 1,000. With less the last
// could be 0.
std::vector<Due> Annuity(int64_t cents, uint32_t months, uint32_t rate_bp);

}  // namespace curtail::bank
