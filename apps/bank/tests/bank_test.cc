// SPDX-License-Identifier: Apache-2.0
//
// The whole bank in processes of its own, as its customers use it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "access.pb.h"
#include "apps/bank/common/books.h"
#include "apps/bank/data.h"
#include "apps/bank/tests/bank_testing.h"
#include "apps/kit/load/fill.h"
#include "bank.curtail.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "curtail/base/testing.h"
#include "curtail/rpc/channel.h"
#include "curtail/store/sql/sqlite.h"

namespace curtail::bank {
namespace {

using testing::HasSubstr;
using PartedBankTest = Parted<BankTest>;

TEST_F(BankTest, APaymentArrivesWithinAShardAndInAnother) {
  const Own& from = all_[0];
  int64_t left = kDeposit;
  for (const bool same_shard : {true, false}) {
    const Own& to = Other(from, same_shard);
    Payment payment;
    const absl::Status paid = Pay(PaymentOf(from, to, 250), "", &payment);
    ASSERT_TRUE(paid.ok()) << paid;
    left -= 250;
    EXPECT_EQ(payment.state(), same_shard ? Payment::ARRIVED : Payment::BOOKED);
    EXPECT_EQ(CentsOf(from, payment.version()), left);
    AwaitArrival(from.token, payment.id());
    EXPECT_EQ(CentsOf(to), kDeposit + 250);
    const std::vector<Movement> sent = AwaitMovements(from), got = AwaitMovements(to);
    ASSERT_EQ(got.size(), 2u);
    EXPECT_EQ(sent[0].iban(), to.iban);
    EXPECT_EQ(sent[0].cents(), -250);
    EXPECT_EQ(sent[0].balance_cents(), left);
    EXPECT_EQ(got[0].iban(), from.iban);
    EXPECT_EQ(got[0].text(), "rent");
    EXPECT_EQ(got[1].text(), "opening deposit");
    EXPECT_EQ(got[1].iban(), "");
  }
  Balance balance;
  EXPECT_TRUE(absl::IsUnavailable(GetBalance(from.token, from.id, &balance, 1000)));
}

TEST_F(BankTest, ARequestThatIsRepeatedPaysOnce) {
  const Own &from = all_[0], &to = Other(from, /*same_shard=*/false);
  Payment first, again;
  ASSERT_TRUE(Pay(PaymentOf(from, to, 100), "a key", &first).ok());
  ASSERT_TRUE(Pay(PaymentOf(from, to, 100), "a key", &again).ok());
  EXPECT_EQ(first.SerializeAsString(), again.SerializeAsString());
  EXPECT_EQ(CentsOf(from), kDeposit - 100);
  // An account of the same customer in another shard does not make it another key.
  for (const PayRequest& other : {PaymentOf(from, to, 101), PaymentOf(Other(from, true), to, 100)}) {
    PayRequest request = other;
    request.set_token(from.token);
    EXPECT_TRUE(absl::IsAlreadyExists(Pay(request, "a key", &again)));
  }
  // A refused one keeps its key, and is tried again.
  EXPECT_TRUE(absl::IsFailedPrecondition(Pay(PaymentOf(from, to, kDeposit), "too much", &again)));
  ASSERT_TRUE(Pay(PaymentOf(to, from, 100)).ok());
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (absl::IsFailedPrecondition(Pay(PaymentOf(from, to, kDeposit), "too much", &again)) &&
         !deadline.Expired()) {
  }
  EXPECT_EQ(CentsOf(from, again.version()), 0);
}

TEST_F(PartedBankTest, AScheduledPaymentIsPaidAtItsTimeOnceOrTakenBack) {
  const Own &from = all_[0], &to = Other(from, /*same_shard=*/true);
  PayRequest soon = PaymentOf(from, to, 100), late = PaymentOf(from, to, 10);
  soon.set_at_ms(apps::NowMs() + 1000);
  late.set_at_ms(apps::NowMs() + 3'600'000);
  Payment paid, again, waits;
  ASSERT_TRUE(Pay(soon, "soon", &paid).ok());
  ASSERT_TRUE(Pay(late, "late", &waits).ok());
  EXPECT_EQ(waits.state(), Payment::SCHEDULED);
  EXPECT_EQ(waits.at_ms(), late.at_ms());
  app_->Kill("payments");
  EXPECT_TRUE(app_->Restart("payments").ok());
  AwaitArrival(from.token, paid.id());
  ASSERT_TRUE(Pay(soon, "soon", &again).ok());
  EXPECT_EQ(again.id(), paid.id());
  EXPECT_EQ(CentsOf(from, again.version()), kDeposit - 100);
  EXPECT_TRUE(absl::IsFailedPrecondition(Cancel(from.token, paid.id(), &again)));

  EXPECT_TRUE(absl::IsNotFound(Cancel(to.token, waits.id(), &again))) << "it is another's";
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(Cancel(from.token, waits.id(), &again).ok());
    EXPECT_EQ(again.state(), Payment::CANCELLED);
  }
  ASSERT_TRUE(Pay(late, "late", &again).ok());
  EXPECT_EQ(again.state(), Payment::CANCELLED) << "a repetition changes nothing";
  ASSERT_TRUE(Look(from.token, waits.id(), &again).ok());
  EXPECT_EQ(again.state(), Payment::CANCELLED);
  EXPECT_EQ(CentsOf(from), kDeposit - 100);

