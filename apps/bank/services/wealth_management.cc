// SPDX-License-Identifier: Apache-2.0
//
// Wealth management: customers buy and sell units of stocks at the price of the day on which they give the order.
//
// A trade is an order (orders.h) between the customer's account and the bank's account for investments beside it, so that one
// shard decides it. Before the transfer, the trade is entered with its units, once: that decides whether a sale has the units, for
// ever. A holding gets the units of a purchase in the transaction that writes that its order is booked. It loses the units of a sale when
// the trade is entered, and gets them back in the transaction that writes that the order is refused. So it is never negative.
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "apps/bank/common/leaving.h"
#include "apps/bank/common/orders.h"
#include "apps/bank/common/prices.h"
#include "apps/bank/data.h"
#include "curtail/rpc/when_all.h"

namespace curtail::bank {

// `refused` is 0 but for trades of before kRefusalsSchema.
const char kTradesSchema[] =
    "CREATE TABLE trades(id INTEGER PRIMARY KEY, owner INTEGER NOT NULL, symbol TEXT NOT NULL, units INTEGER"
    " NOT NULL, refused INTEGER NOT NULL) STRICT;"
    "CREATE INDEX trades_of ON trades(owner, symbol)";

// Units that customers have and may sell: summed over the trades of before, then kept up.
std::string HoldingsSchema() {
  return Join(
      "CREATE TABLE holdings(owner INTEGER, symbol TEXT, units INTEGER NOT NULL, PRIMARY KEY(owner, symbol))"
      " STRICT, WITHOUT ROWID;"
      "INSERT INTO holdings(owner, symbol, units) SELECT trades.owner, symbol, CAST(sum(units) AS INTEGER)"
      " FROM trades JOIN payments ON payments.id = trades.id WHERE refused = 0 AND (state = ",
      static_cast<int>(Payment::BOOKED), " OR (units < 0 AND state <> ", static_cast<int>(Payment::REFUSED),
      ")) GROUP BY trades.owner, symbol");
}

absl::Status AddUnits(SqlSession& s, uint64_t owner, const std::string& symbol, int64_t units) {
  return s.Execute(
      "INSERT INTO holdings(owner, symbol, units) VALUES (?1, ?2, ?3)"
      " ON CONFLICT(owner, symbol) DO UPDATE SET units = holdings.units + excluded.units",
      {owner, symbol, units});
}

struct WealthManagementService final : WealthManagement::CoroutineService {
  WealthManagementService(SqlDatabase& d, Env& e, Prices p)
      : db(d),
        env(e),
        prices(std::move(p)),
        trades(d, e, apps::Saga::kNeverAgain,
               {.before = [this](Context& ctx, const apps::SagaRow& row,
                                 const KeptPayment& kept) { return Take(ctx, row, kept); },
                .moved = Count}) {}

  static uint32_t Today() { return static_cast<uint32_t>(apps::NowMs() / 86'400'000); }

  Coroutine Options(Context&, const apps::Nothing&, InvestmentList* reply) override {
    const uint32_t today = Today();
    for (const std::string& symbol : prices.Symbols()) {
      Investment& one = *reply->add_investments();
      one.set_symbol(symbol);
      one.set_share_cents(prices.CentsOn(symbol, today).value_or(0));
    }
    co_return absl::OkStatus();
  }

  Coroutine Portfolio(Context& ctx, const apps::UserId& request, bank::Portfolio* reply) override {
    std::map<std::string, int64_t> held;
    absl::Status status =
        co_await db.Reading(ctx.deadline(), [&](SqlSession& s) { return Held(s, request.user(), &held); });
    if (!status.ok()) co_return status;
    const uint32_t today = Today();
    for (const auto& [symbol, units] : held) {
      const absl::StatusOr<int64_t> share_cents = prices.CentsOn(symbol, today);
      if (!share_cents.ok()) co_return absl::DataLossError(Join("there is no price of ", symbol));
      Holding& one = *reply->add_holdings();
      one.set_symbol(symbol);
      one.set_units(units);
      one.set_cents(ProceedsOfUnits(units, *share_cents));
    }
    co_return status;
  }

