// SPDX-License-Identifier: Apache-2.0
//
// How customers of the bank leave it: all at 0, once, whatever dies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "apps/bank/applicant.h"
#include "apps/bank/bank_testing.h"
#include "apps/bank/books.h"
#include "apps/bank/leaving.h"
#include "curtail/base/mutex.h"
#include "curtail/base/rng.h"
#include "curtail/store/sql/sqlite.h"

namespace curtail::bank {
namespace {

using testing::HasSubstr;

class ClosingTest : public BankFaultTest {
 protected:
  static constexpr char kPassword[] = "a password";

  // A new customer with an account, which is empty.
  Own New(const std::string& name) {
    apps::Credentials credentials;
    credentials.set_name(name), credentials.set_password(kPassword);
    apps::Session session;
    absl::Status status =
        Answered([&] { return Send(&Bank::Stub::Register, credentials, &session, "register " + name); });
    EXPECT_TRUE(status.ok()) << status;
    Own own{.owner = session.user(), .name = name, .token = session.token()};
    OpenFor(&own);
    return own;
  }
  void OpenFor(Own* own) {
    Account account;
    const absl::Status status = Open(*own, &account);
    EXPECT_TRUE(status.ok()) << status;
    own->id = account.id(), own->iban = account.iban();
  }
  absl::Status Open(const Own& own, Account* account) {
    return Answered([&] { return Send(&Bank::Stub::OpenAccount, TokenOf(own), account); });
  }
  static apps::TokenRequest TokenOf(const Own& own) {
    apps::TokenRequest request;
    request.set_token(own.token);
    return request;
  }
  absl::Status Close(const Own& own, Channel* by = nullptr, Nanos patience = kMaxTestWait) const {
    apps::Changed changed;
    return Send(&Bank::Stub::CloseCustomer, TokenOf(own), &changed, {}, by, patience);
  }
  absl::Status Know(const Own& own, Customer* customer) const {
    return Send(&Bank::Stub::GetCustomer, TokenOf(own), customer);
  }
  absl::Status Login(const Own& own) const {
    apps::Credentials credentials;
    credentials.set_name(own.name), credentials.set_password(kPassword);
    apps::Session session;
    return Send(&Bank::Stub::Login, credentials, &session);
  }
  Loan Apply(const Own& own) const {
    LoanApplication request;
    request.set_token(own.token), request.set_product("personal");
    request.set_cents(100'000), request.set_months(6);
    *request.mutable_features() = Applicant(/*good=*/true);
    Loan loan;
    EXPECT_TRUE(Send(&Bank::Stub::ApplyForLoan, request, &loan).ok());
    EXPECT_EQ(loan.state(), Loan::OFFERED);
    return loan;
  }
  void AwaitClosed(const Own& own) const {
    const Deadline deadline = Deadline::In(kMaxTestWait);
    Customer customer;
    while (!absl::IsUnauthenticated(Know(own, &customer)) && !deadline.Expired()) std::this_thread::yield();
    EXPECT_TRUE(absl::IsUnauthenticated(Know(own, &customer)));
    EXPECT_TRUE(absl::IsUnauthenticated(Login(own)));
    EXPECT_EQ(Audit(), 0);
  }
  // Money gets there, and back.
  void ExpectOpen(const Own& own) {
    const Own& payer = all_[0];
    const int64_t before = CentsOf(own);
    Payment payment;
    const absl::Status paid = Pay(PaymentOf(payer, own, 5), "", &payment);
    ASSERT_TRUE(paid.ok()) << paid;
    AwaitArrival(payer.token, payment.id());
    EXPECT_EQ(CentsOf(own), before + 5);
    EXPECT_TRUE(Pay(PaymentOf(own, payer, 5)).ok());
    EXPECT_TRUE(Login(own).ok());
    EXPECT_EQ(Audit(), 0);
  }
  template <class Stub, class Call, class Request, class Reply>
  absl::Status Ask(const std::string& service, Call call, const Request& request, Reply* reply,
                   int instance = 0, Nanos patience = kMaxTestWait) {
    const std::unique_ptr<Channel> channel =
        std::make_unique<Channel>(&client_, app_->AddressOf(service, instance));
    Context ctx(patience);
    const Stub stub(channel.get());
    return (stub.*call)(ctx, request, reply, nullptr);
  }
  static LeaveOrder OrderOf(const Own& own, uint64_t attempt) {
    LeaveOrder order;
    order.set_customer(own.owner), order.set_attempt(attempt);
    return order;
  }
  static BooksOrder BooksOrderOf(const Own& own, uint64_t attempt) {
    BooksOrder order;
    order.set_attempt(attempt);
    Holdings::One& one = *order.add_accounts();
    one.set_account(own.id), one.set_owner(own.owner), one.set_name("account");
    return order;
  }
  // The first attempt of step C1, as `customer-info` makes it.
  void TakeLeave(const Own& own) {
    Holdings held;
    apps::Nothing nothing;
    ASSERT_TRUE(Ask<Accounts::Stub>("accounts", &Accounts::Stub::Leave, OrderOf(own, 1), &held).ok());
    EXPECT_EQ(held.holdings_size(), 1);
    ASSERT_TRUE(
        Ask<CreditCards::Stub>("credit-card", &CreditCards::Stub::Leave, OrderOf(own, 1), &held).ok());
    ASSERT_TRUE(
        Ask<LoanRequests::Stub>("loan-request", &LoanRequests::Stub::Leave, OrderOf(own, 1), &held).ok());
    ASSERT_TRUE(Ask<Deposits::Stub>("deposits", &Deposits::Stub::Leave, OrderOf(own, 1), &held).ok());
    ASSERT_TRUE(Ask<WealthManagement::Stub>("wealth-management", &WealthManagement::Stub::Leave,
                                            OrderOf(own, 1), &held)
                    .ok());
    const absl::Status closed = Ask<Posting::Stub>("posting", &Posting::Stub::Close, BooksOrderOf(own, 1),
                                                   &nothing, int(own.shard()));
    ASSERT_TRUE(closed.ok()) << closed;
  }
  // Has `customer-info` find a closing in this state when it starts, as if it had been killed there.
  void StartWith(const Own& own, Closing state) {
    app_->Kill("customer-info");
    {
      const auto kept = internal::SqliteSession::Open({.path = Join(Folder(), "/customer-info.db")});
      ASSERT_TRUE(kept.ok()) << kept.status();
      const absl::Status written = (*kept)->Execute(
          "INSERT INTO closings(id, owner, name, content, round, state, open, due_ms, bytes)"
          " VALUES (?1, ?1, ?2, '', 0, ?3, 1, 0, x'')",
          {own.owner, Join("id ", own.owner), state});
      ASSERT_TRUE(written.ok()) << written;
    }
    ASSERT_TRUE(app_->Restart("customer-info").ok());
  }
};

TEST_F(ClosingTest, LeavesOnlyWithNothingAnywhere) {
  const Own& payer = all_[0];
  Own own = New("eve"), second = own;
  OpenFor(&second);
  const auto refused = [&](const std::string& why) {
    const absl::Status status = Close(own);
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
    ExpectOpen(own);
  };
  ASSERT_TRUE(Pay(PaymentOf(payer, own, 300)).ok());
  AwaitCents(own, 300);
  refused(Join("account ", own.id, " has 300 cents"));

  DepositRequest term;
  term.set_token(own.token), term.set_from(own.id), term.set_cents(300), term.set_days(30);
  Deposit deposit;
  ASSERT_TRUE(Send(&Bank::Stub::OpenDeposit, term, &deposit).ok());
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (!std::string(Close(own).message()).starts_with("deposit ") && !deadline.Expired()) {
  }
  refused(Join("deposit ", deposit.id(), " has 300 cents"));
  PaymentRequest end;
  end.set_token(own.token), end.set_id(deposit.id());
  ASSERT_TRUE(Answered([&] { return Send(&Bank::Stub::BreakDeposit, end, &deposit); }).ok());
  AwaitCents(own, 300);

  CardApplication wish;
  wish.set_token(own.token), wish.set_income_cents(100), wish.set_limit_cents(300);
  Application application;
  ASSERT_TRUE(Send(&Bank::Stub::ApplyForCard, wish, &application).ok());
  ASSERT_TRUE(application.has_card()) << application.ShortDebugString();
  PurchaseRequest purchase;
  purchase.set_token(own.token), purchase.set_card(application.card().id());
  purchase.set_iban(payer.iban), purchase.set_cents(30);
  Payment payment;
  ASSERT_TRUE(Send(&Bank::Stub::Purchase, purchase, &payment).ok());
  ASSERT_TRUE(Pay(PaymentOf(own, payer, 270)).ok());
  AwaitCents(own, 30);
  PayCardRequest debt;
  debt.set_token(own.token), debt.set_card(purchase.card()), debt.set_from(own.id), debt.set_cents(30);
  ASSERT_TRUE(Pay(PaymentOf(own, second, 30)).ok());
  AwaitCents(second, 30);
  ASSERT_TRUE(Pay(PaymentOf(second, payer, 30)).ok());
  refused(Join("card ", purchase.card(), " has -30 cents"));
  ASSERT_TRUE(Pay(PaymentOf(payer, own, 30)).ok());
  AwaitCents(own, 30);
  ASSERT_TRUE(Send(&Bank::Stub::PayCard, debt, &payment).ok());

  // The last payments must have arrived.
  absl::Status closed;
  while (absl::IsFailedPrecondition(closed = Close(own)) && !deadline.Expired()) {
  }
  ASSERT_TRUE(closed.ok()) << closed;
  Customer customer;
  EXPECT_TRUE(absl::IsUnauthenticated(Know(own, &customer))) << "at once, at this front end";
  EXPECT_TRUE(absl::IsUnauthenticated(Close(own)));
  AwaitClosed(own);
  apps::Credentials taken;
  taken.set_name("eve"), taken.set_password(kPassword);
  apps::Session session;
  EXPECT_TRUE(absl::IsAlreadyExists(Send(&Bank::Stub::Register, taken, &session)));
  for (const bool same_shard : {true, false}) {
    const Own& other = Other(own, same_shard);
    const int64_t before = CentsOf(other);
    const absl::Status paid = Pay(PaymentOf(other, own, 7), "", &payment);
    EXPECT_EQ(absl::IsFailedPrecondition(paid), same_shard) << paid;
    const Deadline soon = Deadline::In(kMaxTestWait);
    while (!same_shard && payment.state() != Payment::RETURNED && !soon.Expired())
      ASSERT_TRUE(Look(other.token, payment.id(), &payment).ok());
    AwaitCents(other, before);
  }
  EXPECT_EQ(Audit(), 0);
}

TEST_F(ClosingTest, ALoanKeepsACustomerUntilItIsRepaid) {
  const Own &payer = all_[0], own = New("eve");
  const Loan offer = Apply(own);
  LoanAcceptance acceptance;
  acceptance.set_token(own.token), acceptance.set_id(offer.id()), acceptance.set_account(own.id);
  Loan loan;
  ASSERT_TRUE(Send(&Bank::Stub::AcceptLoan, acceptance, &loan).ok());
  const int64_t interest = loan.quote().interest_cents();
  ASSERT_TRUE(Pay(PaymentOf(payer, own, interest)).ok());
  AwaitCents(own, loan.quote().cents() + interest);
  LoanRepayment due;
  due.set_token(own.token), due.set_loan(loan.id()), due.set_from(own.id);
  Payment payment;
  for (uint32_t number = 1; number <= loan.quote().months(); ++number) {
    due.set_number(number);
    if (number == loan.quote().months()) {
      EXPECT_TRUE(absl::IsFailedPrecondition(Close(own)));
    }
    ASSERT_TRUE(Send(&Bank::Stub::RepayLoan, due, &payment).ok()) << number;
  }
  EXPECT_EQ(CentsOf(own), 0);
  const Deadline deadline = Deadline::In(kMaxTestWait);
  absl::Status closed;  // the last instalment may be on its way
  while (absl::IsFailedPrecondition(closed = Close(own)) && !deadline.Expired()) {
  }
  ASSERT_TRUE(closed.ok()) << closed;
  AwaitClosed(own);
}

TEST_F(ClosingTest, UnitsOfStocksKeepACustomerUntilTheyAreSold) {
  const Own &payer = all_[0], own = New("eve");
  ASSERT_TRUE(Pay(PaymentOf(payer, own, 5'000)).ok());
  AwaitCents(own, 5'000);
  TradeRequest request;
  request.set_token(own.token), request.set_symbol("MSFT"), request.set_account(own.id), request.set_units(3);
  Trade trade;
  absl::Status traded = Send(&Bank::Stub::BuyUnits, request, &trade);
  ASSERT_TRUE(traded.ok()) << traded;
  ASSERT_TRUE(Pay(PaymentOf(own, payer, CentsOf(own))).ok());
  const absl::Status refused = Close(own);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("3 units of MSFT"));
  Holdings held;
  const auto leave = [&] {
    return Ask<WealthManagement::Stub>("wealth-management", &WealthManagement::Stub::Leave, OrderOf(own, 1),
                                       &held);
  };
  EXPECT_TRUE(absl::IsFailedPrecondition(leave()));
  traded = Send(&Bank::Stub::SellUnits, request, &trade);
  ASSERT_TRUE(traded.ok()) << "the refusal has changed nothing: " << traded;
  EXPECT_TRUE(leave().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Send(&Bank::Stub::BuyUnits, request, &trade))) << "it leaves";
  EXPECT_TRUE(
      Ask<WealthManagement::Stub>("wealth-management", &WealthManagement::Stub::Stay, OrderOf(own, 1), &held)
          .ok());
  request.set_units(1);
  EXPECT_TRUE(Send(&Bank::Stub::BuyUnits, request, &trade).ok());
  EXPECT_TRUE(Send(&Bank::Stub::SellUnits, request, &trade).ok());
  if (const int64_t rest = CentsOf(own); rest > 0) {
    ASSERT_TRUE(Pay(PaymentOf(own, payer, rest)).ok());
  }
  const Deadline deadline = Deadline::In(kMaxTestWait);
  absl::Status closed;
  // The own attempt 1 of this test was taken back, so the first of customer-info is refused, too.
  while ((absl::IsFailedPrecondition(closed = Close(own)) || absl::IsAborted(closed)) &&
         !deadline.Expired()) {
  }
  EXPECT_TRUE(closed.ok()) << closed;
}

// An attempt that is refused, as the customer leaves, may be slow to write that; the trigger plays it. An attempt after the customer
// has stayed must not move the money.
TEST_F(ClosingTest, WhatWasRefusedWhileItLeavesIsRefusedThoughItStays) {
  const Own own = New("eve");
  ASSERT_TRUE(Pay(PaymentOf(all_[0], own, 2'000)).ok());
  AwaitCents(own, 2'000);
  const Loan offer = Apply(own);
  struct Step {
    std::string service, table;  // that writes the refusal as the state 2
    std::function<absl::Status(uint64_t attempt, bool leaves)> leave;
    std::function<absl::Status()> act;
    bool again;  // a repetition of a refused one tries again
  };
  Holdings held;
  const auto leave = [&]<class Stub>(const std::string& service, Stub*) {
    return [&, service](uint64_t attempt, bool leaves) {
      return Ask<Stub>(service, leaves ? &Stub::Leave : &Stub::Stay, OrderOf(own, attempt), &held);
    };
  };
  const auto open_deposit = [&] {
    DepositRequest request;
    request.set_token(own.token), request.set_from(own.id), request.set_cents(50), request.set_days(30);
    Deposit deposit;
    return Send(&Bank::Stub::OpenDeposit, request, &deposit, "deposit");
  };
  const auto accept_loan = [&] {
    LoanAcceptance request;
    request.set_token(own.token), request.set_id(offer.id()), request.set_account(own.id);
    Loan loan;
    return Send(&Bank::Stub::AcceptLoan, request, &loan);
  };
  const auto buy = [&] {
    TradeRequest request;
    request.set_token(own.token), request.set_symbol("AAPL");
    request.set_account(own.id), request.set_units(1);
    Trade trade;
    return Send(&Bank::Stub::BuyUnits, request, &trade, "trade");
  };
  for (const Step& step :
       {Step{"deposits", "payments", leave("deposits", static_cast<Deposits::Stub*>(nullptr)), open_deposit,
             true},
        Step{"loan-request", "acceptances", leave("loan-request", static_cast<LoanRequests::Stub*>(nullptr)),
             accept_loan, true},
        Step{"wealth-management", "payments",
             leave("wealth-management", static_cast<WealthManagement::Stub*>(nullptr)), buy, false}}) {
    const auto kept = internal::SqliteSession::Open({.path = Join(Folder(), "/", step.service, ".db")});
    ASSERT_TRUE(kept.ok()) << kept.status();
    ASSERT_TRUE((*kept)
                    ->Execute(Join("CREATE TRIGGER late BEFORE UPDATE ON ", step.table,
                                   " WHEN NEW.state = 2 BEGIN SELECT RAISE(IGNORE); END"),
                              {})
                    .ok());
    const int64_t before = CentsOf(own);
    ASSERT_TRUE(step.leave(1, true).ok());
    const absl::Status refused = step.act();
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << step.service << refused;
    ASSERT_TRUE(step.leave(1, false).ok());
    EXPECT_EQ(step.act(), refused) << step.service << " has this answer, once it is written";
    EXPECT_EQ(CentsOf(own), before) << step.service;
    ASSERT_TRUE((*kept)->Execute("DROP TRIGGER late", {}).ok());
    EXPECT_EQ(step.act(), refused) << step.service;
    EXPECT_EQ(CentsOf(own), before) << step.service;
    EXPECT_EQ(step.act().ok(), step.again) << step.service;
  }
  EXPECT_EQ(Audit(), 0);
}

TEST_F(ClosingTest, OpensNothingWhileItLeaves) {
  const Own own = New("eve");
  ASSERT_TRUE(Pay(PaymentOf(all_[0], own, 50)).ok());
  AwaitCents(own, 50);
  const Loan offer = Apply(own);
  Holdings held;
  for (const bool leaves : {true, false}) {
    ASSERT_TRUE(
        (leaves ? Ask<CreditCards::Stub>("credit-card", &CreditCards::Stub::Leave, OrderOf(own, 1), &held)
                : Ask<CreditCards::Stub>("credit-card", &CreditCards::Stub::Stay, OrderOf(own, 1), &held))
            .ok());
    ASSERT_TRUE((leaves ? Ask<Deposits::Stub>("deposits", &Deposits::Stub::Leave, OrderOf(own, 1), &held)
                        : Ask<Deposits::Stub>("deposits", &Deposits::Stub::Stay, OrderOf(own, 1), &held))
                    .ok());
    ASSERT_TRUE(
        (leaves ? Ask<LoanRequests::Stub>("loan-request", &LoanRequests::Stub::Leave, OrderOf(own, 1), &held)
                : Ask<LoanRequests::Stub>("loan-request", &LoanRequests::Stub::Stay, OrderOf(own, 1), &held))
            .ok());
    CardApplication wish;
    wish.set_token(own.token), wish.set_income_cents(100), wish.set_limit_cents(300);
    Application application;
    ASSERT_TRUE(Send(&Bank::Stub::ApplyForCard, wish, &application).ok());
    EXPECT_EQ(application.state(), leaves ? Application::DECLINED : Application::ISSUED);
    DepositRequest term;
    term.set_token(own.token), term.set_from(own.id), term.set_cents(50), term.set_days(30);
    Deposit deposit;
    absl::Status status = Send(&Bank::Stub::OpenDeposit, term, &deposit, "the same");
    EXPECT_EQ(absl::IsFailedPrecondition(status), leaves) << status;
    EXPECT_EQ(CentsOf(own), leaves ? 50 : 0);
    LoanAcceptance acceptance;
    acceptance.set_token(own.token), acceptance.set_id(offer.id()), acceptance.set_account(own.id);
    Loan loan;
    status = Send(&Bank::Stub::AcceptLoan, acceptance, &loan);
    EXPECT_EQ(absl::IsFailedPrecondition(status), leaves) << status;
    AwaitCents(own, leaves ? 50 : loan.quote().cents());
  }
  EXPECT_EQ(Audit(), 0);
}

TEST_F(ClosingTest, TheAuditNamesTheAccountOfAClosedCustomerThatIsOpen) {
  const Own own = New("eve");
  ASSERT_TRUE(Close(own).ok());
  AwaitClosed(own);
  const auto books = internal::SqliteSession::Open(
      {.path = Join(Folder(), "/", BooksOf({static_cast<uint32_t>(own.shard()), kShards}), ".db")});
  ASSERT_TRUE(books.ok()) << books.status();
  ASSERT_TRUE((*books)->Execute("UPDATE accounts SET open = 1 WHERE id = ?1", {own.id}).ok());
  std::string text;
  EXPECT_EQ(Audit(&text), 99);
  EXPECT_THAT(text, HasSubstr(std::to_string(own.id)));
}

TEST_F(ClosingTest, ALateMessageOfAnAttemptThatHasEndedChangesNothing) {
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

TEST_F(ClosingTest, AClosingEndsWithoutItsCallerFromAnyStep) {
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

TEST_F(ClosingTest, ARefusalEndsWithoutItsCallerFromAnyStep) {
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
    const Deadline deadline = Deadline::In(kMaxTestWait);
    Account account;
    const auto kept = internal::SqliteSession::Open({.path = Join(Folder(), "/customer-info.db")});
    ASSERT_TRUE(kept.ok()) << kept.status();
    int64_t state = kLeaving;
    while (state != kStays && !deadline.Expired()) {
      ASSERT_TRUE((*kept)
                      ->Query("SELECT state FROM closings WHERE id = ?1", {own.owner},
                              [&](const SqlRow& row) { state = row.Integer(0); })
                      .ok());
    }
    EXPECT_EQ(state, kStays);
    EXPECT_TRUE(Open(own, &account).ok());
    ExpectOpen(own);
  }
  ASSERT_TRUE(Pay(PaymentOf(paid, all_[0], 10)).ok());
  absl::Status closed;
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (absl::IsFailedPrecondition(closed = Close(paid)) && !deadline.Expired()) {
  }
  ASSERT_TRUE(closed.ok()) << "another attempt: " << closed;
  AwaitClosed(paid);
}

TEST_F(ClosingTest, ADecidedClosingEndsTheSessionsAfterAKill) {
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
TEST_F(ClosingTest, NoMoneyIsLostToCustomersWhoLeaveWhileServicesAreKilled) {
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