  PayRequest too_much = PaymentOf(to, from, kDeposit + 101);
  too_much.set_at_ms(1);  // that has passed
  ASSERT_TRUE(Pay(too_much, "", &waits).ok());
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (Look(to.token, waits.id(), &again).ok() && again.state() != Payment::REFUSED && !deadline.Expired())
    BetweenLooks();
  EXPECT_EQ(again.state(), Payment::REFUSED);
  for (const int64_t at : {int64_t{-1}, apps::NowMs() + 400 * int64_t{86'400'000}}) {
    too_much.set_at_ms(at);
    EXPECT_TRUE(absl::IsInvalidArgument(Pay(too_much))) << at;
  }
}

TEST_F(BankTest, ARefusedAccountOrCardLeavesNothingInTheBooks) {
  const Own& own = all_[0];
  const auto in_books = [&] {
    int64_t accounts = 0;
    for (uint32_t i = 0; i < kShards; ++i) {
      const auto books =
          internal::SqliteSession::Open({.path = Join(Folder(), "/", BooksOf({i, kShards}), ".db")});
      EXPECT_TRUE(books.ok()) << books.status();
      const absl::Status read = (*books)->Query("SELECT count(*) FROM accounts", {},
                                                [&](const SqlRow& row) { accounts += row.Integer(0); });
      EXPECT_TRUE(read.ok()) << read;
    }
    return accounts;
  };
  apps::TokenRequest request;
  request.set_token(own.token);
  CardApplication card;
  card.set_token(own.token), card.set_income_cents(100), card.set_limit_cents(100);
  Account account;
  Application application;
  absl::Status opened;
  for (int i = 0; i <= kMostAccounts && opened.ok(); ++i)
    opened = Send(&Bank::Stub::OpenAccount, request, &account);
  for (int i = 0; i <= kMostCards && application.state() != Application::DECLINED; ++i)
    ASSERT_TRUE(Send(&Bank::Stub::ApplyForCard, card, &application).ok());
  EXPECT_EQ(application.state(), Application::DECLINED);
  const int64_t before = in_books();
  EXPECT_TRUE(absl::IsResourceExhausted(opened)) << opened;
  EXPECT_TRUE(absl::IsResourceExhausted(Send(&Bank::Stub::OpenAccount, request, &account)));
  ASSERT_TRUE(Send(&Bank::Stub::ApplyForCard, card, &application).ok());
  EXPECT_EQ(application.state(), Application::DECLINED);
  EXPECT_EQ(in_books(), before);
  EXPECT_EQ(Audit(), 0);
}

TEST_F(BankTest, ACustomerHasSomeScheduledPaymentsAtOnce) {
  const Own &from = all_[0], &to = Other(from, /*same_shard=*/true);
  PayRequest late = PaymentOf(from, to, 1), others = PaymentOf(to, from, 1);
  late.set_at_ms(apps::NowMs() + 3'600'000), others.set_at_ms(late.at_ms());
  Payment one, again;
  ASSERT_TRUE(Pay(late, "one", &one).ok());
  for (uint64_t i = 1; i < kMostScheduled; ++i) ASSERT_TRUE(Pay(late).ok()) << i;
  EXPECT_TRUE(absl::IsResourceExhausted(Pay(late)));
  EXPECT_TRUE(Pay(late, "one", &again).ok()) << "a repetition takes no more";
  EXPECT_TRUE(Pay(others).ok());
  EXPECT_TRUE(Pay(PaymentOf(from, to, 1)).ok()) << "it is paid now";
  ASSERT_TRUE(Cancel(from.token, one.id(), &again).ok());
  EXPECT_TRUE(Pay(late).ok());
}

// Of callers that do not wait.
TEST_F(PartedBankTest, ACustomerHasSomeUnfinishedPaymentsAtOnce) {
  const Own &from = all_[0], &to = Other(from, /*same_shard=*/true);
  app_->Stall("posting");
  absl::Status status;
  Payment payment;
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (!absl::IsResourceExhausted(status) && !deadline.Expired())
    status = Pay(PaymentOf(from, to, 1), "", &payment, nullptr, std::chrono::milliseconds(50));
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  app_->GoOn("posting");
  while (!Pay(PaymentOf(from, to, 1)).ok() && !deadline.Expired()) std::this_thread::yield();
  EXPECT_FALSE(deadline.Expired());
}

// The shard is asked once the order is not SCHEDULED any more, so nobody takes back what it may book.
TEST_F(PartedBankTest, AScheduledPaymentThatHasBegunIsNotTakenBack) {
  const Own &from = all_[0], &to = Other(from, /*same_shard=*/true);
  PayRequest request = PaymentOf(from, to, 100);
  request.set_at_ms(apps::NowMs() + 4000);  // until the shard stands still
  Payment given, seen, taken_back;
  const absl::Status paid = Pay(request, "soon", &given);
  ASSERT_TRUE(paid.ok()) << paid;
  app_->Stall("posting");
  const Deadline deadline = Deadline::In(kMaxTestWait);
  do {
    ASSERT_TRUE(Look(from.token, given.id(), &seen).ok());
    BetweenLooks();
  } while (seen.state() == Payment::SCHEDULED && !deadline.Expired());
  EXPECT_EQ(seen.state(), Payment::PENDING);
  EXPECT_TRUE(absl::IsFailedPrecondition(Cancel(from.token, given.id(), &taken_back)));
  app_->GoOn("posting");
  AwaitArrival(from.token, given.id());
  EXPECT_EQ(CentsOf(from), kDeposit - 100);
}

TEST_F(BankTest, WhatIsWrongMovesNothing) {
  const Own &from = all_[0], &to = Other(from, /*same_shard=*/true);
  for (const int64_t cents :
       {int64_t{0}, int64_t{-1}, apps::kMostCents + 1, std::numeric_limits<int64_t>::min()})
    EXPECT_TRUE(absl::IsInvalidArgument(Pay(PaymentOf(from, to, cents)))) << cents;
  for (const std::string& text : {std::string(141, 'a'), std::string("a\nb"), std::string("a\0b", 3)}) {
    PayRequest request = PaymentOf(from, to, 1);
    request.set_text(text);
    EXPECT_TRUE(absl::IsInvalidArgument(Pay(request))) << text;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(Pay(PaymentOf(from, from, 1))));
  PayRequest elsewhere = PaymentOf(from, to, 1);
  elsewhere.set_iban("DE89 3704 0044 0532 0130 01");
  EXPECT_TRUE(absl::IsInvalidArgument(Pay(elsewhere)));
  elsewhere.set_iban("MT84MALT011000012345MTLCAST001S");  // no bank that is known
  EXPECT_TRUE(absl::IsNotFound(Pay(elsewhere)));
  EXPECT_TRUE(absl::IsFailedPrecondition(Pay(PaymentOf(from, to, kDeposit + 1))));
  PayRequest nobody = PaymentOf(from, to, 1);
  nobody.set_token("");
  EXPECT_TRUE(absl::IsUnauthenticated(Pay(nobody)));
  EXPECT_EQ(CentsOf(from), kDeposit);
  EXPECT_EQ(CentsOf(to), kDeposit);
}

TEST_F(BankTest, AnothersMoneyIsAsIfItWereNotThere) {
  const Own &ann = all_[0], &bob = Other(ann, /*same_shard=*/true);
  Payment payment;
  ASSERT_TRUE(Pay(PaymentOf(bob, ann, 1), "", &payment).ok());
  constexpr uint64_t kUnknown = 987654321;
  Balance balance;
  Movements page;
  // Another customer's, in-transit, and the bank's own of both shards.
  for (const uint64_t account : {bob.id, apps::kInTransit, BanksOwn(0), BanksOwn(1)}) {
    PayRequest theirs = PaymentOf(ann, bob, 1), unknown = theirs;
    theirs.set_from(account), unknown.set_from(kUnknown);
    theirs.set_iban(ann.iban), unknown.set_iban(ann.iban);
    const std::array<std::array<absl::Status, 2>, 3> pairs = {{
        {GetBalance(ann.token, account, &balance), GetBalance(ann.token, kUnknown, &balance)},
        {List(ann.token, account, 0, &page), List(ann.token, kUnknown, 0, &page)},
        {Pay(theirs), Pay(unknown)},
    }};
    for (const auto& [found, missing] : pairs) {
      EXPECT_TRUE(absl::IsNotFound(found)) << found;
      EXPECT_EQ(WordsOf(found, account), WordsOf(missing, kUnknown));
    }
  }
  EXPECT_EQ(page.movements_size(), 0);
  Payment seen;
  EXPECT_EQ(WordsOf(Look(ann.token, payment.id(), &seen), payment.id()),
            WordsOf(Look(ann.token, kUnknown, &seen), kUnknown));
  EXPECT_TRUE(absl::IsNotFound(Look(ann.token, payment.id(), &seen)));
  EXPECT_TRUE(Look(bob.token, payment.id(), &seen).ok());
  EXPECT_EQ(CentsOf(bob), kDeposit - 1);
}

TEST_F(PartedBankTest, AClosedUserIsFoundByNoOtherMethod) {
  const Own& own = all_[0];
  Channel channel(&client_, app_->AddressOf("user"));
  const apps::User::Stub user(&channel);
  apps::Credentials credentials;
  credentials.set_name(own.name), credentials.set_password(apps::PasswordOf(/*seed=*/1, /*user=*/0));
  apps::Ids id;
  id.add_ids(own.owner);
  apps::Names name;
  name.add_names(own.name);
  for (const bool closed : {false, true}) {
    Context ctx(kMaxTestWait);
    apps::People by_id, by_name;
    ASSERT_TRUE(user.ById(ctx, id, &by_id).ok());
    ASSERT_TRUE(user.ByName(ctx, name, &by_name).ok());
    EXPECT_EQ(by_id.people_size(), closed ? 0 : 1);
    EXPECT_EQ(by_name.people_size(), closed ? 0 : 1);
    apps::UserId gone;
    if (!closed) {
      ASSERT_TRUE(user.Close(ctx, credentials, &gone).ok());
    }
  }
}

// A shard's refusal stands: an attempt of before that is late books nothing that its payment calls REFUSED.
TEST_F(PartedBankTest, ALateAttemptDoesNotTurnARefusalRound) {
  const Own &from = all_[0], &to = Other(from, /*same_shard=*/true);
  Channel posting(&client_, app_->AddressOf("posting", static_cast<int>(from.shard())));
  const Posting::Stub shard(&posting);
  TransferOrder order;
  order.set_owner(from.owner);
  order.set_request("late"), order.set_text("rent");
  order.set_from(from.id), order.set_to(to.id), order.set_cents(kDeposit + 1);
  const auto transfer = [&](Entry* entry) {
    Context ctx(kMaxTestWait);
    return shard.Transfer(ctx, order, entry);
  };
  Entry entry;
  EXPECT_TRUE(absl::IsFailedPrecondition(transfer(&entry)));
  ASSERT_TRUE(Pay(PaymentOf(to, from, 1)).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(transfer(&entry)));
  EXPECT_EQ(CentsOf(from), kDeposit + 1);
  order.set_request("late, too");
  uint64_t unknown = 987654321;
  while (apps::PartOf(unknown, kShards) != from.shard()) ++unknown;
  order.set_from(unknown);
  EXPECT_TRUE(absl::IsNotFound(transfer(&entry)));
  OwnedAccount opened;
  opened.set_account(order.from()), opened.set_owner(from.owner), opened.set_limit(order.cents());
  apps::Nothing nothing;
  Context ctx(kMaxTestWait);
  ASSERT_TRUE(shard.Open(ctx, opened, &nothing).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(transfer(&entry))) << "it was refused for ever";
  order.set_from(from.id);
  order.set_request("in time");
  EXPECT_TRUE(transfer(&entry).ok());
  EXPECT_EQ(CentsOf(from), 0);
}

TEST_F(PartedBankTest, AnOrderIsFinishedWithoutItsCaller) {
  const Own &from = all_[0], &to = Other(from, /*same_shard=*/true);
  app_->Kill("posting");
  constexpr Nanos kPatience = std::chrono::milliseconds(500);
  Payment lost;
  const absl::Status failed = Pay(PaymentOf(from, to, 100), "", &lost, front_.get(), kPatience);
  EXPECT_TRUE(absl::IsUnavailable(failed) || absl::IsDeadlineExceeded(failed)) << failed;
  EXPECT_TRUE(app_->Restart("posting").ok());
  const Deadline deadline = Deadline::In(kMaxTestWait);
  Balance balance;
  while (balance.cents() != kDeposit + 100 && !deadline.Expired())
    GetBalance(to.token, to.id, &balance).IgnoreError();
  EXPECT_EQ(balance.cents(), kDeposit + 100);
}

// Customers pay at random while services are killed, and repeat what has no answer.
class PaymentFaultTest : public Parted<BankFaultTest> {
 protected:
  struct Paid {
    size_t from, to;
    int64_t cents;
    uint64_t id;
  };