  // The units of each stock that `owner` has and may sell.
  static absl::Status Held(SqlSession& s, uint64_t owner, std::map<std::string, int64_t>* held) {
    return s.Query("SELECT symbol, units FROM holdings WHERE owner = ?1 AND units <> 0 ORDER BY symbol",
                   {owner}, [&](const SqlRow& row) { held->emplace(row.Text(0), row.Integer(1)); });
  }

  // The units of a purchase that is booked, or of a sale that is refused after it was entered.
  static absl::Status Count(SqlSession& s, const apps::SagaRow& next) {
    KeptPayment kept;
    if (!kept.ParseFromString(next.bytes))
      return absl::DataLossError(Join("trade ", next.id, " is unreadable"));
    const Trade& trade = kept.trade();
    if (next.state != (trade.sale() ? Payment::REFUSED : Payment::BOOKED)) return absl::OkStatus();
    bool entered = false;
    absl::Status status = s.Query("SELECT 1 FROM trades WHERE id = ?1 AND refused = 0", {next.id},
                                  [&](const SqlRow&) { entered = true; });
    return status.ok() && entered ? AddUnits(s, next.owner, trade.symbol(), trade.units()) : status;
  }

  Coroutine Buy(Context& ctx, const TradeOrder& request, Trade* reply) override {
    return Give(ctx, request, /*sale=*/false, reply);
  }
  Coroutine Sell(Context& ctx, const TradeOrder& request, Trade* reply) override {
    return Give(ctx, request, /*sale=*/true, reply);
  }

  Coroutine Give(Context& ctx, const TradeOrder& request, bool sale, Trade* reply) {
    const absl::StatusOr<int64_t> share_cents = prices.CentsOn(request.symbol(), Today());
    if (!share_cents.ok()) co_return share_cents.status();
    if (request.units() < 1 || request.units() > kMostUnits)
      co_return absl::InvalidArgumentError(Join("a trade has 1 to ", kMostUnits, " units"));
    const uint64_t investments = shards.InvestmentsBeside(request.account());
    PaymentOrder order;
    order.set_customer(request.customer());
    order.set_from(sale ? investments : request.account());
    order.set_cents(sale ? ProceedsOfUnits(request.units(), *share_cents)
                         : CostOfUnits(request.units(), *share_cents));
    order.set_text(Join(sale ? "sale of " : "purchase of ", request.symbol()));
    Trade& trade = *order.mutable_trade();
    trade.set_symbol(request.symbol());
    trade.set_units(request.units());
    trade.set_sale(sale);
    trade.set_share_cents(*share_cents);
    trade.set_account(request.account());
    if (absl::Status status = Orders::Check(order); !status.ok()) co_return status;
    BalanceQuery own;
    own.set_account(request.account());
    own.set_owner(request.customer());
    auto found = co_await WhenAllOk(ctx, Ask(shards.Of(request.account()), Posting::kBalance, own),
                                    Ask(unique_id, apps::UniqueId::kNext, OneId()));
    if (!found.ok()) co_return found.status();
    const uint64_t id = std::get<1>(*found).ids(0);
    Payment given;
    absl::Status status = co_await trades.Give(ctx, order, id, sale ? investments : request.customer(),
                                               sale ? request.account() : investments, &given);
    if (status.ok()) status = co_await Look(ctx, request.customer(), given.id(), reply);
    co_return status;
  }

  // Enters the trade, which decides whether a sale has its units.
  Coroutine Take(Context& ctx, const apps::SagaRow& row, const KeptPayment& kept) {
    const Trade& trade = kept.trade();
    absl::Status decided = co_await apps::DecideOnce(ctx, db, row.id, row.round, [&](SqlSession& s) {
      bool entered = false, refused = false;
      absl::Status done = s.Query("SELECT refused FROM trades WHERE id = ?1", {row.id},
                                  [&](const SqlRow& one) { entered = true, refused = one.Integer(0) != 0; });
      std::map<std::string, int64_t> held;
      if (done.ok() && !entered) done = CheckStays(s, row.owner);
      if (done.ok() && !entered && trade.sale()) done = Held(s, row.owner, &held);
      if (done.ok() && (refused || (!entered && trade.sale() && held[trade.symbol()] < trade.units())))
        done = absl::FailedPreconditionError(Join("you have fewer units of ", trade.symbol(), " to sell"));
      if (!done.ok() || entered) return done;
      if (trade.sale()) done = AddUnits(s, row.owner, trade.symbol(), -trade.units());
      if (!done.ok()) return done;
      return s.Execute("INSERT INTO trades(id, owner, symbol, units, refused) VALUES (?1, ?2, ?3, ?4, 0)",
                       {row.id, row.owner, trade.symbol(), trade.sale() ? -trade.units() : trade.units()});
    });
    if (!decided.ok()) co_return decided;
    OwnedAccount investments;
    investments.set_account(shards.InvestmentsBeside(trade.account()));
    investments.set_owner(investments.account());
    investments.set_limit(apps::kUnlimited);
    auto [opened] = co_await WhenAll(ctx, Ask(shards.Of(trade.account()), Posting::kOpen, investments));
    co_return opened.status();
  }

