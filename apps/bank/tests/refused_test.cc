// SPDX-License-Identifier: Apache-2.0
//
// What customers who are refused, or repeat what they have asked for, leave at the bank: it is bounded, and what is forgotten moves no
// money.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/bank/common/books.h"
#include "apps/bank/data.h"
#include "apps/bank/tests/bank_testing.h"
#include "bank.curtail.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/channel.h"
#include "curtail/store/sql/sqlite.h"
#include "services.pb.h"

namespace curtail::bank {
namespace {

using PartedBankTest = Parted<BankTest>;

constexpr int64_t kThreeDaysMs = 3 * int64_t{86'400'000};
// Of `payments`. The second is as if all had been tried for the last time two days earlier.
constexpr char kRefused[] = "payments WHERE state = 2";
constexpr char kAge[] = "UPDATE payments SET due_ms = due_ms - 172800000";
static_assert(Payment::REFUSED == 2);
// Of a shard of the books.
constexpr char kNames[] = "ledger_requests WHERE answer = 0 AND name LIKE 'payment%'";

// The rows of a service.
class Kept {
 public:
  Kept(const std::string& folder, std::string_view service)
      : db_(*internal::SqliteSession::Open({.path = Join(folder, "/", service, ".db")})) {}

  void Run(std::string_view sql, std::initializer_list<SqlValue> values = {}) {
    const absl::Status status = db_->Execute(sql, values);
    EXPECT_TRUE(status.ok()) << status;
  }
  uint64_t Count(std::string_view rows) {
    uint64_t count = 0;
    const absl::Status status = db_->Query(Join("SELECT count(*) FROM ", rows), {},
                                           [&](const SqlRow& row) { count = row.Unsigned(0); });
    EXPECT_TRUE(status.ok()) << status;
    return count;
  }
  // Of `payments`: as if all had been given three days earlier, and tried again since. Returns them as they are then.
  std::vector<Payment> AgeOrders() {
    std::vector<KeptPayment> all;
    const absl::Status status =
        db_->Query("SELECT bytes FROM payments ORDER BY id", {}, [&](const SqlRow& row) {
          EXPECT_TRUE(all.emplace_back().ParseFromString(std::string(row.Text(0))));
        });
    EXPECT_TRUE(status.ok()) << status;
    std::vector<Payment> shown;
    for (KeptPayment& one : all) {
      Payment& payment = *one.mutable_shown();
      payment.set_created_ms(payment.created_ms() - kThreeDaysMs);
      if (payment.at_ms() > 0) payment.set_at_ms(payment.at_ms() - kThreeDaysMs);
      Run("UPDATE payments SET bytes = ?2 WHERE id = ?1",
          {payment.id(), SqlValue::Bytes(one.SerializeAsString())});
      shown.push_back(payment);
    }
    return shown;
  }

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
  Kept kept(Folder(), "payments");
  ASSERT_TRUE(Pay(other).ok());
  EXPECT_EQ(kept.Count(kRefused), 3u) << "they are of this day";

