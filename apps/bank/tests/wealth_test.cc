// SPDX-License-Identifier: Apache-2.0
//
// Investments, as customers of the bank use them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "apps/bank/common/books.h"
#include "apps/bank/common/prices.h"
#include "apps/bank/tests/bank_testing.h"
#include "apps/kit/testing/preload.h"
#include "apps/kit/wall_clock.h"
#include "curtail/base/rng.h"
#include "curtail/store/sql/sqlite.h"

namespace curtail::bank {
namespace {

using testing::HasSubstr;

class WealthTest : public BankFaultTest {
 protected:
  using Units = std::map<std::string, int64_t>;

  static TradeRequest RequestOf(const Own& own, const std::string& symbol, int64_t units) {
    TradeRequest request;
    request.set_token(own.token), request.set_account(own.id);
    request.set_symbol(symbol), request.set_units(units);
    return request;
  }
  absl::Status Buy(const Own& own, const std::string& symbol, int64_t units, Trade* reply,
                   const std::string& key = {}, Channel* by = nullptr, Nanos patience = kMaxTestWait) const {
    return Send(&Bank::Stub::BuyUnits, RequestOf(own, symbol, units), reply, key, by, patience);
  }
  absl::Status Sell(const Own& own, const std::string& symbol, int64_t units, Trade* reply,
                    const std::string& key = {}, Channel* by = nullptr, Nanos patience = kMaxTestWait) const {
    return Send(&Bank::Stub::SellUnits, RequestOf(own, symbol, units), reply, key, by, patience);
  }
  absl::Status LookAt(const Own& own, uint64_t id, Trade* reply) const {
    PaymentRequest request;
    request.set_token(own.token), request.set_id(id);
    return Send(&Bank::Stub::GetTrade, request, reply);
  }
  Units HeldBy(const Own& own) const {
    apps::TokenRequest request;
    request.set_token(own.token);
    Portfolio portfolio;
    const absl::Status status = Send(&Bank::Stub::GetPortfolio, request, &portfolio);
    EXPECT_TRUE(status.ok()) << status;
    Units held;
    for (const Holding& one : portfolio.holdings()) held[one.symbol()] = one.units();
    return held;
  }
  static uint32_t Today() { return static_cast<uint32_t>(apps::NowMs() / 86'400'000); }

