// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/common/offers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "apps/bank/tests/bank_testing.h"
#include "apps/kit/wall_clock.h"
#include "curtail/store/sql/sqlite.h"

namespace curtail::bank {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kDayMs = 86'400'000;

TEST(Offers, HaveTheRulesAndTheirReasons) {
  const auto products = [](const OfferFacts& facts) {
    std::vector<std::string> names;
    for (const Offer& one : OffersFor(facts)) {
      names.push_back(one.product());
      EXPECT_FALSE(one.reason().empty());
      EXPECT_GE(one.score(), 1u);
      EXPECT_LE(one.score(), 100u);
    }
    return names;
  };
  OfferFacts facts{.has_card = true, .has_email = true};
  EXPECT_THAT(products(facts), IsEmpty()) << "no account";
  ActivitySummary::One &first = *facts.activity.add_accounts(), &second = *facts.activity.add_accounts();
  first.set_lowest_cents(99'999), second.set_lowest_cents(10'000), second.set_received_cents(100'000);
  EXPECT_THAT(products(facts), IsEmpty());
  first.set_lowest_cents(100'000);
  EXPECT_THAT(products(facts), ElementsAre("term-deposit"));
  EXPECT_EQ(OffersFor(facts)[0].score(), 51u);
  first.set_lowest_cents(apps::kMostCents);
  EXPECT_EQ(OffersFor(facts)[0].score(), 100u);
  second.set_lowest_cents(9'999);
  EXPECT_THAT(products(facts), ElementsAre("term-deposit", "personal-loan"));
  second.set_received_cents(99'999);
  EXPECT_THAT(products(facts), ElementsAre("term-deposit"));
  first.set_times_sent(6), second.set_times_sent(4);
  EXPECT_THAT(products(facts), ElementsAre("term-deposit")) << "it has a card";
  facts.has_card = facts.has_email = false;
  EXPECT_THAT(products(facts), ElementsAre("term-deposit", "credit-card", "electronic-mail"));
  second.set_times_sent(3);
  EXPECT_THAT(products(facts), ElementsAre("term-deposit", "electronic-mail"));
}

class OffersTest : public BankTest {
 protected:
  static apps::TokenRequest TokenOf(const Own& own) {
    apps::TokenRequest request;
    request.set_token(own.token);
    return request;
  }
  std::vector<std::string> OfferedTo(const Own& own) const {
    OfferList list;
    const absl::Status status = Send(&Bank::Stub::ListOffers, TokenOf(own), &list);
    EXPECT_TRUE(status.ok()) << status;
    std::vector<std::string> products;
    for (const Offer& one : list.offers()) {
      EXPECT_EQ(one.state(), Offer::OPEN);
      EXPECT_NEAR(static_cast<double>(one.expires_ms() - apps::NowMs()), 30.0 * kDayMs, kDayMs);
      products.push_back(one.product());
    }
    return products;
  }
  absl::Status Answer(const Own& own, const std::string& product, bool accepted, const std::string& key = {},
                      Offer* reply = nullptr) const {
    OfferAnswer request;
    request.set_token(own.token), request.set_product(product), request.set_accepted(accepted);
    Offer ignored;
    return Send(&Bank::Stub::AnswerOffer, request, reply == nullptr ? &ignored : reply, key);
  }
  void Change(const char* service, const std::string& sql, std::initializer_list<SqlValue> values) const {
    const auto kept = internal::SqliteSession::Open({.path = Join(Folder(), "/", service, ".db")});
    ASSERT_TRUE(kept.ok()) << kept.status();
    const absl::Status changed = (*kept)->Execute(sql, values);
    ASSERT_TRUE(changed.ok()) << changed;
  }
};

TEST_F(OffersTest, ComeFromMovementsAndGoWithTheAnswer) {
  const Own& own = all_[0];
  AwaitMovements(own);
  EXPECT_THAT(OfferedTo(own), ElementsAre("electronic-mail")) << "its money has just come";
  Change(
      "activity",
      "UPDATE movements SET cents = 200000, balance = 200000, booked_ms = booked_ms - ?2 WHERE account = ?1",
      {own.id, 31 * kDayMs});
  EXPECT_THAT(OfferedTo(own), ElementsAre("term-deposit", "electronic-mail"));
  Change("activity", "UPDATE movements SET booked_ms = booked_ms + ?2 WHERE account = ?1",
         {own.id, 2 * kDayMs});
  Change("offers", "DELETE FROM offers WHERE customer = ?1", {own.owner});
  EXPECT_THAT(OfferedTo(own), ElementsAre("personal-loan", "electronic-mail"))
      << "the balance before the movement counts, and what came";

  Offer first, again;
  ASSERT_TRUE(Answer(own, "personal-loan", false, "a", &first).ok());
  EXPECT_EQ(first.state(), Offer::DECLINED);
  ASSERT_TRUE(Answer(own, "personal-loan", false, "a", &again).ok());
  EXPECT_EQ(first.SerializeAsString(), again.SerializeAsString());
  EXPECT_TRUE(absl::IsAlreadyExists(Answer(own, "electronic-mail", false, "a")));
  EXPECT_TRUE(Answer(own, "personal-loan", false).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Answer(own, "personal-loan", true)));
  EXPECT_THAT(OfferedTo(own), ElementsAre("electronic-mail"));
  EXPECT_TRUE(absl::IsNotFound(Answer(own, "term-deposit", true))) << "it was not offered";
  EXPECT_TRUE(absl::IsNotFound(Answer(Other(own, true), "electronic-mail", true))) << "to another customer";

  Change("offers", "UPDATE offers SET expires_ms = 1 WHERE customer = ?1", {own.owner});
  EXPECT_TRUE(absl::IsFailedPrecondition(Answer(own, "electronic-mail", true))) << "it has expired";
  EXPECT_THAT(OfferedTo(own), ElementsAre("electronic-mail")) << "made again; the answered one is not";
  ASSERT_TRUE(Answer(own, "electronic-mail", true).ok());
  EXPECT_THAT(OfferedTo(own), IsEmpty());
}

// Ten thousand movements of all accounts together, so that many of them cost no more than few.
TEST_F(OffersTest, ComeFromTheLastMovementsOnly) {
  const Own& own = all_[0];  // one of four accounts
  AwaitMovements(own);
  EXPECT_THAT(OfferedTo(own), ElementsAre("electronic-mail"));
  const auto add = [&](uint64_t after, int64_t balance) {
    Change(
        "activity",
        "WITH RECURSIVE n(i) AS (SELECT ?2 + 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2 + 2500)"
        " INSERT INTO movements(account, version, posting, cents, balance, counterpart, purpose, booked_ms)"
        " SELECT ?1, i, i, 1, ?3, 0, '', ?4 FROM n",
        {own.id, after, balance, apps::NowMs()});
  };
  add(/*after=*/1, /*balance=*/1);
  EXPECT_THAT(OfferedTo(own), ElementsAre("electronic-mail"));
  add(/*after=*/2501, /*balance=*/200'000);
  EXPECT_THAT(OfferedTo(own), ElementsAre("term-deposit", "electronic-mail"));
}

TEST_F(OffersTest, ACardIsOfferedToCustomersWhoPayOthersAndHaveNone) {
  apps::Credentials credentials;
  credentials.set_name("eve"), credentials.set_password("a password");
  apps::Session session;
  ASSERT_TRUE(Send(&Bank::Stub::Register, credentials, &session).ok());
  Own own{.owner = session.user(), .name = "eve", .token = session.token()};
  std::vector<Own> two(2, own);
  for (Own& one : two) {
    Account account;
    ASSERT_TRUE(Send(&Bank::Stub::OpenAccount, TokenOf(own), &account).ok());
    one.id = account.id(), one.iban = account.iban();
  }
  EXPECT_THAT(OfferedTo(own), ElementsAre("electronic-mail"));
  ASSERT_TRUE(Pay(PaymentOf(all_[0], two[0], 100)).ok());
  AwaitCents(two[0], 100);
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(Pay(PaymentOf(two[0], all_[0], 1)).ok());
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(Pay(PaymentOf(two[0], two[1], 1)).ok());
  AwaitMovements(two[0]);
  EXPECT_THAT(OfferedTo(own), ElementsAre("electronic-mail")) << "own transfers do not count";
  ASSERT_TRUE(Pay(PaymentOf(two[0], all_[0], 1)).ok());
  AwaitMovements(two[0]);
  EXPECT_THAT(OfferedTo(own), ElementsAre("credit-card", "electronic-mail"));
}

}  // namespace
}  // namespace curtail::bank
