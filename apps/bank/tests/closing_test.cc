// SPDX-License-Identifier: Apache-2.0
//
// How customers of the bank leave it: all at 0, once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "apps/bank/tests/closing_testing.h"

namespace curtail::bank {
namespace {

using testing::HasSubstr;

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
  while (!std::string(Close(own).message()).starts_with("deposit ") && !deadline.Expired()) BetweenLooks();
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
  while (absl::IsFailedPrecondition(closed = Close(own)) && !deadline.Expired()) BetweenLooks();
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

TEST_F(PartedClosingTest, GivesItsHalfHoursBackAndBooksNoMore) {
  const Own own = New("eve");
  const auto slots = [&] {
    SlotQuery query;
    query.set_representative(1);
    SlotList free;
    EXPECT_TRUE(Send(&Bank::Stub::ListSlots, query, &free).ok());
    return std::vector<int64_t>(free.starts_ms().begin(), free.starts_ms().end());
  };
  const int64_t late = slots().back();
  BookingRequest wish;
  wish.set_token(own.token), wish.set_representative(1), wish.set_starts_ms(late);
  Booking booking;
  ASSERT_TRUE(Send(&Bank::Stub::BookSlot, wish, &booking).ok());
  EXPECT_THAT(slots(), testing::Not(testing::Contains(late)));
  ASSERT_TRUE(Close(own).ok());
  AwaitClosed(own);
  EXPECT_THAT(slots(), testing::Contains(late));
  // Calls whose session was checked before come late.
  BookingOrder order;
  order.set_customer(own.owner), order.set_representative(1), order.set_starts_ms(late);
  const absl::Status booked = Ask<Contact::Stub>("contact", &Contact::Stub::Book, order, &booking);
  EXPECT_TRUE(absl::IsFailedPrecondition(booked)) << booked;
  MessageOrder text;
  text.set_customer(own.owner), text.set_text("I am back");
  WrittenMessage message;
  const absl::Status written = Ask<Contact::Stub>("contact", &Contact::Stub::Write, text, &message);
  EXPECT_TRUE(absl::IsFailedPrecondition(written)) << written;
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
  while (absl::IsFailedPrecondition(closed = Close(own)) && !deadline.Expired()) BetweenLooks();
  ASSERT_TRUE(closed.ok()) << closed;
  AwaitClosed(own);
}

TEST_F(PartedClosingTest, UnitsOfStocksKeepACustomerUntilTheyAreSold) {
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
TEST_F(PartedClosingTest, WhatWasRefusedWhileItLeavesIsRefusedThoughItStays) {
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
        Step{"wealth-management", "payments",
             leave("wealth-management", static_cast<WealthManagement::Stub*>(nullptr)), buy, false},
        // Last, as its money may come from another shard, later.
        Step{"loan-request", "acceptances", leave("loan-request", static_cast<LoanRequests::Stub*>(nullptr)),
             accept_loan, true}}) {
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
    if (step.service == "loan-request") {
      LoanAcceptance elsewhere;
      elsewhere.set_token(own.token), elsewhere.set_id(offer.id()), elsewhere.set_account(all_[0].id);
      Loan loan;
      EXPECT_TRUE(absl::IsFailedPrecondition(Send(&Bank::Stub::AcceptLoan, elsewhere, &loan)));
      bool goes_on = false;
      ASSERT_TRUE(
          (*kept)
              ->Query("SELECT 1 FROM acceptances WHERE open = 1", {}, [&](const SqlRow&) { goes_on = true; })
              .ok());
      EXPECT_FALSE(goes_on) << "for the first account";
    }
    EXPECT_EQ(step.act().ok(), step.again) << step.service;
  }
  EXPECT_EQ(Audit(), 0);
}

TEST_F(PartedClosingTest, OpensNothingWhileItLeaves) {
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

}  // namespace
}  // namespace curtail::bank
