// SPDX-License-Identifier: Apache-2.0
//
// Payments that the bank refuses: how long it keeps them, and how many.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "apps/bank/data.h"
#include "apps/bank/tests/bank_testing.h"
#include "bank.curtail.h"
#include "curtail/base/strings.h"
#include "curtail/store/sql/sqlite.h"

namespace curtail::bank {
namespace {

// The rows of `payments`.
class KeptPayments {
 public:
  explicit KeptPayments(const std::string& folder)
      : db_(*internal::SqliteSession::Open({.path = Join(folder, "/payments.db")})) {}

  void Run(std::string_view sql) {
    const absl::Status status = db_->Execute(sql);
    EXPECT_TRUE(status.ok()) << status;
  }
  uint64_t Refused() {
    uint64_t count = 0;
    const absl::Status status =
        db_->Query(Join("SELECT count(*) FROM payments WHERE state = ", static_cast<int>(Payment::REFUSED)),
                   {}, [&](const SqlRow& row) { count = row.Unsigned(0); });
    EXPECT_TRUE(status.ok()) << status;
    return count;
  }
  // As if all had been given two days earlier.
  void Age() { Run("UPDATE payments SET due_ms = due_ms - 172800000"); }

 private:
  const std::unique_ptr<SqlSession> db_;
};

TEST_F(BankTest, TheBankForgetsRefusedPaymentsAfterADay) {
  const Own &from = all_[0], &to = Other(from, /*same_shard=*/true);
  const PayRequest too_much = PaymentOf(from, to, kDeposit + 1), other = PaymentOf(from, to, 1);
  Payment booked, again, ignored;
  ASSERT_TRUE(Pay(PaymentOf(from, to, 100), "booked", &booked).ok());
  for (const char* key : {"first", "second", "third"})
    EXPECT_TRUE(absl::IsFailedPrecondition(Pay(too_much, key, &ignored)));
  EXPECT_TRUE(absl::IsFailedPrecondition(Pay(too_much, "first", &ignored))) << "a repetition";
  EXPECT_TRUE(absl::IsAlreadyExists(Pay(other, "first", &ignored)));
  KeptPayments kept(Folder());
  ASSERT_TRUE(Pay(other).ok());
  EXPECT_EQ(kept.Refused(), 3u) << "they are of this day";

  // One that is tried again stays, and moves its money once.
  kept.Age();
  ASSERT_TRUE(Pay(PaymentOf(to, from, 200)).ok());
  EXPECT_EQ(kept.Refused(), 3u) << "of another customer";
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(Pay(PaymentOf(from, to, 1), Join("one ", i), &again).ok());
  EXPECT_EQ(kept.Refused(), 0u);
  EXPECT_EQ(CentsOf(from, again.version()), kDeposit + 97);
  ASSERT_TRUE(Pay(PaymentOf(from, to, 100), "booked", &again).ok());
  EXPECT_EQ(again.id(), booked.id()) << "what is booked is kept";
  ASSERT_TRUE(Pay(other, "first", &again).ok()) << "its name is forgotten";
  EXPECT_EQ(CentsOf(from, again.version()), kDeposit + 96);
  EXPECT_EQ(Audit(), 0);
}

// A refused payment of two days ago is paid under its name if the customer repeats it, although the bank might have forgotten it.
TEST_F(BankTest, AnOldRefusedPaymentThatIsRepeatedIsPaidOnce) {
  const Own &from = all_[0], &to = Other(from, /*same_shard=*/true);
  const PayRequest too_much = PaymentOf(from, to, kDeposit + 1);
  Payment paid, again;
  EXPECT_TRUE(absl::IsFailedPrecondition(Pay(too_much, "key", &paid)));
  KeptPayments kept(Folder());
  kept.Age();
  ASSERT_TRUE(Pay(PaymentOf(to, from, 1)).ok());
  ASSERT_TRUE(Pay(too_much, "key", &paid).ok());
  ASSERT_TRUE(Pay(too_much, "key", &again).ok());
  EXPECT_EQ(again.id(), paid.id());
  EXPECT_EQ(CentsOf(from, again.version()), 0);
  EXPECT_EQ(Audit(), 0);
}

TEST_F(BankTest, ACustomerHasSomeRefusedPaymentsAnHour) {
  const Own &from = all_[0], &to = Other(from, /*same_shard=*/true);
  const PayRequest too_much = PaymentOf(from, to, kDeposit + 1), one = PaymentOf(from, to, 1);
  Payment ignored;
  EXPECT_TRUE(absl::IsFailedPrecondition(Pay(too_much, "key", &ignored)));
  KeptPayments kept(Folder());
  kept.Run(Join("UPDATE payments SET round = ", kMostRefused - 3, " WHERE state = 2"));
  EXPECT_TRUE(absl::IsFailedPrecondition(Pay(too_much, "key", &ignored))) << "a repetition is one more";
  EXPECT_TRUE(absl::IsFailedPrecondition(Pay(too_much)));
  for (const PayRequest& request : {too_much, one})
    EXPECT_TRUE(absl::IsResourceExhausted(Pay(request))) << request.cents();
  EXPECT_TRUE(absl::IsResourceExhausted(Pay(too_much, "key", &ignored)));
  EXPECT_EQ(kept.Refused(), 2u);
  EXPECT_EQ(CentsOf(from), kDeposit);
  EXPECT_TRUE(Pay(PaymentOf(to, from, 1)).ok()) << "another customer's";
  kept.Run("UPDATE payments SET due_ms = due_ms - 3700000");
  EXPECT_TRUE(Pay(one).ok());
  EXPECT_EQ(kept.Refused(), 2u);
}

}  // namespace
}  // namespace curtail::bank