  const Prices prices_ = Prices::Builtin().value();
};

using PartedWealthTest = Parted<WealthTest>;

TEST_F(WealthTest, BuysAndSellsAtThePriceOfTheDay) {
  // Two accounts of a customer, in two shards.
  const auto differ = [](const Own& a, const Own& b) { return a.owner == b.owner && a.shard() != b.shard(); };
  const auto pair = std::ranges::adjacent_find(all_, differ);
  ASSERT_NE(pair, all_.end()) << "24 accounts of 6 customers";
  const Own &own = pair[0], &other = pair[1];
  InvestmentList offered;
  uint32_t today = 0;
  do {
    today = Today();
    ASSERT_TRUE(Send(&Bank::Stub::ListInvestments, apps::Nothing(), &offered).ok());
  } while (Today() != today);
  ASSERT_EQ(offered.investments_size(), 5);
  for (const Investment& one : offered.investments())
    EXPECT_EQ(one.share_cents(), prices_.CentsOn(one.symbol(), today).value()) << one.symbol();

  EXPECT_TRUE(HeldBy(own).empty());
  Trade bought, sold, seen;
  ASSERT_TRUE(Buy(own, "MSFT", 101, &bought).ok());
  EXPECT_EQ(bought.state(), Payment::BOOKED);
  EXPECT_EQ(bought.cents(), CostOfUnits(101, bought.share_cents()));
  EXPECT_EQ(CentsOf(own, bought.version()), kDeposit - bought.cents());
  EXPECT_EQ(HeldBy(own), (Units{{"MSFT", 101}}));
  // To another account than the one that has paid.
  ASSERT_TRUE(Sell(other, "MSFT", 51, &sold).ok());
  EXPECT_EQ(sold.cents(), ProceedsOfUnits(51, sold.share_cents()));
  EXPECT_EQ(CentsOf(other), kDeposit + sold.cents());
  EXPECT_EQ(HeldBy(own), (Units{{"MSFT", 50}}));
  ASSERT_TRUE(LookAt(own, sold.id(), &seen).ok());
  EXPECT_EQ(seen.SerializeAsString(), sold.SerializeAsString());
  ASSERT_TRUE(Sell(own, "MSFT", 50, &sold).ok());
  EXPECT_TRUE(HeldBy(own).empty());
  EXPECT_EQ(AwaitMovements(own)[0].text(), "sale of MSFT");
  EXPECT_EQ(Audit(), 0);
}

TEST_F(WealthTest, ARepetitionHasTheSameAnswerAndOtherContentNone) {
  const Own& own = all_[0];
  Trade first, again;
  ASSERT_TRUE(Buy(own, "IBM", 10, &first, "a").ok());
  ASSERT_TRUE(Buy(own, "IBM", 10, &again, "a").ok());
  EXPECT_EQ(first.SerializeAsString(), again.SerializeAsString());
  EXPECT_TRUE(absl::IsAlreadyExists(Buy(own, "IBM", 11, &again, "a")));
  EXPECT_TRUE(absl::IsAlreadyExists(Sell(own, "IBM", 10, &again, "a")));
  EXPECT_EQ(HeldBy(own), (Units{{"IBM", 10}}));

  const absl::Status refused = Sell(own, "IBM", 20, &again, "b");
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  const absl::Status poor = Buy(own, "IBM", 100'000, &again, "c");
  EXPECT_TRUE(absl::IsFailedPrecondition(poor)) << poor;
  ASSERT_TRUE(Buy(own, "IBM", 10, &again, "d").ok());
  EXPECT_EQ(Sell(own, "IBM", 20, &again, "b"), refused) << "also when there are enough units";
  EXPECT_EQ(Buy(own, "IBM", 100'000, &again, "c"), poor);
  ASSERT_TRUE(Sell(own, "IBM", 20, &again, "e").ok());
  const int64_t cents = CentsOf(own);
  ASSERT_TRUE(Sell(own, "IBM", 20, &again, "e").ok());
  EXPECT_EQ(CentsOf(own), cents);
  EXPECT_TRUE(HeldBy(own).empty());
  EXPECT_EQ(Audit(), 0);
}

TEST_F(PartedWealthTest, ATradeKeepsThePriceOfItsDay) {
  const apps::SetClock clock;
  if (clock.Words().empty())
    GTEST_SKIP() << "2026-11-29: with a sanitizer, programs go without a preloaded clock";
  const Own& own = all_[0];
  Trade first, again, later;
  ASSERT_TRUE(Buy(own, "GOOG", 3, &first, "a").ok());
  ASSERT_TRUE(app_->Restart("wealth-management", {.wrapper = clock.Words()}).ok());
  clock.SetAhead(10 * 86'400);
  ASSERT_TRUE(Buy(own, "GOOG", 3, &again, "a").ok());
  EXPECT_EQ(first.SerializeAsString(), again.SerializeAsString());
  uint32_t then = 0;
  do {
    then = Today();
    ASSERT_TRUE(Buy(own, "GOOG", 1, &later).ok());
  } while (Today() != then);
  EXPECT_EQ(later.share_cents(), prices_.CentsOn("GOOG", then + 10).value());
  EXPECT_EQ(Audit(), 0);
}

TEST_F(WealthTest, SalesAtOnceSellEachUnitOnce) {
  constexpr int kSellers = 4, kSales = 5;
  const Own& own = all_[0];
  Trade bought;
  ASSERT_TRUE(Buy(own, "AAPL", 2 * kSales, &bought).ok());
  std::atomic<int> sold{0};
  std::vector<std::thread> sellers;
  for (int i = 0; i < kSellers; ++i) {
    sellers.emplace_back([&] {
      const std::unique_ptr<Channel> channel = Connect();
      for (int sale = 0; sale < kSales; ++sale) {
        Trade trade;
        const absl::Status status = Sell(own, "AAPL", 1, &trade, {}, channel.get());
        EXPECT_TRUE(status.ok() || absl::IsFailedPrecondition(status)) << status;
        sold += status.ok() ? 1 : 0;
      }
    });
  }
  for (std::thread& seller : sellers) seller.join();
  EXPECT_EQ(sold.load(), 2 * kSales);
  EXPECT_TRUE(HeldBy(own).empty());
  EXPECT_EQ(Audit(), 0);
}

TEST_F(WealthTest, RefusesBadInput) {
  const Own& own = all_[0];
  Trade trade;
  for (const int64_t units : {int64_t{0}, int64_t{-1}, kMostUnits + 1, std::numeric_limits<int64_t>::min(),
                              std::numeric_limits<int64_t>::max()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Buy(own, "AAPL", units, &trade))) << units;
    EXPECT_TRUE(absl::IsInvalidArgument(Sell(own, "AAPL", units, &trade))) << units;
  }
  for (const std::string& symbol : {std::string(), std::string("aapl"), std::string(100'000, 'A')}) {
    EXPECT_TRUE(absl::IsNotFound(Buy(own, symbol, 1, &trade)));
    EXPECT_TRUE(absl::IsNotFound(Sell(own, symbol, 1, &trade)));
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(Buy(own, "AAPL", kMostUnits, &trade)));
  EXPECT_TRUE(absl::IsFailedPrecondition(Sell(own, "AAPL", 1, &trade)));
  EXPECT_EQ(CentsOf(own), kDeposit);
  EXPECT_TRUE(HeldBy(own).empty());
  EXPECT_EQ(Audit(), 0);
}

TEST_F(WealthTest, AnotherCustomersIsAsIfItWereNotThere) {
  const Own &ann = all_[0], &bob = Other(ann, /*same_shard=*/true);
  constexpr uint64_t kUnknown = 987654321;
  Trade theirs, seen;
  ASSERT_TRUE(Buy(bob, "AMZN", 5, &theirs).ok());
  const auto all = [&](uint64_t trade, uint64_t account) {
    Own mixed = ann;
    mixed.id = account;
    return std::array<absl::Status, 3>{LookAt(ann, trade, &seen), Buy(mixed, "AMZN", 1, &seen),
                                       Sell(mixed, "AMZN", 1, &seen)};
  };
  const auto found = all(theirs.id(), bob.id), missing = all(kUnknown, kUnknown);
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_TRUE(absl::IsNotFound(found[i])) << i << " " << found[i];
    EXPECT_EQ(WordsOf(found[i], i == 0 ? theirs.id() : bob.id), WordsOf(missing[i], kUnknown)) << i;
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(Sell(ann, "AMZN", 1, &seen))) << "the units are another's";
  EXPECT_EQ(CentsOf(bob), kDeposit - theirs.cents());
  EXPECT_EQ(HeldBy(bob), (Units{{"AMZN", 5}}));
  EXPECT_TRUE(HeldBy(ann).empty());
}

TEST_F(WealthTest, ASaleThatTheBooksRefuseGivesItsUnitsBack) {
  const Own& own = all_[0];
  Trade trade;
  ASSERT_TRUE(Buy(own, "IBM", 10, &trade).ok());
  const auto books = internal::SqliteSession::Open(
      {.path = Join(Folder(), "/", BooksOf({static_cast<uint32_t>(own.shard()), kShards}), ".db")});
  ASSERT_TRUE(books.ok()) << books.status();
  ASSERT_TRUE((*books)->Execute("UPDATE accounts SET open = 0 WHERE id = ?1", {own.id}).ok());
  const absl::Status refused = Sell(own, "IBM", 4, &trade, "a");
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_EQ(HeldBy(own), (Units{{"IBM", 10}}));
  ASSERT_TRUE((*books)->Execute("UPDATE accounts SET open = 1 WHERE id = ?1", {own.id}).ok());
  EXPECT_EQ(Sell(own, "IBM", 4, &trade, "a"), refused);
  EXPECT_EQ(HeldBy(own), (Units{{"IBM", 10}}));
  ASSERT_TRUE(Sell(own, "IBM", 10, &trade).ok());
  EXPECT_TRUE(HeldBy(own).empty());
  EXPECT_EQ(Audit(), 0);
}

// As version 4 of the schema has left it: without sums of what customers hold.
TEST_F(WealthTest, HoldingsOfBeforeAreSummedOnce) {
  const Own& own = all_[0];
  Trade trade;
  ASSERT_TRUE(Buy(own, "IBM", 10, &trade).ok());
  ASSERT_TRUE(Sell(own, "IBM", 3, &trade).ok());
  ASSERT_TRUE(Buy(own, "AAPL", 2, &trade).ok());
  app_->Kill("front-end");  // one process is all services
  const auto kept = internal::SqliteSession::Open({.path = Join(Folder(), "/wealth-management.db")});
  ASSERT_TRUE(kept.ok()) << kept.status();
  for (const char* const sql : {"DROP TABLE holdings", "DROP INDEX payments_waiting",
                                "DROP INDEX payments_refused", "PRAGMA user_version = 4"})
    ASSERT_TRUE((*kept)->Execute(sql).ok());
  ASSERT_TRUE(app_->Restart("front-end").ok());
  EXPECT_EQ(HeldBy(own), (Units{{"AAPL", 2}, {"IBM", 7}}));
  EXPECT_EQ(Audit(), 0);
}

TEST_F(WealthTest, TheAuditNamesWhatIsWrong) {
  const Own& own = all_[0];
  Trade trade;
  ASSERT_TRUE(Buy(own, "AAPL", 5, &trade).ok());
  std::string text;
  EXPECT_EQ(Audit(&text), 0) << text;
  const auto kept = internal::SqliteSession::Open({.path = Join(Folder(), "/wealth-management.db")});
  ASSERT_TRUE(kept.ok()) << kept.status();
  ASSERT_TRUE((*kept)->Execute("UPDATE trades SET units = 6 WHERE id = ?1", {trade.id()}).ok());
  EXPECT_EQ(Audit(&text), 99);
  EXPECT_THAT(text, HasSubstr(std::to_string(trade.id())));
  ASSERT_TRUE((*kept)->Execute("UPDATE trades SET units = 5 WHERE id = ?1", {trade.id()}).ok());
  EXPECT_EQ(Audit(&text), 0) << text;
  ASSERT_TRUE((*kept)->Execute("UPDATE holdings SET units = 4").ok());
  EXPECT_EQ(Audit(&text), 99);
  EXPECT_THAT(text, HasSubstr("has 5 units of AAPL, but the portfolio has 4"));
  ASSERT_TRUE((*kept)->Execute("UPDATE holdings SET units = 5").ok());
  EXPECT_EQ(Audit(&text), 0) << text;
  // The order is not booked any more, but its money is.
  ASSERT_TRUE((*kept)->Execute("UPDATE payments SET state = 2 WHERE id = ?1", {trade.id()}).ok());
  ASSERT_TRUE((*kept)->Execute("DELETE FROM holdings").ok());
  EXPECT_EQ(Audit(&text), 99);
  EXPECT_THAT(text, HasSubstr(std::to_string(BanksInvestments(own.shard(), kShards))));
}

TEST_F(PartedWealthTest, TradesOutliveTheServicesThatKeepThem) {
  const uint64_t seed = TestSeed();
  const size_t accounts = all_.size() / 6;  // of each customer
  std::array<int64_t, kCustomers> rest{};
  std::array<Units, kCustomers> held;
  ActWhileKilled({"wealth-management", "posting", "wealth-management", "posting"}, [&](int customer) {
    const std::unique_ptr<Channel> channel = Connect();
    Rng rng(seed + static_cast<uint64_t>(customer));
    const auto self = static_cast<size_t>(customer);
    const Own& own = all_[self * accounts];
    const std::array<std::string, 2> symbols = {"AAPL", "MSFT"};
    for (int i = 0; !stop_.load(); ++i) {
      const auto units = static_cast<int64_t>(1 + rng.Below(5));
      const std::string symbol = symbols[rng.Below(2)], key = Join("trade ", i);
      const bool sale = rng.Below(2) == 0 || rest[self] < -kDeposit / 2;
      int64_t& has = held[self][symbol];
      Trade trade;
      const absl::Status status = Answered([&] {
        return sale ? Sell(own, symbol, units, &trade, key, channel.get(), kPatience)
                    : Buy(own, symbol, units, &trade, key, channel.get(), kPatience);
      });
      if (sale && has < units) {
        ASSERT_TRUE(absl::IsFailedPrecondition(status)) << status;
        continue;
      }
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_EQ(trade.cents(),
                sale ? ProceedsOfUnits(units, trade.share_cents()) : CostOfUnits(units, trade.share_cents()));
      has += sale ? -units : units;
      rest[self] += sale ? trade.cents() : -trade.cents();
    }
  });
  for (size_t i = 0; i < rest.size(); ++i) {
    EXPECT_EQ(CentsOf(all_[i * accounts]), kDeposit + rest[i]);
    std::erase_if(held[i], [](const auto& one) { return one.second == 0; });
    EXPECT_EQ(HeldBy(all_[i * accounts]), held[i]);
  }
  EXPECT_EQ(Audit(), 0);
}

}  // namespace
}  // namespace curtail::bank
