// SPDX-License-Identifier: Apache-2.0
//
// Codes of discounts, and which orders use them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "apps/kit/testing/actors.h"
#include "apps/kit/wall_clock.h"
#include "apps/shop/tests/customers_testing.h"
#include "buying.curtail.h"

namespace curtail::shop {
namespace {

class DiscountTest : public ServicesTest {
 protected:
  DiscountTest() : ServicesTest({"discounts"}) {}

  Discounts::Stub discounts() { return Stub<Discounts>("discounts"); }
  static Discount CodeOf(const std::string& code, uint32_t percent, int64_t cents_off, uint64_t limit = 0) {
    Discount discount;
    discount.set_code(code), discount.set_percent(percent), discount.set_cents_off(cents_off);
    discount.set_limit(limit);
    return discount;
  }
  absl::Status Put(const Discount& discount) {
    apps::Nothing nothing;
    Context ctx(kMaxTestWait);
    return discounts().Put(ctx, discount, &nothing);
  }
  absl::StatusOr<int64_t> Apply(const std::string& code, int64_t goods_cents) {
    DiscountQuery query;
    query.set_code(code), query.set_goods_cents(goods_cents);
    DiscountCents cents;
    Context ctx(kMaxTestWait);
    absl::Status status = discounts().Apply(ctx, query, &cents);
    if (!status.ok()) return status;
    return cents.cents();
  }
  std::vector<std::string> Current() {
    DiscountList list;
    Context ctx(kMaxTestWait);
    EXPECT_TRUE(discounts().Current(ctx, {}, &list).ok());
    std::vector<std::string> codes;
    for (const Discount& one : list.discounts()) codes.push_back(one.code());
    return codes;
  }
  // Repeats a call that has no answer.
  template <class Call>
  static absl::Status Answered(Call call) {
    const Deadline deadline = Deadline::In(kMaxTestWait);
    absl::Status status;
    do {
      Context ctx(deadline);
      status = call(ctx);
    } while ((absl::IsUnavailable(status) || absl::IsCancelled(status)) && !deadline.Expired());
    return status;
  }
  // Returns a code of gRPC.
  int Redeem(uint64_t order, const std::string& code) {
    Redemptions orders;
    Redemption& one = *orders.add_orders();
    one.set_order(order), one.set_code(code);
    Outcomes outcomes;
    const absl::Status status =
        Answered([&](Context& ctx) { return discounts().Redeem(ctx, orders, &outcomes); });
    EXPECT_TRUE(status.ok()) << status;
    if (outcomes.outcomes_size() != 1 || outcomes.outcomes(0).order() != order) return -1;
    return outcomes.outcomes(0).code();
  }
  void Release(uint64_t order) {
    apps::Nothing nothing;
    const absl::Status status =
        Answered([&](Context& ctx) { return discounts().Release(ctx, apps::IdsOf(order), &nothing); });
    EXPECT_TRUE(status.ok()) << status;
  }

