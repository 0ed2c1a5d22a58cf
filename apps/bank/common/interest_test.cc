// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/common/interest.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "curtail/base/rng.h"
#include "curtail/base/testing.h"

namespace curtail::bank {
namespace {

TEST(Interest, RoundsAHalfUp) {
  EXPECT_EQ(MonthsInterest(100'000, 790), 658);  // 658.33
  EXPECT_EQ(MonthsInterest(6, 10'000), 1);       // 0.5
  EXPECT_EQ(MonthsInterest(5, 10'000), 0);       // 0.42
  EXPECT_EQ(DaysInterest(365'000, 150, 1), 15);
  EXPECT_EQ(DaysInterest(1'000'000'000'000, 250, 3650), 250'000'000'000);
}

TEST(Interest, DaysSumToTheWhole) {
  int64_t sum = 0;
  for (uint32_t day = 1; day <= 365; ++day) {
    const int64_t days = DaysInterest(10'000, 123, day) - DaysInterest(10'000, 123, day - 1);
    ASSERT_TRUE(days == 0 || days == 1) << day;
    sum += days;
  }
  EXPECT_EQ(sum, 123);
}

// The instalments pay the debt and its interest to the cent, and agree with the formula but for roundings.
void Check(int64_t cents, uint32_t months, uint32_t rate_bp) {
  SCOPED_TRACE(testing::Message() << cents << " cents, " << months << " months, " << rate_bp << " bp");
  const std::vector<Due> all = Annuity(cents, months, rate_bp);
  ASSERT_EQ(all.size(), months);
  int64_t debt = cents, paid = 0, interest = 0;
  for (const Due& due : all) {
    ASSERT_EQ(due.interest, MonthsInterest(debt, rate_bp));
    ASSERT_GT(due.cents, due.interest);
    ASSERT_LE(due.cents, all[0].cents);
    debt -= due.cents - due.interest;
    paid += due.cents, interest += due.interest;
    ASSERT_GE(debt, 0);
    if (&due != &all.back()) {
      ASSERT_EQ(due.cents, all[0].cents);
    }
  }
  EXPECT_EQ(debt, 0);
  EXPECT_EQ(paid, cents + interest);
  const double rate = rate_bp / 120'000.0;
  const double exact =
      rate == 0 ? static_cast<double>(cents) / months
                : static_cast<double>(cents) * rate / (1 - std::pow(1 + rate, -double{1} * months));
  EXPECT_NEAR(static_cast<double>(all[0].cents), exact, 2);
}

TEST(Interest, InstalmentsSumToPrincipalAndInterest) {
  Check(360'000, 360, 1'000);
  Check(360'000, 360, 0);
  Check(1'000, 1, 1'000);
  Check(1'000'000'000'000, 360, 1'000);
  Rng rng(TestSeed());
  for (int i = 0; i < 300; ++i) {
    const auto months = static_cast<uint32_t>(1 + rng.Below(360));
    Check(static_cast<int64_t>(1'000 * months + rng.Below(100'000'000)), months,
          static_cast<uint32_t>(rng.Below(1'001)));
  }
}

}  // namespace
}  // namespace curtail::bank
