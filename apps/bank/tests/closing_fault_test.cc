// SPDX-License-Identifier: Apache-2.0
//
// How customers of the bank leave it, whatever dies.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "apps/bank/tests/closing_testing.h"
#include "curtail/base/mutex.h"
#include "curtail/base/rng.h"

namespace curtail::bank {
namespace {

TEST_F(PartedClosingTest, ALateMessageOfAnAttemptThatHasEndedChangesNothing) {
  const Own own = New("eve");
  Holdings held;
  apps::Nothing nothing;
  Account account;
  const auto leave = [&](uint64_t n) {
    return Ask<Accounts::Stub>("accounts", &Accounts::Stub::Leave, OrderOf(own, n), &held);
  };
  const auto stay = [&](uint64_t n) {
    return Ask<Accounts::Stub>("accounts", &Accounts::Stub::Stay, OrderOf(own, n), &held);
  };
  const auto close = [&](uint64_t n) {
    return Ask<Posting::Stub>("posting", &Posting::Stub::Close, BooksOrderOf(own, n), &nothing,
                              int(own.shard()));
  };
  const auto reopen = [&](uint64_t n) {
    return Ask<Posting::Stub>("posting", &Posting::Stub::Reopen, BooksOrderOf(own, n), &nothing,
                              int(own.shard()));
  };
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(leave(3).ok());
    EXPECT_TRUE(close(3).ok());
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(Open(own, &account)));
  EXPECT_TRUE(absl::IsFailedPrecondition(Pay(PaymentOf(own, all_[0], 1))));
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(stay(3).ok());
    EXPECT_TRUE(reopen(3).ok());
  }
  for (const uint64_t late : {3, 2}) {
    EXPECT_TRUE(absl::IsAborted(leave(late)));
    EXPECT_TRUE(absl::IsAborted(close(late)));
  }
  EXPECT_TRUE(Open(own, &account).ok());
  ExpectOpen(own);
  EXPECT_TRUE(leave(4).ok());
  EXPECT_TRUE(close(4).ok());
  EXPECT_TRUE(stay(3).ok());
  EXPECT_TRUE(reopen(3).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Open(own, &account))) << "attempt 4 goes on";
  EXPECT_TRUE(absl::IsFailedPrecondition(Pay(PaymentOf(own, all_[0], 1))));
  EXPECT_TRUE(stay(5).ok()) << "before its attempt";
  EXPECT_TRUE(reopen(5).ok());
  EXPECT_TRUE(absl::IsAborted(leave(5)));
  EXPECT_TRUE(absl::IsAborted(close(5)));
  ExpectOpen(own);
}

TEST_F(PartedClosingTest, AClosingEndsWithoutItsCallerFromAnyStep) {
  const Own begun = New("begun"), before = New("before"), decided = New("decided");
  StartWith(begun, kLeaving);
  AwaitClosed(begun);
  TakeLeave(before);
  StartWith(before, kLeaving);
  AwaitClosed(before);
  TakeLeave(decided);
  StartWith(decided, kLeft);
  AwaitClosed(decided);
}

TEST_F(PartedClosingTest, ARefusalEndsWithoutItsCallerFromAnyStep) {
  // Money has come since Close() looked.
  Own paid = New("paid"), empty = paid;
  OpenFor(&empty);
  ASSERT_TRUE(Pay(PaymentOf(all_[0], paid, 10)).ok());
  AwaitCents(paid, 10);
  StartWith(paid, kLeaving);
  const Own taken = New("taken");
  TakeLeave(taken);
  StartWith(taken, kStaying);
  for (const Own& own : {paid, empty, taken}) {
    Account account;
    AwaitState(own, kStays);
    EXPECT_TRUE(Open(own, &account).ok());
    ExpectOpen(own);
  }
  ASSERT_TRUE(Pay(PaymentOf(paid, all_[0], 10)).ok());
  absl::Status closed;
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (absl::IsFailedPrecondition(closed = Close(paid)) && !deadline.Expired()) BetweenLooks();
  ASSERT_TRUE(closed.ok()) << "another attempt: " << closed;
  AwaitClosed(paid);
}