  static constexpr int kOk = 0, kRefused = 9;  // FAILED_PRECONDITION
};

TEST_F(DiscountTest, TakesAShareOrCentsOffRoundedDown) {
  ASSERT_TRUE(Put(CodeOf("TEN", 10, 0)).ok() && Put(CodeOf("FIVER", 0, 500)).ok() &&
              Put(CodeOf("ALL", 100, 0)).ok());
  EXPECT_EQ(*Apply("TEN", 999), 99);
  EXPECT_EQ(*Apply("TEN", 9), 0);
  EXPECT_EQ(*Apply("TEN", 9'000'000'000'000'000'000), 900'000'000'000'000'000);
  EXPECT_EQ(*Apply("FIVER", 501), 500);
  EXPECT_EQ(*Apply("FIVER", 300), 300) << "at most what the goods cost";
  EXPECT_EQ(*Apply("ALL", 12'345), 12'345);
  EXPECT_TRUE(absl::IsNotFound(Apply("NONE", 100).status()));
  EXPECT_TRUE(absl::IsNotFound(Apply("ten", 100).status()));
}

TEST_F(DiscountTest, AppliesFromAPriceAndUntilATime) {
  Discount much = CodeOf("MUCH", 10, 0), late = CodeOf("LATE", 10, 0), soon = CodeOf("SOON", 10, 0);
  much.set_least_cents(5000);
  late.set_ends_ms(apps::NowMs() - 1);
  soon.set_ends_ms(apps::NowMs() + 1'000'000);
  ASSERT_TRUE(Put(much).ok() && Put(late).ok() && Put(soon).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Apply("MUCH", 4999).status()));
  EXPECT_EQ(*Apply("MUCH", 5000), 500);
  EXPECT_TRUE(absl::IsFailedPrecondition(Apply("LATE", 100).status()));
  EXPECT_THAT(Current(), testing::ElementsAre("SOON", "MUCH"));
  much.set_percent(20);
  ASSERT_TRUE(Put(much).ok());
  EXPECT_EQ(*Apply("MUCH", 5000), 1000);
}

TEST_F(DiscountTest, RefusesOtherCodes) {
  Discount negative = CodeOf("A", 0, -1), least = CodeOf("A", 10, 0), limit = CodeOf("A", 10, 0);
  least.set_least_cents(-1);
  limit.set_limit(uint64_t{1} << 63);
  for (const Discount& wrong :
       {CodeOf("", 10, 0), CodeOf("lower", 10, 0), CodeOf("A B", 10, 0), CodeOf(std::string(33, 'A'), 10, 0),
        CodeOf("A", 101, 0), CodeOf("A", 0, 0), CodeOf("A", 10, 5), negative, least, limit})
    EXPECT_TRUE(absl::IsInvalidArgument(Put(wrong))) << wrong.ShortDebugString();
  EXPECT_TRUE(Current().empty());
}

TEST_F(DiscountTest, AnOrderUsesACodeOnceAndGivesItBackOnce) {
  ASSERT_TRUE(Put(CodeOf("TWO", 10, 0, 2)).ok());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Redeem(1, "TWO"), kOk);
  EXPECT_EQ(Redeem(2, "TWO"), kOk);
  EXPECT_EQ(Redeem(3, "TWO"), kRefused);
  EXPECT_EQ(Redeem(3, "NONE"), kRefused);
  EXPECT_EQ(Redeem(4, "NONE"), kRefused);
  EXPECT_TRUE(absl::IsFailedPrecondition(Apply("TWO", 100).status()));
  for (int i = 0; i < 3; ++i) Release(1);
  EXPECT_EQ(*Apply("TWO", 100), 10);
  EXPECT_EQ(Redeem(1, "TWO"), kRefused) << "it was released";
  EXPECT_EQ(Redeem(3, "TWO"), kRefused) << "an order that is refused stays so";
  Release(5);
  EXPECT_EQ(Redeem(5, "TWO"), kRefused) << "it comes after its release";
  EXPECT_EQ(Redeem(6, "TWO"), kOk);
  EXPECT_EQ(Redeem(7, "TWO"), kRefused) << "a release gives one use back";
  Discount more = CodeOf("TWO", 10, 0, 3);
  ASSERT_TRUE(Put(more).ok());
  EXPECT_EQ(Redeem(8, "TWO"), kOk) << "a new limit counts the old uses";
  EXPECT_EQ(Redeem(9, "TWO"), kRefused);
}

// Property: a code is redeemed at most its limit, whoever asks at once and whatever dies; an order keeps its first answer.
TEST_F(DiscountTest, IsRedeemedAtMostItsLimitWhileTheServiceIsKilled) {
  constexpr uint64_t kLimit = 40, kOrders = 30, kThreads = 4, kBetweenKills = 20;
  ASSERT_TRUE(Put(CodeOf("RARE", 10, 0, kLimit)).ok());
  const uint64_t seed = TestSeed();
  std::atomic<uint64_t> answered{0}, redeemed{0}, done{0};
  discounts();  // connects
  apps::AllAtOnce(kThreads + 1, seed, [&](Rng& rng, size_t thread) {
    if (thread == 0) {  // kills the service until the others have ended
      for (uint64_t next = kBetweenKills; done.load() < kThreads;) {
        if (answered.load() < next) {
          std::this_thread::yield();
          continue;
        }
        app_->Kill("discounts");
        ASSERT_TRUE(app_->Restart("discounts").ok());
        next = answered.load() + kBetweenKills;
      }
      return;
    }
    for (uint64_t i = 0; i < kOrders; ++i) {
      const uint64_t order = thread * 1000 + i;
      const int first = Redeem(order, "RARE");
      EXPECT_EQ(Redeem(order, "RARE"), first);
      const bool give_back = first == kOk && rng.Below(3) == 0;
      if (give_back) Release(order);
      if (first == kOk && !give_back) redeemed.fetch_add(1);
      answered.fetch_add(1);
    }
    done.fetch_add(1);
  });
  // All that was given back is used again by the orders that follow, and no more.
  for (uint64_t order = 9000; Redeem(order, "RARE") == kOk; ++order) redeemed.fetch_add(1);
  EXPECT_EQ(redeemed.load(), kLimit);
}

}  // namespace
}  // namespace curtail::shop
