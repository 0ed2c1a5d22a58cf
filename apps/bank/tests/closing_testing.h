// SPDX-License-Identifier: Apache-2.0
//
// closing_testing.h - a bank whose customers leave it, for tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "apps/bank/common/books.h"
#include "apps/bank/common/leaving.h"
#include "apps/bank/load/applicant.h"
#include "apps/bank/tests/bank_testing.h"
#include "curtail/store/sql/sqlite.h"

namespace curtail::bank {

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
    while (!absl::IsUnauthenticated(Know(own, &customer)) && !deadline.Expired()) BetweenLooks();
    EXPECT_TRUE(absl::IsUnauthenticated(Know(own, &customer)));
    EXPECT_TRUE(absl::IsUnauthenticated(Login(own)));
    EXPECT_EQ(Audit(), 0);
  }
  // Waits until `customer-info` keeps the closing in this state.
  void AwaitState(const Own& own, Closing state) {
    const auto kept = internal::SqliteSession::Open({.path = Join(Folder(), "/customer-info.db")});
    ASSERT_TRUE(kept.ok()) << kept.status();
    const Deadline deadline = Deadline::In(kMaxTestWait);
    int64_t seen = -1;
    while (seen != state && !deadline.Expired()) {
      const absl::Status read = (*kept)->Query("SELECT state FROM closings WHERE id = ?1", {own.owner},
                                               [&](const SqlRow& row) { seen = row.Integer(0); });
      ASSERT_TRUE(read.ok()) << read;
    }
    EXPECT_EQ(seen, state);
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
using PartedClosingTest = Parted<ClosingTest>;

}  // namespace curtail::bank