  Coroutine Status(Context& ctx, const PaymentQuery& request, Trade* reply) override {
    return Look(ctx, request.customer(), request.id(), reply);
  }

  // The same for the trade of another customer as for a trade that does not exist.
  Coroutine Look(Context& ctx, uint64_t customer, uint64_t id, Trade* reply) {
    KeptPayment kept;
    bool found = false, readable = false;
    int state = Payment::PENDING;
    absl::Status status = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query("SELECT bytes, state FROM payments WHERE id = ?1 AND owner = ?2", {id, customer},
                     [&](const SqlRow& row) {
                       found = true;
                       readable = kept.ParseFromString(std::string(row.Text(0)));
                       state = static_cast<int>(row.Integer(1));
                     });
    });
    if (!status.ok()) co_return status;
    if (!found) co_return absl::NotFoundError(Join("there is no trade ", id));
    if (!readable) co_return absl::DataLossError(Join("trade ", id, " is unreadable"));
    *reply = kept.trade();
    reply->set_id(id);
    reply->set_cents(kept.shown().cents());
    reply->set_created_ms(kept.shown().created_ms());
    reply->set_state(static_cast<Payment::State>(state));
    if (!reply->sale()) reply->set_version(kept.shown().version());
    co_return status;
  }

  static absl::Status CheckSold(SqlSession& s, uint64_t customer) {
    std::map<std::string, int64_t> held;
    absl::Status status = Held(s, customer, &held);
    if (!status.ok() || held.empty()) return status;
    return absl::FailedPreconditionError(Join("the portfolio has ", held.begin()->second, " units of ",
                                              held.begin()->first, "; sell them first"));
  }
  static constexpr bank::Held kHeld{
      .what = "trade", .busy = "SELECT id FROM payments WHERE owner = ?1 AND open = 1", .check = CheckSold};
  Coroutine Leave(Context& ctx, const LeaveOrder& request, Holdings* reply) override {
    return LeaveService(ctx, db, kHeld, request, reply);
  }
  Coroutine Stay(Context& ctx, const LeaveOrder& request, Holdings* reply) override {
    return StayAtService(ctx, db, kHeld, request, reply);
  }

  std::vector<DeclaredPath> Paths() const override {
    constexpr auto kPosting = Posting::kServiceName;
    return {{"Options", {}},
            {"Portfolio", {}},
            {"Buy", {kPosting, unique_id}},
            {"Sell", {kPosting, unique_id}},
            {"Status", {}},
            {"Leave", {}},
            {"Stay", {}}};
  }

  SqlDatabase& db;
  Env& env;
  const Prices prices;
  const apps::UniqueId::Stub unique_id = env.Stub<apps::UniqueId>("unique-id");
  const Shards shards{env};
  Orders trades;
};

HostedService HostedWealthManagement() {
  return apps::HostedOnData(
      kApplication, "wealth-management", [](Env& env, const apps::DataOptions& data) -> MadeService {
        absl::StatusOr<Prices> prices = Prices::Builtin();
        if (!prices.ok()) return prices.status();
        auto db = apps::OpenData(env, data, "wealth-management",
                                 {Orders::Schema(), kTradesSchema, kLeavingSchema, apps::kRefusalsSchema,
                                  HoldingsSchema(), Orders::OpenSchema(), Orders::RefusedSchema()});
        if (!db.ok()) return db.status();
        return std::make_unique<WealthManagementService>(**db, env, *std::move(prices));
      });
}

}  // namespace curtail::bank