  void PayUntil(int customer, uint64_t seed, std::vector<Paid>* paid) {
    const std::unique_ptr<Channel> channel = Connect();
    Rng rng(seed + static_cast<uint64_t>(customer));
    for (int i = 0; !stop_.load(); ++i) {
      const size_t from = rng.Below(all_.size()), to = (from + 1 + rng.Below(all_.size() - 1)) % all_.size();
      const auto cents = static_cast<int64_t>(1 + rng.Below(20));
      const std::string key = Join("payment ", customer, " ", i);
      Payment payment;
      const absl::Status status = Answered([&] {
        return Pay(PaymentOf(all_[from], all_[to], cents), key, &payment, channel.get(), kPatience);
      });
      ASSERT_TRUE(status.ok() || absl::IsFailedPrecondition(status)) << status;
      if (status.ok()) paid->push_back({from, to, cents, payment.id()});
    }
  }
};

TEST_F(PaymentFaultTest, PaymentsOutliveTheServicesThatBookThem) {
  const uint64_t seed = TestSeed();
  std::array<std::vector<Paid>, kCustomers> paid;
  ActWhileKilled({"posting", "payments", "posting", "access-control", "activity", "accounts"},
                 [&](int i) { PayUntil(i, seed, &paid[static_cast<size_t>(i)]); });

  std::vector<int64_t> expected(all_.size(), kDeposit);
  for (const std::vector<Paid>& by : paid) {
    for (const Paid& one : by) {
      expected[one.from] -= one.cents;
      expected[one.to] += one.cents;
      ASSERT_NO_FATAL_FAILURE(AwaitArrival(all_[one.from].token, one.id));
    }
  }
  for (size_t i = 0; i < all_.size(); ++i) {
    EXPECT_EQ(CentsOf(all_[i]), expected[i]) << i;
    const std::vector<Movement> movements = AwaitMovements(all_[i]);
    int64_t balance = 0;
    for (size_t m = movements.size(); m-- > 0;) {
      balance += movements[m].cents();
      EXPECT_EQ(movements[m].version(), movements.size() - m);
      EXPECT_EQ(movements[m].balance_cents(), balance);
    }
    EXPECT_EQ(balance, expected[i]);
  }
  EXPECT_EQ(Audit(), 0);
}

TEST_F(BankTest, TheAuditNamesTheRowThatIsWrong) {
  EXPECT_EQ(Audit(), 0);
  const Own& own = all_[0];
  const auto books = internal::SqliteSession::Open(
      {.path = Join(Folder(), "/", BooksOf({static_cast<uint32_t>(own.shard()), kShards}), ".db")});
  ASSERT_TRUE(books.ok()) << books.status();
  std::string text;
  const auto alter = [&](const char* sql) { EXPECT_TRUE((*books)->Execute(sql, {own.id}).ok()) << sql; };
  alter("UPDATE accounts SET balance = balance + 1 WHERE id = ?1");
  EXPECT_EQ(Audit(&text), 99);
  EXPECT_THAT(text, HasSubstr(std::to_string(own.id)));
  alter("UPDATE accounts SET balance = balance - 1, owner = owner + 1 WHERE id = ?1");
  EXPECT_EQ(Audit(&text), 99);
  EXPECT_THAT(text, HasSubstr(std::to_string(own.id)));
  alter("UPDATE accounts SET owner = owner - 1, lowest = lowest - 1 WHERE id = ?1");
  EXPECT_EQ(Audit(&text), 99) << "it may go further below 0 than is listed";
  EXPECT_THAT(text, HasSubstr(std::to_string(own.id)));
  alter("UPDATE accounts SET lowest = lowest + 1 WHERE id = ?1");
  EXPECT_EQ(Audit(), 0);

  ASSERT_TRUE(Pay(PaymentOf(own, Other(own, /*same_shard=*/true), 1)).ok());
  EXPECT_EQ(Audit(&text), 0) << text;
  const auto decisions = internal::SqliteSession::Open({.path = Join(Folder(), "/access-control.db")});
  ASSERT_TRUE(decisions.ok()) << decisions.status();
  EXPECT_TRUE((*decisions)->Execute("UPDATE links SET record = x'00' WHERE number = 1", {}).ok());
  EXPECT_EQ(Audit(&text), 99);
  EXPECT_THAT(text, HasSubstr("link 1 "));
  EXPECT_TRUE((*decisions)->Execute("DELETE FROM links", {}).ok());
  EXPECT_EQ(Audit(&text), 99);
  EXPECT_THAT(text, HasSubstr("nobody allowed"));
}

}  // namespace
}  // namespace curtail::bank