  // One that is tried again stays, and moves its money once.
  kept.Run(kAge);
  ASSERT_TRUE(Pay(PaymentOf(to, from, 200)).ok());
  EXPECT_EQ(kept.Count(kRefused), 3u) << "of another customer";
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(Pay(PaymentOf(from, to, 1), Join("one ", i), &again).ok());
  EXPECT_EQ(kept.Count(kRefused), 0u);
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
  Kept kept(Folder(), "payments");
  kept.Run(kAge);
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
  Kept kept(Folder(), "payments");
  kept.Run(Join("UPDATE payments SET round = ", kMostRefused - 3, " WHERE state = 2"));
  EXPECT_TRUE(absl::IsFailedPrecondition(Pay(too_much, "key", &ignored))) << "a repetition is one more";
  EXPECT_TRUE(absl::IsFailedPrecondition(Pay(too_much)));
  for (const PayRequest& request : {too_much, one})
    EXPECT_TRUE(absl::IsResourceExhausted(Pay(request))) << request.cents();
  EXPECT_TRUE(absl::IsResourceExhausted(Pay(too_much, "key", &ignored)));
  EXPECT_EQ(kept.Count(kRefused), 2u);
  EXPECT_EQ(CentsOf(from), kDeposit);
  EXPECT_TRUE(Pay(PaymentOf(to, from, 1)).ok()) << "another customer's";
  kept.Run("UPDATE payments SET due_ms = due_ms - 3700000");
  EXPECT_TRUE(Pay(one).ok());
  EXPECT_EQ(kept.Count(kRefused), 2u);
}

TEST_F(BankTest, ADepositThatIsRefusedLeavesNothing) {
  const Own& own = all_[0];
  DepositRequest request;
  request.set_token(own.token), request.set_from(own.id), request.set_cents(kDeposit), request.set_days(30);
  Kept kept(Folder(), "deposits");
  Kept first(Folder(), BooksOf({0, kShards})), second(Folder(), BooksOf({1, kShards}));
  const auto rows = [&] {
    return kept.Count("payments") + first.Count("accounts") + second.Count("accounts") +
           first.Count("ledger_requests") + second.Count("ledger_requests");
  };
  Deposit opened, again;
  ASSERT_TRUE(Send(&Bank::Stub::OpenDeposit, request, &opened, "key").ok());
  const Deadline deadline = Deadline::In(kMaxTestWait);
  const auto pending = [&](Kept& books) { return books.Count("transfers WHERE settled = 0"); };
  while (pending(first) + pending(second) > 0 && !deadline.Expired()) BetweenLooks();
  const uint64_t before = rows();
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(absl::IsFailedPrecondition(Send(&Bank::Stub::OpenDeposit, request, &again)));
  request.set_from(Other(own, /*same_shard=*/true).id);
  EXPECT_TRUE(absl::IsNotFound(Send(&Bank::Stub::OpenDeposit, request, &again)));
  request.set_from(own.id);
  EXPECT_EQ(rows(), before);
  ASSERT_TRUE(Send(&Bank::Stub::OpenDeposit, request, &again, "key").ok()) << "a repetition";
  EXPECT_EQ(again.id(), opened.id());
  EXPECT_EQ(Audit(), 0);
}

// Properties: the names of refusals do not pile up. Whatever comes late by such a name moves nothing, and a customer who repeats an old
// order pays once.
TEST_F(PartedBankTest, AShardForgetsWhatItRefusedAndStaysThere) {
  const Own &from = all_[0], &to = Other(from, /*same_shard=*/true);
  const PayRequest too_much = PaymentOf(from, to, kDeposit + 1);
  Payment ignored;
  for (int i = 0; i < 10; ++i)
    EXPECT_TRUE(absl::IsFailedPrecondition(Pay(too_much, Join("key ", i), &ignored)));
  PayRequest later = too_much;
  later.set_at_ms(1);  // a time that is past, so it might seem to be refused long ago
  Payment scheduled;
  ASSERT_TRUE(Pay(later, "", &scheduled).ok());
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (scheduled.state() != Payment::REFUSED && !deadline.Expired())
    ASSERT_TRUE(Look(from.token, scheduled.id(), &scheduled).ok());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(absl::IsFailedPrecondition(Pay(too_much, "key 0", &ignored)));
  Kept kept(Folder(), "payments");
  Kept books(Folder(), BooksOf({static_cast<uint32_t>(from.shard()), kShards}));
  EXPECT_EQ(books.Count(kNames), 14u) << "one for each round";

  const std::vector<Payment> old = kept.AgeOrders();
  ASSERT_EQ(old.size(), 11u);
  books.Run("UPDATE ledger_requests SET since_ms = since_ms - ?1 WHERE answer = 0 AND since_ms > 0",
            {kThreeDaysMs});
  EXPECT_EQ(books.Count(kNames), 14u);
  EXPECT_TRUE(absl::IsFailedPrecondition(Pay(too_much, "new", &ignored)));
  EXPECT_EQ(books.Count(kNames), 1u);

  ASSERT_TRUE(Pay(PaymentOf(to, from, 1)).ok()) << "there is money now";
  Channel posting(&client_, app_->AddressOf("posting", static_cast<int>(from.shard())));
  for (const Payment& one : old) {
    TransferOrder late;
    late.set_owner(from.owner), late.set_request(Join("payment ", one.id(), ".0")), late.set_text(one.text());
    late.set_from(from.id), late.set_to(to.id), late.set_cents(one.cents());
    late.set_since_ms(std::max(one.created_ms(), one.at_ms()));
    Entry entry;
    Context ctx(kMaxTestWait);
    const absl::Status status = Posting::Stub(&posting).Transfer(ctx, late, &entry);
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << one.id() << ": " << status;
  }
  EXPECT_EQ(books.Count(kNames), 1u) << "late attempts keep nothing";
  EXPECT_EQ(CentsOf(from), kDeposit + 1);

  Payment paid, again;
  const absl::Status repeated = Pay(too_much, "key 9", &paid);
  ASSERT_TRUE(repeated.ok()) << repeated;
  for (const Payment& one : old) EXPECT_NE(paid.id(), one.id()) << "it is a new order";
  ASSERT_TRUE(Pay(too_much, "key 9", &again).ok());
  EXPECT_EQ(again.id(), paid.id());
  EXPECT_EQ(CentsOf(from, paid.version()), 0);
  EXPECT_EQ(Audit(), 0);
}

// Property: what nobody acts on adds nothing to the decisions, or a customer has some an hour.
TEST_F(BankTest, DecisionsAreNoMoreThanOrders) {
  const Own &from = all_[0], &to = Other(from, /*same_shard=*/true);
  const PayRequest one = PaymentOf(from, to, 1), too_much = PaymentOf(from, to, kDeposit + 1);
  Kept access(Folder(), "access-control"), kept(Folder(), "payments");
  Payment ignored;
  uint64_t before = access.Count("links");
  const auto added = [&] { return access.Count("links") - std::exchange(before, access.Count("links")); };
  ASSERT_TRUE(Pay(one, "paid", &ignored).ok());
  EXPECT_EQ(added(), 1u);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Pay(one, "paid", &ignored).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(Pay(too_much, "paid", &ignored)));
  EXPECT_EQ(added(), 0u) << "repetitions";
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(absl::IsFailedPrecondition(Pay(too_much, "refused", &ignored)));
  EXPECT_EQ(added(), 2u) << "each is a round";
  kept.Run(Join("UPDATE payments SET round = ", kMostRefused - 1, " WHERE state = 2"));
  for (const char* key : {"refused", "", "other"})
    EXPECT_TRUE(absl::IsResourceExhausted(Pay(too_much, key, &ignored)));
  EXPECT_EQ(added(), 0u) << "they exceed the limit";
  ASSERT_TRUE(Pay(one, "paid", &ignored).ok());

