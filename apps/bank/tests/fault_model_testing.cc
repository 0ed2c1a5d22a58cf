// SPDX-License-Identifier: Apache-2.0
//
// The acts of customers.
#include "apps/bank/tests/fault_model_testing.h"

#include <algorithm>
#include <set>

#include "apps/bank/load/applicant.h"
#include "apps/kit/load/fill.h"
#include "curtail/base/strings.h"

namespace curtail::bank {
namespace {

using absl::StatusCode;
using apps::Operation;

constexpr uint64_t kUnknown = 987654321;
constexpr uint64_t kMostOpened = 12;  // accounts

}  // namespace

void BankModelTest::SetUp() {
  BankTest::SetUp();
  if (HasFatalFailure()) return;
  books_.emplace(&client_, *app_);
  for (size_t i = 0; i < all_.size(); i += all_.size() / kUsers) tokens_.push_back(all_[i].token);
  for (const Own& own : all_) {
    versions_[own.id] = 1;
    const uint64_t bank = BanksOwn(own.shard());
    lines_[{own.id, kDeposit, bank, "opening deposit"}].Add(true);
  }
}

std::string BankModelTest::TokenOf(size_t user) const {
  const std::lock_guard lock(mu_);
  return tokens_[user];
}

bool BankModelTest::LogIn(size_t user) {
  apps::Credentials credentials;
  credentials.set_name(Join("customer_", user));
  credentials.set_password(apps::PasswordOf(/*seed=*/1, user));
  apps::Session session;
  const absl::Status status = Send(&Bank::Stub::Login, credentials, &session, {}, nullptr, kPatience);
  EXPECT_TRUE(status.ok() || IsOfFault(status)) << status;
  if (!status.ok()) return false;
  const std::lock_guard lock(mu_);
  tokens_[user] = session.token();
  return true;
}

size_t BankModelTest::UserOf(const Own& own) const {
  for (size_t i = 0; i < kUsers; ++i) {
    if (all_[i * kAccounts].owner == own.owner) return i;
  }
  ADD_FAILURE() << own.name;
  return 0;
}

const Own& BankModelTest::AnyBut(Rng& rng, const Own& one) const {
  while (true) {
    const Own& other = Any(rng);
    if (other.id != one.id) return other;
  }
}

uint64_t BankModelTest::Version(uint64_t account) const {
  const std::lock_guard lock(mu_);
  const auto found = versions_.find(account);
  return found == versions_.end() ? 0 : found->second;
}

void BankModelTest::Note(uint64_t account, uint64_t version) {
  const std::lock_guard lock(mu_);
  uint64_t& newest = versions_[account];
  newest = std::max(newest, version);
}

BankModelTest::Order& BankModelTest::New(Order order, bool with_key) {
  order.before = Version(order.from);
  const std::lock_guard lock(mu_);
  ++last_;
  if (order.text.empty()) order.text = Join("order ", last_);
  if (with_key) order.key = Join("key ", last_);
  return *orders_.emplace_back(std::make_unique<Order>(std::move(order)));
}

absl::Status BankModelTest::Call(const Order& order, Payment* reply) {
  switch (order.kind) {
    case Kind::kPayment: {
      PayRequest request;
      request.set_from(order.from), request.set_iban(order.iban), request.set_cents(order.cents);
      request.set_text(order.text), request.set_at_ms(order.at_ms);
      return As(order.user, &Bank::Stub::Pay, request, reply, order.key);
    }
    case Kind::kPurchase: {
      PurchaseRequest request;
      request.set_card(order.from), request.set_iban(order.iban), request.set_cents(order.cents);
      request.set_text(order.text);
      return As(order.user, &Bank::Stub::Purchase, request, reply, order.key);
    }
    case Kind::kCardPayment: {
      PayCardRequest request;
      request.set_card(order.to), request.set_from(order.from), request.set_cents(order.cents);
      return As(order.user, &Bank::Stub::PayCard, request, reply, order.key);
    }
    case Kind::kRepayment:
      LoanRepayment request;
      request.set_loan(order.to), request.set_number(order.number), request.set_from(order.from);
      return As(order.user, &Bank::Stub::RepayLoan, request, reply, order.key);
  }
  return absl::InternalError("no such kind");
}

Operation BankModelTest::Attempt(Order& order, bool insist) {
  Payment reply;
  const std::set<StatusCode> refusals = {StatusCode::kFailedPrecondition};
  const auto call = [&] { return Call(order, &reply); };
  const Operation told = insist ? history_.Insist(call, refusals) : history_.Do(call, refusals);
  Record(order, told, reply);
  if (told.outcome == apps::Outcome::kRefused && order.kind != Kind::kRepayment) ExpectRefusable(order);
  return told;
}

void BankModelTest::Record(Order& order, const Operation& told, const Payment& reply) {
  if (told.ok() && reply.version() > 0) Note(order.from, reply.version());
  const std::lock_guard lock(mu_);
  if (told.outcome == apps::Outcome::kUnknown) {
    order.in_doubt = order.in_doubt || !order.booked;
    return;
  }
  if (told.outcome == apps::Outcome::kRefused) {
    EXPECT_TRUE(!order.booked || told.span.began < order.told_at)
        << order.text << " was booked, and then refused" << apps::StepsOf(told.span);
    order.refused = true;
    return;
  }
  EXPECT_FALSE(order.kind == Kind::kPurchase && order.refused)
      << order.text << ": the refusal of a purchase stands" << apps::StepsOf(told.span);
  if (order.booked) {
    EXPECT_EQ(order.booked->id(), reply.id()) << order.text;
    EXPECT_TRUE(order.at_ms > 0 || order.booked->version() == reply.version()) << order.text;
    return;
  }
  order.booked = reply;
  order.told_at = told.span.ended;
  order.in_doubt = false;
}

// Between the newest version of before and the one that is there now, the account had too little.
void BankModelTest::ExpectRefusable(const Order& order) {
  uint64_t version = 0;
  int64_t limit = 0;
  absl::Status read;
  if (order.kind == Kind::kPurchase) {
    CardRequest request;
    request.set_card(order.from);
    CardBalance balance;
    read = As(order.user, &Bank::Stub::GetCardBalance, request, &balance);
    version = balance.version(), limit = balance.limit_cents();
  } else {
    BalanceRequest request;
    request.set_account(order.from);
    Balance balance;
    read = As(order.user, &Bank::Stub::GetBalance, request, &balance);
    version = balance.version();
  }
  if (!read.ok()) return;
  history_.Later([=, this, from = order.from, cents = order.cents, before = order.before, text = order.text] {
    bool too_little = false;
    for (uint64_t v = before; v <= version; ++v)
      too_little = too_little || books_->CentsAt(from, v) + limit < cents;
    EXPECT_TRUE(too_little) << text << " of " << cents << " was refused, but account " << from
                            << " had enough from version " << before << " to " << version;
  });
}

BankModelTest::Did BankModelTest::DidOf(const absl::Status& status) {
  return status.ok() ? Did::kWrote : IsOfFault(status) ? Did::kFailedToWrite : Did::kOther;
}

BankModelTest::Did BankModelTest::Give(Rng& rng, Order& order) {
  const uint64_t how = order.key.empty() ? 9 : rng.Below(10);
  if (how == 0) {
    apps::AllAtOnce(3, rng.Next(), [&](Rng&, size_t) { Attempt(order); });
    return Did::kOther;
  }
  const Operation told = Attempt(order);
  if (how == 1 || (how < 7 && told.outcome == apps::Outcome::kUnknown)) Attempt(order);
  return DidOf(told.status);
}

BankModelTest::Order BankModelTest::PaymentTo(const Own& from, const Own& to, int64_t cents) const {
  return {.user = UserOf(from), .from = from.id, .to = to.id, .cents = cents, .iban = to.iban};
}

int64_t BankModelTest::SomeCents(Rng& rng) {
  return static_cast<int64_t>(rng.Below(8) == 0 ? kDeposit / 2 + rng.Below(kDeposit) : 1 + rng.Below(500));
}

BankModelTest::Did BankModelTest::Pay(Rng& rng) {
  const Own &from = Any(rng), &to = AnyBut(rng, from);
  return Give(rng, New(PaymentTo(from, to, SomeCents(rng)), /*with_key=*/rng.Below(4) > 0));
}

// Of payments that an account cannot make all.
BankModelTest::Did BankModelTest::Race(Rng& rng) {
  const Own& from = Any(rng);
  const int64_t cents = kDeposit * 6 / 10;
  std::vector<Order*> orders;
  for (int i = 0; i < 3; ++i)
    orders.push_back(&New(PaymentTo(from, AnyBut(rng, from), cents), /*with_key=*/rng.Below(2) == 0));
  apps::AllAtOnce(orders.size(), rng.Next(), [&](Rng&, size_t i) { Attempt(*orders[i]); });
  return Did::kOther;
}

BankModelTest::Did BankModelTest::Schedule(Rng& rng) {
  const Own &from = Any(rng), &to = AnyBut(rng, from);
  Order order = PaymentTo(from, to, SomeCents(rng));
  static constexpr int64_t kAheadMs[] = {200, 1000, kSometimesMs, kNeverMs};
  order.ahead_ms = kAheadMs[rng.Below(4)];
  order.at_ms = apps::NowMs() + order.ahead_ms;
  return Give(rng, New(order, /*with_key=*/true));
}

// Mostly one that is due, or soon will be.
BankModelTest::Did BankModelTest::Cancel(Rng& rng) {
  const bool any = rng.Below(4) == 0;
  Order* const order = AnyOrder(rng, [any](const Order& one) {
    const bool due = one.ahead_ms < kSometimesMs && !one.cancelled && !one.begun;
    return one.booked && one.at_ms > 0 && (any || due);
  });
  if (order == nullptr) return Did::kOther;
  PaymentRequest request;
  request.set_id(order->booked->id());
  Payment reply;
  const Operation told =
      history_.Do([&] { return As(order->user, &Bank::Stub::CancelPayment, request, &reply); },
                  {StatusCode::kFailedPrecondition});
  const std::lock_guard lock(mu_);
  if (told.ok()) {
    EXPECT_EQ(reply.state(), Payment::CANCELLED) << order->text;
    order->cancelled = true;
  }
  if (told.outcome == apps::Outcome::kRefused) order->begun = true;
  return Did::kOther;
}

template <class Wanted>
BankModelTest::Order* BankModelTest::AnyOrder(Rng& rng, Wanted wanted) {
  const std::lock_guard lock(mu_);
  for (int i = 0; i < 20 && !orders_.empty(); ++i) {
    const size_t newest = std::min<size_t>(orders_.size(), 200);
    Order& order = *orders_[orders_.size() - 1 - rng.Below(newest)];
    if (!order.key.empty() && order.kind != Kind::kRepayment && wanted(order)) return &order;
  }
  return nullptr;
}

// Also with another content.
BankModelTest::Did BankModelTest::Repeat(Rng& rng) {
  const bool same = rng.Below(2) == 0;
  Order* const order = AnyOrder(rng, [&](const Order& one) { return same || one.booked.has_value(); });
  if (order == nullptr) return Did::kOther;
  if (same) return Give(rng, *order);
  Order other;
  {
    const std::lock_guard lock(mu_);
    other = *order;
  }
  other.cents += 1;
  Payment reply;
  const Operation told = history_.Do([&] { return Call(other, &reply); }, {StatusCode::kAlreadyExists});
  EXPECT_FALSE(told.ok()) << other.key << " is the key of another order";
  return Did::kOther;
}

BankModelTest::Did BankModelTest::Purchase(Rng& rng) {
  const Own &own = Any(rng), &shop = AnyBut(rng, own);
  Order order = PaymentTo(own, shop, SomeCents(rng));
  order.kind = Kind::kPurchase;
  order.from = own.card;
  return Give(rng, New(order, /*with_key=*/rng.Below(4) > 0));
}

BankModelTest::Did BankModelTest::PayCard(Rng& rng) {
  const Own& own = Any(rng);
  Order order = PaymentTo(own, own, SomeCents(rng));
  order.kind = Kind::kCardPayment;
  order.to = own.card;
  order.text = "card payment";
  return Give(rng, New(order, /*with_key=*/true));
}

absl::Status BankModelTest::ApplyAndAccept(size_t user, Borrowed* loan) {
  Loan reply;
  if (loan->id == 0) {
    LoanApplication application;
    application.set_product("personal"), application.set_cents(kLoanCents),
        application.set_months(kLoanMonths);
    *application.mutable_features() = Applicant(/*good=*/true);
    const absl::Status status = As(user, &Bank::Stub::ApplyForLoan, application, &reply, loan->key);
    if (!status.ok()) return status;
    EXPECT_EQ(reply.state(), Loan::OFFERED) << reply.ShortDebugString();
    loan->id = reply.id();
    loan->quote = reply.quote();
  }
  LoanAcceptance acceptance;
  acceptance.set_id(loan->id), acceptance.set_account(loan->account);
  const absl::Status status = As(user, &Bank::Stub::AcceptLoan, acceptance, &reply);
  loan->running = status.ok();
  return status;
}

BankModelTest::Did BankModelTest::Borrow(Rng& rng) {
  const Own& own = Any(rng);
  const size_t user = UserOf(own);
  const std::unique_lock lock(borrowing_[user], std::try_to_lock);
  if (!lock.owns_lock()) return Did::kOther;
  std::deque<Borrowed>& loans = loans_[user];
  if (loans.empty() || loans.back().repaid == kLoanMonths) {
    const std::lock_guard number(mu_);
    loans.push_back({.key = Join("loan ", ++last_), .account = own.id});
  }
  Borrowed& loan = loans.back();
  if (!loan.running) return DidOf(history_.Do([&] { return ApplyAndAccept(user, &loan); }).status);
  Order*& order = loan.repayment;
  const auto is = [&](bool Order::* what) {
    const std::lock_guard guard(mu_);
    return order->*what;
  };
  // One that is in doubt is repeated, and nothing else is tried meanwhile.
  if (order == nullptr || (is(&Order::refused) && !is(&Order::in_doubt))) {
    order = &New({.kind = Kind::kRepayment,
                  .user = user,
                  .from = own.id,
                  .to = loan.id,
                  .cents = loan.quote.instalments(static_cast<int>(loan.repaid)).cents(),
                  .text = Join("loan ", loan.id, ", instalment ", loan.repaid + 1),
                  .number = loan.repaid + 1},
                 /*with_key=*/true);
  }
  const Did did = Give(rng, *order);
  const std::lock_guard guard(mu_);
  if (order->booked) {
    order = nullptr;
    ++loan.repaid;
  }
  return did;
}

BankModelTest::Did BankModelTest::Open(Rng& rng) {
  const size_t user = rng.Below(kUsers);
  Opening* opening = nullptr;
  {
    const std::lock_guard lock(mu_);
    if (openings_.size() == kMostOpened) return Did::kOther;
    opening = &openings_.emplace_back(Opening{.user = user, .key = Join("account ", ++last_)});
  }
  Account account;
  const Operation told = history_.Do(
      [&] { return As(user, &Bank::Stub::OpenAccount, apps::TokenRequest(), &account, opening->key); });
  if (told.ok()) opening->account = account;
  return DidOf(told.status);
}

void BankModelTest::ReadBalance(const Own& own, bool insist) {
  const uint64_t before = Version(own.id);
  BalanceRequest request;
  request.set_account(own.id), request.set_at_least(before);
  Balance balance;
  const auto call = [&] { return As(UserOf(own), &Bank::Stub::GetBalance, request, &balance); };
  if (!(insist ? history_.Insist(call) : history_.Do(call)).ok()) return;
  EXPECT_GE(balance.version(), before) << own.id;
  Note(own.id, balance.version());
  history_.Later([=, this] {
    EXPECT_EQ(balance.cents(), books_->CentsAt(own.id, balance.version())) << own.id;
    EXPECT_EQ(balance.available_cents(), balance.cents()) << own.id;
  });
}

void BankModelTest::ReadCard(const Own& own) {
  const uint64_t before = Version(own.card);
  CardRequest request;
  request.set_card(own.card), request.set_at_least(before);
  CardBalance balance;
  if (!history_.Do([&] { return As(UserOf(own), &Bank::Stub::GetCardBalance, request, &balance); }).ok())
    return;
  EXPECT_GE(balance.version(), before) << own.card;
  EXPECT_EQ(balance.debt_cents() + balance.available_cents(), balance.limit_cents()) << own.card;
  Note(own.card, balance.version());
  history_.Later([=, this] {
    EXPECT_EQ(-balance.debt_cents(), books_->CentsAt(own.card, balance.version())) << own.card;
  });
}

// A page is a part of the books without a gap, perhaps not the newest.
void BankModelTest::ReadActivity(const Own& own) {
  ActivityRequest request;
  request.set_account(own.id);
  Movements page;
  if (!history_.Do([&] { return As(UserOf(own), &Bank::Stub::ListActivity, request, &page); }).ok()) return;
  for (int i = 1; i < page.movements_size(); ++i)
    EXPECT_EQ(page.movements(i).version() + 1, page.movements(i - 1).version()) << own.id;
  history_.Later([=, this] {
    for (const Movement& movement : page.movements()) ExpectMovement(own.id, movement);
  });
}

// Another's account is as one that does not exist.
void BankModelTest::Trespass(Rng& rng) {
  const Own& victim = Any(rng);
  const size_t user = rng.Below(kUsers);
  if (all_[user * kAccounts].owner == victim.owner) return;
  const bool pays = rng.Below(2) == 0;
  const auto attempt = [&](uint64_t account) {
    return history_
        .Do(
            [&] {
              if (pays) {
                Order order = PaymentTo(victim, AnyBut(rng, victim), 1);
                order.user = user, order.from = account, order.text = "theft";
                Payment paid;
                return Call(order, &paid);
              }
              BalanceRequest request;
              request.set_account(account);
              Balance balance;
              return As(user, &Bank::Stub::GetBalance, request, &balance);
            },
            {StatusCode::kNotFound})
        .status;
  };
  const absl::Status found = attempt(victim.id), missing = attempt(kUnknown);
  EXPECT_FALSE(found.ok() || missing.ok()) << victim.id;
  const bool told = absl::IsNotFound(found) && absl::IsNotFound(missing);
  EXPECT_TRUE(!told || WordsOf(found, victim.id) == WordsOf(missing, kUnknown)) << found << missing;
}

apps::Actors::Did BankModelTest::Act(Rng& rng) {
  const uint64_t what = rng.Below(100);
  if (what < 31) return Pay(rng);
  if (what < 36) return Race(rng);
  if (what < 45) return Purchase(rng);
  if (what < 53) return PayCard(rng);
  if (what < 61) return Schedule(rng);
  if (what < 67) return Cancel(rng);
  if (what < 72) return Repeat(rng);
  if (what < 79) return Borrow(rng);
  if (what < 80) return Open(rng);
  const Own& own = Any(rng);
  if (what < 88) ReadBalance(own, /*insist=*/false);
  else if (what < 92) ReadCard(own);
  else if (what < 97) ReadActivity(own);
  else Trespass(rng);
  return Did::kOther;
}

void BankModelTest::ReadBalances() {
  for (const Own& own : all_) ReadBalance(own, /*insist=*/true);
}

}  // namespace curtail::bank