// A deposit is paid back and its money is held up, while its owner leaves and stays after all, for long.
TEST_F(PartedClosingTest, AnAttemptToLeaveLosesNoMoneyThatIsOnItsWay) {
  const Own own = New("saver");
  ASSERT_TRUE(Pay(PaymentOf(all_[0], own, 300)).ok());
  AwaitCents(own, 300);
  Deposit deposit;
  const auto pay_back = [&] {
    PaymentRequest end;
    end.set_token(own.token), end.set_id(deposit.id());
    ASSERT_TRUE(Answered([&] { return Send(&Bank::Stub::BreakDeposit, end, &deposit); }).ok());
    ASSERT_EQ(deposit.state(), Deposit::PAID_BACK);
  };
  DepositRequest term;
  term.set_token(own.token), term.set_from(own.id), term.set_cents(300), term.set_days(30);
  ASSERT_TRUE(Send(&Bank::Stub::OpenDeposit, term, &deposit).ok());
  while (apps::PartOf(deposit.id(), kShards) == own.shard()) {
    pay_back();
    AwaitCents(own, 300);
    ASSERT_TRUE(Send(&Bank::Stub::OpenDeposit, term, &deposit).ok());
  }
  const auto books = internal::SqliteSession::Open(
      {.path = Join(Folder(), "/", BooksOf({static_cast<uint32_t>(own.shard()), kShards}), ".db")});
  ASSERT_TRUE(books.ok()) << books.status();
  const auto run = [&](const char* sql) {
    const absl::Status status = (*books)->Execute(sql);
    ASSERT_TRUE(status.ok()) << status;
  };
  run("CREATE TRIGGER no_money BEFORE INSERT ON ledger_requests WHEN NEW.name LIKE 'transfer %'"
      " BEGIN SELECT RAISE(ABORT, 'held up'); END");
  run("CREATE TRIGGER no_return BEFORE INSERT ON leaving WHEN NEW.away = 0"
      " BEGIN SELECT RAISE(ABORT, 'held up'); END");
  pay_back();
  StartWith(own, kLeaving);
  AwaitState(own, kStaying);
  run("DROP TRIGGER no_money");
  AwaitCents(own, 300);
  run("DROP TRIGGER no_return");
  AwaitState(own, kStays);
  ExpectOpen(own);
}

TEST_F(PartedClosingTest, ADecidedClosingEndsTheSessionsAfterAKill) {
  const Own own = New("eve");
  app_->Stall("user");
  apps::UserId id;
  id.set_user(own.owner);
  apps::Nothing nothing;
  const absl::Status lost = Ask<CustomerInfo::Stub>("customer-info", &CustomerInfo::Stub::Close, id, &nothing,
                                                    0, std::chrono::milliseconds(500));
  EXPECT_TRUE(absl::IsUnavailable(lost) || absl::IsDeadlineExceeded(lost)) << lost;
  app_->Kill("customer-info");
  app_->GoOn("user");
  EXPECT_TRUE(app_->Restart("customer-info").ok());
  AwaitClosed(own);
}

// Two customers pay others, who leave meanwhile, and come back by other names.
TEST_F(PartedClosingTest, NoMoneyIsLostToCustomersWhoLeaveWhileServicesAreKilled) {
  const uint64_t seed = TestSeed();
  Mutex mu;
  std::vector<Own> leavers(2, all_[0]);
  std::atomic<int> closed{0};
  ActWhileKilled(
      {"customer-info", "posting", "accounts", "customer-info", "user", "deposits", "posting",
       "customer-info"},
      [&](int actor) {
        const std::unique_ptr<Channel> channel = Connect();
        Rng rng(seed + static_cast<uint64_t>(actor));
        const Own& rich = all_[4 * static_cast<size_t>(actor)];
        for (int i = 0; !stop_.load(); ++i) {
          if (actor >= 2) {
            const Own leaver = [&] {
              const MutexLock lock(mu);
              return leavers[rng.Below(leavers.size())];
            }();
            Payment payment;
            const std::string key = Join("pay ", i);
            const absl::Status status = Answered(
                [&] { return Pay(PaymentOf(rich, leaver, 1), key, &payment, channel.get(), kPatience); });
            ASSERT_TRUE(status.ok() || absl::IsFailedPrecondition(status)) << status;
            continue;
          }
          const Own own = New(Join("leaver_", actor, "_", i));
          {
            const MutexLock lock(mu);
            leavers[static_cast<size_t>(actor)] = own;
          }
          absl::Status status;
          for (int k = 0; !stop_.load(); ++k) {
            status = Answered([&] { return Close(own, channel.get(), kPatience); });
            if (status.ok() || absl::IsUnauthenticated(status)) break;
            ASSERT_TRUE(absl::IsFailedPrecondition(status)) << status;
            Balance balance;
            status = Answered([&] { return GetBalance(own.token, own.id, &balance); });
            ASSERT_TRUE(status.ok()) << status;
            if (balance.cents() == 0) continue;
            Payment payment;
            const std::string key = Join("back ", k);
            status = Answered([&] {
              return Pay(PaymentOf(own, rich, balance.cents()), key, &payment, channel.get(), kPatience);
            });
            ASSERT_TRUE(status.ok()) << status;
          }
          if (status.ok() || absl::IsUnauthenticated(status)) closed.fetch_add(1);
        }
      });
  EXPECT_GT(closed.load(), 0);
  EXPECT_EQ(Audit(), 0);
}

}  // namespace
}  // namespace curtail::bank
