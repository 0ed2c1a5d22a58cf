// SPDX-License-Identifier: Apache-2.0
//
// Credit cards of the bank, as its customers use them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/bank/common/card_number.h"
#include "apps/bank/tests/bank_testing.h"
#include "apps/kit/luhn.h"
#include "curtail/base/rng.h"
#include "curtail/store/sql/sqlite.h"

namespace curtail::bank {
namespace {

using testing::HasSubstr;

class CardTest : public BankFaultTest {
 protected:
  absl::Status Apply(const Own& who, int64_t income, int64_t limit, Application* reply,
                     const std::string& key = {}, Nanos patience = kMaxTestWait) const {
    CardApplication request;
    request.set_token(who.token), request.set_income_cents(income), request.set_limit_cents(limit);
    return Send(&Bank::Stub::ApplyForCard, request, reply, key, nullptr, patience);
  }
  // `who` with a card of this limit.
  Own WithCard(Own who, int64_t limit) const {
    Application application;
    const absl::Status status = Apply(who, limit, limit, &application);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(application.state(), Application::ISSUED) << application.reason();
    who.card = application.card().id();
    return who;
  }
  absl::Status Buy(const Own& with, const Own& at, int64_t cents, const std::string& key = {},
                   Payment* reply = nullptr, Channel* by = nullptr, Nanos patience = kMaxTestWait) const {
    PurchaseRequest request;
    request.set_token(with.token), request.set_card(with.card), request.set_iban(at.iban);
    request.set_cents(cents), request.set_text("books");
    Payment ignored;
    return Send(&Bank::Stub::Purchase, request, reply == nullptr ? &ignored : reply, key, by, patience);
  }
  absl::Status PayCard(const Own& from, int64_t cents, const std::string& key = {}, Payment* reply = nullptr,
                       Channel* by = nullptr, Nanos patience = kMaxTestWait) const {
    PayCardRequest request;
    request.set_token(from.token), request.set_card(from.card), request.set_from(from.id);
    request.set_cents(cents);
    Payment ignored;
    return Send(&Bank::Stub::PayCard, request, reply == nullptr ? &ignored : reply, key, by, patience);
  }
  static CardRequest RequestOf(const Own& who) {
    CardRequest request;
    request.set_token(who.token), request.set_card(who.card);
    return request;
  }
  CardBalance BalanceOf(const Own& who) const {
    CardBalance balance;
    const absl::Status status = Send(&Bank::Stub::GetCardBalance, RequestOf(who), &balance);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(balance.debt_cents() + balance.available_cents(), balance.limit_cents());
    return balance;
  }
  // Money from another shard comes a moment later.
  void AwaitDebt(const Own& who, int64_t cents) const {
    const Deadline deadline = Deadline::In(kMaxTestWait);
    while (BalanceOf(who).debt_cents() != cents && !deadline.Expired()) BetweenLooks();
    EXPECT_EQ(BalanceOf(who).debt_cents(), cents);
  }
  CardList CardsOf(const Own& who) const {
    apps::TokenRequest request;
    request.set_token(who.token);
    CardList cards;
    EXPECT_TRUE(Send(&Bank::Stub::ListCards, request, &cards).ok());
    return cards;
  }
};

using PartedCardTest = Parted<CardTest>;

TEST_F(CardTest, IsChargedToItsLimitAndNotBeyondAndPaid) {
  for (const bool same_shard : {true, false}) {
    const Own own = WithCard(all_[0], 300), &shop = Other(own, same_shard);
    const int64_t before = CentsOf(own);
    ASSERT_TRUE(Buy(own, shop, 299).ok());
    EXPECT_TRUE(absl::IsFailedPrecondition(Buy(own, shop, 2)));
    ASSERT_TRUE(Buy(own, shop, 1).ok());
    EXPECT_TRUE(absl::IsFailedPrecondition(Buy(own, shop, 1)));
    EXPECT_EQ(BalanceOf(own).available_cents(), 0);
    AwaitCents(shop, kDeposit + 300);
    ASSERT_TRUE(PayCard(own, 120).ok());
    AwaitDebt(own, 180);
    EXPECT_EQ(CentsOf(own), before - 120);
    ASSERT_TRUE(Buy(own, shop, 120).ok());
    EXPECT_TRUE(absl::IsFailedPrecondition(Buy(own, shop, 1)));
    ASSERT_TRUE(PayCard(own, 301).ok());
    AwaitDebt(own, -1);

    CardRequest pages = RequestOf(own);
    Movements newest, older;
    const Deadline deadline = Deadline::In(kMaxTestWait);
    while (newest.movements_size() < 5 && !deadline.Expired())
      ASSERT_TRUE(Send(&Bank::Stub::GetStatement, pages, &newest).ok());
    ASSERT_EQ(newest.movements_size(), 5);
    EXPECT_EQ(newest.movements(4).cents(), -299);
    EXPECT_EQ(newest.movements(4).iban(), shop.iban);
    EXPECT_EQ(newest.movements(4).text(), "books");
    EXPECT_EQ(newest.movements(2).cents(), 120);
    EXPECT_EQ(newest.movements(2).iban(), own.iban);
    pages.set_limit(2), pages.set_before(newest.movements(1).version());
    ASSERT_TRUE(Send(&Bank::Stub::GetStatement, pages, &older).ok());
    ASSERT_EQ(older.movements_size(), 2);
    EXPECT_EQ(older.movements(0).SerializeAsString(), newest.movements(2).SerializeAsString());
    EXPECT_EQ(older.next(), newest.movements(3).version());
    EXPECT_EQ(AwaitMovements(own)[0].text(), "card payment");
  }
  EXPECT_EQ(Audit(), 0);
}

TEST_F(CardTest, ARepetitionHasTheSameAnswerAndOtherContentNone) {
  const Own own = WithCard(all_[0], 100), &shop = Other(own, /*same_shard=*/true);
  Payment first, again;
  ASSERT_TRUE(Buy(own, shop, 90, "a", &first).ok());
  ASSERT_TRUE(Buy(own, shop, 90, "a", &again).ok());
  EXPECT_EQ(first.SerializeAsString(), again.SerializeAsString());
  EXPECT_TRUE(absl::IsAlreadyExists(Buy(own, shop, 91, "a")));
  const absl::Status refused = Buy(own, shop, 20, "b");
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;

  ASSERT_TRUE(PayCard(own, 50, "a", &first).ok()) << "another service keeps this name";
  ASSERT_TRUE(PayCard(own, 50, "a", &again).ok());
  EXPECT_EQ(first.SerializeAsString(), again.SerializeAsString());
  EXPECT_EQ(first.card(), own.card);
  EXPECT_TRUE(absl::IsAlreadyExists(PayCard(own, 51, "a")));
  AwaitDebt(own, 40);
  EXPECT_EQ(Buy(own, shop, 20, "b"), refused) << "a refusal stands";
  EXPECT_EQ(BalanceOf(own).debt_cents(), 40);
  EXPECT_TRUE(Buy(own, shop, 20, "c").ok());
}

TEST_F(CardTest, IsIssuedByTheRule) {
  const Own& own = all_[0];
  Application first, again, seen;
  ASSERT_TRUE(Apply(own, 100, 301, &first, "too much").ok());
  EXPECT_EQ(first.state(), Application::DECLINED);
  EXPECT_THAT(first.reason(), HasSubstr("income of 3 months"));
  for (int cards = CardsOf(own).cards_size(); cards < kMostCards; ++cards) {
    ASSERT_TRUE(Apply(own, 100, 300, &first, Join("card ", cards)).ok());
    ASSERT_EQ(first.state(), Application::ISSUED) << first.reason();
    ASSERT_TRUE(Apply(own, 100, 300, &again, Join("card ", cards)).ok());
    EXPECT_EQ(first.SerializeAsString(), again.SerializeAsString());
    const CardList listed = CardsOf(own);
    ASSERT_EQ(listed.cards_size(), cards + 1);
    EXPECT_EQ(listed.cards(cards).SerializeAsString(), first.card().SerializeAsString());
    const std::string& number = first.card().number();
    EXPECT_EQ(apps::LuhnDigit(number.substr(0, 15)), number.back());
  }
  ASSERT_TRUE(Apply(own, 100, 300, &first, "one more").ok());
  EXPECT_EQ(first.state(), Application::DECLINED);
  EXPECT_THAT(first.reason(), HasSubstr("at most 5 cards"));
  PaymentRequest look;
  look.set_token(own.token), look.set_id(first.id());
  ASSERT_TRUE(Send(&Bank::Stub::GetApplication, look, &seen).ok());
  EXPECT_EQ(seen.SerializeAsString(), first.SerializeAsString());
  for (const auto& [income, limit] : std::vector<std::pair<int64_t, int64_t>>{
           {-1, 1}, {1, 0}, {1, -1}, {apps::kMostCents + 1, 1}, {1, std::numeric_limits<int64_t>::max()}})
    EXPECT_TRUE(absl::IsInvalidArgument(Apply(own, income, limit, &first))) << income << " " << limit;
}

TEST_F(CardTest, AnotherCustomersIsAsIfItWereNotThere) {
  const Own &ann = all_[0], &bob = Other(ann, /*same_shard=*/true);
  constexpr uint64_t kUnknown = 987654321;
  Payment bought, seen;
  ASSERT_TRUE(Buy(bob, ann, 5, {}, &bought).ok());
  Own theirs = ann, unknown = ann;
  theirs.card = bob.card, unknown.card = kUnknown;
  CardBalance balance;
  Movements page;
  const auto all = [&](const Own& with) {
    PayRequest transfer = PaymentOf(ann, bob, 1);
    transfer.set_from(with.card);  // a card pays by purchases only
    return std::array<absl::Status, 5>{Send(&Bank::Stub::GetCardBalance, RequestOf(with), &balance),
                                       Send(&Bank::Stub::GetStatement, RequestOf(with), &page),
                                       Buy(with, bob, 1), PayCard(with, 1), Pay(transfer)};
  };
  const auto found = all(theirs), missing = all(unknown);
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_TRUE(absl::IsNotFound(found[i])) << i << " " << found[i];
    EXPECT_EQ(WordsOf(found[i], bob.card), WordsOf(missing[i], kUnknown)) << i;
  }
  EXPECT_TRUE(absl::IsNotFound(all(ann)[4])) << "nor does one's own";
  PaymentRequest look;
  look.set_token(ann.token), look.set_id(bought.id());
  EXPECT_TRUE(absl::IsNotFound(Send(&Bank::Stub::GetPurchase, look, &seen)));
  look.set_token(bob.token);
  EXPECT_TRUE(Send(&Bank::Stub::GetPurchase, look, &seen).ok());
  EXPECT_EQ(BalanceOf(bob).debt_cents(), 5);
}

TEST_F(PartedCardTest, AnApplicationIsDecidedWithoutItsCaller) {
  const Own& own = all_[0];
  app_->Kill("credit-card");
  Application lost;
  const absl::Status failed = Apply(own, 100, 300, &lost, {}, std::chrono::milliseconds(500));
  EXPECT_TRUE(absl::IsUnavailable(failed) || absl::IsDeadlineExceeded(failed)) << failed;
  EXPECT_TRUE(app_->Restart("credit-card").ok());
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (CardsOf(own).cards_size() < 2 && !deadline.Expired()) BetweenLooks();
  EXPECT_EQ(CardsOf(own).cards_size(), 2);
}

TEST_F(PartedCardTest, ACustomerHasFewApplicationsThatAreNotDecided) {
  const Own& own = all_[0];
  app_->Kill("credit-card");
  Application lost;
  constexpr Nanos kShort = std::chrono::milliseconds(500);
  for (uint64_t i = 0; i < kMostApplications; ++i) {
    const absl::Status failed = Apply(own, 100, 300, &lost, Join("card ", i), kShort);
    EXPECT_TRUE(absl::IsUnavailable(failed) || absl::IsDeadlineExceeded(failed)) << failed;
  }
  const absl::Status refused = Apply(own, 100, 300, &lost, "one more");
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_TRUE(app_->Restart("credit-card").ok());
  const auto decided = [&](const std::string& key) {
    return Answered([&] { return Apply(own, 100, 300, &lost, key); });
  };
  for (uint64_t i = 0; i < kMostApplications; ++i)
    EXPECT_TRUE(decided(Join("card ", i)).ok()) << "a repetition";
  const absl::Status more = decided("one more");
  EXPECT_TRUE(more.ok()) << more;
}

TEST_F(CardTest, TheBankForgetsOldRefusals) {
  const Own& own = all_[0];
  Application first, second, last, again;
  ASSERT_TRUE(Apply(own, 1, 100, &first, "first").ok());
  ASSERT_EQ(first.state(), Application::DECLINED);
  ASSERT_TRUE(Apply(own, 1, 100, &second).ok());
  for (uint64_t i = 2; i <= kMostDeclined; ++i) ASSERT_TRUE(Apply(own, 1, 100, &last).ok());
  const auto look = [&](const Application& one) {
    PaymentRequest request;
    request.set_token(own.token), request.set_id(one.id());
    return Send(&Bank::Stub::GetApplication, request, &again);
  };
  EXPECT_TRUE(look(first).ok()) << "it is of this day";
  {
    const auto kept = internal::SqliteSession::Open({.path = Join(Folder(), "/new-card.db")});
    ASSERT_TRUE(kept.ok()) << kept.status();
    ASSERT_TRUE((*kept)->Execute("UPDATE applications SET due_ms = due_ms - 100000000").ok());
  }
  ASSERT_TRUE(Apply(own, 1, 100, &last).ok());
  EXPECT_TRUE(absl::IsNotFound(look(first)));
  EXPECT_TRUE(absl::IsNotFound(look(second)));
  EXPECT_TRUE(look(last).ok());
  EXPECT_FALSE(CardsOf(own).cards().empty());
}

TEST_F(PartedCardTest, CardsOutliveTheServicesThatChargeThem) {
  const uint64_t seed = TestSeed();
  const size_t accounts = all_.size() / 6;  // of each customer
  std::array<int64_t, kCustomers> debts{};
  ActWhileKilled({"credit-card", "posting", "card-payment", "posting", "credit-card"}, [&](int customer) {
    const std::unique_ptr<Channel> channel = Connect();
    Rng rng(seed + static_cast<uint64_t>(customer));
    const size_t first = static_cast<size_t>(customer) * accounts;
    for (int i = 0; !stop_.load(); ++i) {
      const Own& own = all_[first + rng.Below(accounts)];
      const Own& shop = all_[rng.Below(all_.size())];
      const auto cents = static_cast<int64_t>(1 + rng.Below(20));
      const bool buys = rng.Below(2) == 0;
      const std::string key = Join("card ", i);
      const absl::Status status = Answered([&] {
        return buys ? Buy(own, shop, cents, key, nullptr, channel.get(), kPatience)
                    : PayCard(own, cents, key, nullptr, channel.get(), kPatience);
      });
      ASSERT_TRUE(status.ok() || (!buys && absl::IsFailedPrecondition(status))) << status;
      if (status.ok()) debts[static_cast<size_t>(customer)] += buys ? cents : -cents;
    }
  });
  for (size_t i = 0; i < debts.size(); ++i) AwaitDebt(all_[i * accounts], debts[i]);
  EXPECT_EQ(Audit(), 0);
}

}  // namespace
}  // namespace curtail::bank