  PurchaseRequest purchase;
  purchase.set_token(from.token), purchase.set_card(from.card), purchase.set_iban(to.iban);
  purchase.set_cents(99'999);
  absl::Status bought;
  int last = 0;
  while (last < 1000 && bought.ok())
    bought = Send(&Bank::Stub::Purchase, purchase, &ignored, Join("full ", ++last));
  ASSERT_TRUE(absl::IsFailedPrecondition(bought)) << bought;
  added();
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(Send(&Bank::Stub::Purchase, purchase, &ignored, Join("full ", last)).code(), bought.code());
  EXPECT_EQ(added(), 0u) << "a purchase that is repeated";
  Kept cards(Folder(), "credit-card");
  cards.Run(Join("UPDATE payments SET round = ", kMostRefused - 1, " WHERE state = 2"));
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(absl::IsResourceExhausted(Send(&Bank::Stub::Purchase, purchase, &ignored)));
  EXPECT_EQ(added(), 0u) << "purchases beyond the limit";
  EXPECT_EQ(cards.Count(kRefused), 1u);
  cards.Run(kAge);
  purchase.set_cents(1);
  ASSERT_TRUE(Send(&Bank::Stub::Purchase, purchase, &ignored).ok());
  EXPECT_EQ(cards.Count(kRefused), 0u);
  EXPECT_EQ(Audit(), 0);
}

TEST_F(BankTest, ACustomerHasSomeRefusedTradesAnHour) {
  const Own& own = all_[0];
  TradeRequest request;
  request.set_token(own.token), request.set_account(own.id);
  request.set_symbol("MSFT"), request.set_units(1'000'000);
  Trade trade;
  EXPECT_TRUE(absl::IsFailedPrecondition(Send(&Bank::Stub::BuyUnits, request, &trade)));
  Kept kept(Folder(), "wealth-management");
  kept.Run(Join("UPDATE payments SET round = ", kMostRefused - 1, " WHERE state = 2"));
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(absl::IsResourceExhausted(Send(&Bank::Stub::BuyUnits, request, &trade)));
  EXPECT_EQ(kept.Count(kRefused), 1u);
  EXPECT_EQ(kept.Count("trades"), 1u);
}

TEST_F(BankTest, ACustomerHasSomeDenialsAndGrantsAnHour) {
  const Own &from = all_[0], &to = Other(from, /*same_shard=*/true);
  Kept access(Folder(), "access-control");
  GrantRequest grant;
  grant.set_token(from.token), grant.set_account(from.id), grant.set_name(to.name), grant.set_cents(1);
  apps::Changed changed;
  const auto deny = [&](const Own& who, const Own& payee) { return Pay(PaymentOf(who, payee, 100'001)); };
  EXPECT_TRUE(absl::IsPermissionDenied(deny(from, to)));
  ASSERT_TRUE(Send(&Bank::Stub::GrantPayments, grant, &changed).ok());
  const uint64_t before = access.Count("links");
  access.Run(Join("UPDATE unpaid SET kept = kept + ", kMostUnpaid - 4));
  EXPECT_TRUE(absl::IsPermissionDenied(deny(from, to)));
  ASSERT_TRUE(Send(&Bank::Stub::GrantPayments, grant, &changed).ok());
  grant.set_cents(2);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(absl::IsResourceExhausted(deny(from, to)));
    EXPECT_TRUE(absl::IsResourceExhausted(Send(&Bank::Stub::GrantPayments, grant, &changed)));
  }
  EXPECT_EQ(access.Count("links"), before + 2);
  EXPECT_EQ(access.Count("grants WHERE most = 2"), 0u) << "what is not kept is not done";
  grant.set_cents(0);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Send(&Bank::Stub::GrantPayments, grant, &changed).ok());
  EXPECT_EQ(access.Count("grants"), 0u);
  EXPECT_EQ(access.Count("links"), before + 3) << "a grant ends once";
  grant.set_cents(2);
  EXPECT_TRUE(absl::IsPermissionDenied(deny(to, from))) << "another customer's";
  EXPECT_TRUE(Pay(PaymentOf(from, to, 1)).ok()) << "payments go on";
  for (const char* other_hour : {"begun_ms - 3700000", "begun_ms + 86400000"}) {
    access.Run(Join("UPDATE unpaid SET kept = 1000, begun_ms = ", other_hour));
    EXPECT_TRUE(absl::IsPermissionDenied(deny(from, to))) << other_hour;
  }
  ASSERT_TRUE(Send(&Bank::Stub::GrantPayments, grant, &changed).ok());
  EXPECT_EQ(access.Count("unpaid"), 2u);
  EXPECT_EQ(Audit(), 0);
}

}  // namespace
}  // namespace curtail::bank
