// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/common/prices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace curtail::bank {
namespace {

TEST(Prices, ReplayTheMonthsForwardAndBack) {
  const absl::StatusOr<Prices> prices = Prices::Parse("# text\nB\t2000-01\t7\nA\t2000-01\t100 250 399\n");
  ASSERT_TRUE(prices.ok()) << prices.status();
  EXPECT_THAT(prices->Symbols(), testing::ElementsAre("A", "B"));
  const int64_t expected[] = {100, 250, 399, 250, 100, 250, 399};
  for (uint32_t day = 0; day < 7; ++day) {
    EXPECT_EQ(prices->CentsOn("A", day).value(), expected[day]) << day;
    EXPECT_EQ(prices->CentsOn("B", day).value(), 7);
  }
  EXPECT_TRUE(prices->CentsOn("A", 4294967295u).ok());
  EXPECT_TRUE(absl::IsNotFound(prices->CentsOn("C", 0).status()));
}

TEST(Prices, TheBuiltinOnesAreReal) {
  const absl::StatusOr<Prices> prices = Prices::Builtin();
  ASSERT_TRUE(prices.ok()) << prices.status();
  EXPECT_THAT(prices->Symbols(), testing::ElementsAre("AAPL", "AMZN", "GOOG", "IBM", "MSFT"));
  EXPECT_EQ(prices->CentsOn("MSFT", 0).value(), 3981);     // January 2000
  EXPECT_EQ(prices->CentsOn("AAPL", 122).value(), 22302);  // March 2010
}

TEST(Prices, RefuseWhatIsNotInTheirForm) {
  for (const std::string wrong : {"A", "A\t2000-01", "A\t2000-01\t", "A\t2000-01\t1  2", "A\t2000-01\t0",
                                  "A\t2000-01\t-1", "A\t2000-01\t1.5", "A\t2000-01\t10000001",
                                  "A\t2000-01\t99999999999999999999", "\t2000-01\t1", "A\tx\t1\nA\tx\t2"})
    EXPECT_TRUE(absl::IsDataLoss(Prices::Parse(wrong).status())) << wrong;
}

TEST(Prices, APartOfACentIsTheBanks) {
  EXPECT_EQ(CostOfUnits(100, 3981), 3981);
  EXPECT_EQ(ProceedsOfUnits(100, 3981), 3981);
  EXPECT_EQ(CostOfUnits(1, 3981), 40);
  EXPECT_EQ(ProceedsOfUnits(1, 3981), 39);
  EXPECT_EQ(CostOfUnits(0, 3981), 0);
  EXPECT_EQ(CostOfUnits(100'000'000'000, 10'000'000), 10'000'000'000'000'000);
}

}  // namespace
}  // namespace curtail::bank
