// SPDX-License-Identifier: Apache-2.0
//
// Credit cards: which there are, whose they are, their limits, and purchases with them. What is on them, `posting` knows. A refused
// purchase stays refused until it is forgotten.
//
// A card is in the books before it is listed, as an account is (accounts.cc).
#include "apps/bank/common/card_number.h"
#include "apps/bank/common/leaving.h"
#include "apps/bank/common/orders.h"
#include "apps/bank/data.h"
#include "curtail/rpc/when_all.h"

namespace curtail::bank {

const char kCardsSchema[] =
    "CREATE TABLE cards(number INTEGER PRIMARY KEY, id INTEGER NOT NULL, owner INTEGER NOT NULL,"
    " most INTEGER NOT NULL) STRICT;"
    "CREATE UNIQUE INDEX cards_by_id ON cards(id);"
    "CREATE INDEX cards_of ON cards(owner, number)";

struct CreditCardService final : CreditCards::CoroutineService {
  CreditCardService(SqlDatabase& d, Env& e)
      : db(d), env(e), purchases(d, e, apps::Saga::kNeverAgain, {.forgets = true}, &access) {}

  Coroutine Issue(Context& ctx, const CardOrder& request, Card* reply) override {
    OwnedAccount account;
    account.set_account(request.id());
    account.set_owner(request.id());
    account.set_limit(request.limit_cents());
    bool full = false;  // then Enter() refuses, and the books have no more than before
    absl::Status status = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query("SELECT count(*), count(CASE WHEN id = ?2 THEN 1 END) FROM cards WHERE owner = ?1",
                     {request.customer(), request.id()},
                     [&](const SqlRow& row) { full = row.Integer(0) >= kMostCards && row.Integer(1) == 0; });
    });
    if (!status.ok()) co_return status;
    if (!full) {
      auto [opened] = co_await WhenAll(ctx, Ask(shards.Of(request.id()), Posting::kOpen, account));
      if (!opened.ok()) co_return opened.status();
    }
    co_return co_await apps::DecideOnce(ctx, db, request.id(), /*round=*/0,
                                        [&](SqlSession& s) { return Enter(s, request, reply); });
  }

  // Writers take turns, so that numbers have no gaps.
  static absl::Status Enter(SqlSession& s, const CardOrder& order, Card* reply) {
    absl::Status status = Look(s, order.customer(), order.id(), reply);
    if (!absl::IsNotFound(status)) return status;
    if (status = CheckStays(s, order.customer()); !status.ok()) return status;
    uint64_t number = 0, owned = 0;
    status = s.Query(
        "SELECT (SELECT coalesce(max(number), 0) + 1 FROM cards), (SELECT count(*) FROM cards WHERE owner = "
        "?1)",
        {order.customer()}, [&](const SqlRow& row) { number = row.Unsigned(0), owned = row.Unsigned(1); });
    if (!status.ok()) return status;
    if (owned >= kMostCards)
      return absl::FailedPreconditionError(Join("a customer has at most ", kMostCards, " cards"));
    if (number > kMostCard) return absl::FailedPreconditionError("the bank has no more card numbers");
    Put(order.id(), number, order.limit_cents(), reply);
    return s.Execute("INSERT INTO cards(number, id, owner, most) VALUES (?1, ?2, ?3, ?4)",
                     {number, order.id(), order.customer(), order.limit_cents()});
  }

  Coroutine List(Context& ctx, const apps::UserId& request, CardList* reply) override {
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query("SELECT id, number, most FROM cards WHERE owner = ?1 ORDER BY number", {request.user()},
                     [&](const SqlRow& row) {
                       Put(row.Unsigned(0), row.Unsigned(1), row.Integer(2), reply->add_cards());
                     });
    });
  }

  Coroutine Find(Context& ctx, const CardQuery& request, Card* reply) override {
    return Find(ctx, request.customer(), request.card(), reply);
  }
  Coroutine Find(Context& ctx, uint64_t customer, uint64_t card, Card* reply) {
    co_return co_await db.Reading(ctx.deadline(),
                                  [&](SqlSession& s) { return Look(s, customer, card, reply); });
  }
  // The same for the card of another customer as for a card that does not exist.
  static absl::Status Look(SqlSession& s, uint64_t customer, uint64_t card, Card* reply) {
    absl::Status status =
        s.Query("SELECT number, most FROM cards WHERE id = ?1 AND owner = ?2", {card, customer},
                [&](const SqlRow& row) { Put(card, row.Unsigned(0), row.Integer(1), reply); });
    return status.ok() && reply->id() == 0 ? absl::NotFoundError(Join("there is no card ", card)) : status;
  }
  static void Put(uint64_t id, uint64_t number, int64_t limit, Card* card) {
    card->set_id(id);
    card->set_number(CardNumberOf(number));
    card->set_limit_cents(limit);
  }

  Coroutine Balance(Context& ctx, const CardQuery& request, CardBalance* reply) override {
    Card card;
    absl::Status status = co_await Find(ctx, request, &card);
    if (!status.ok()) co_return status;
    BalanceQuery query;
    query.set_account(card.id());
    query.set_owner(card.id());
    query.set_at_least(request.at_least());
    auto [balance] = co_await WhenAll(ctx, Ask(shards.Of(card.id()), Posting::kBalance, query));
    if (!balance.ok()) co_return balance.status();
    reply->set_version(balance->version());
    reply->set_debt_cents(-balance->cents());
    reply->set_available_cents(balance->available_cents());
    reply->set_limit_cents(card.limit_cents());
    co_return status;
  }

  Coroutine Statement(Context& ctx, const CardQuery& request, Movements* reply) override {
    Card card;
    absl::Status status = co_await Find(ctx, request, &card);
    if (!status.ok()) co_return status;
    ActivityQuery page;
    page.set_account(card.id());
    page.set_before(request.before());
    page.set_limit(request.limit());
    co_return co_await call(ctx, activity.channel(), Activity::kList, page, reply);
  }

  Coroutine Purchase(Context& ctx, const PaymentOrder& request, Payment* reply) override {
    Card card;
    absl::Status status = co_await Find(ctx, request.customer(), request.card(), &card);
    if (!status.ok()) co_return status;
    PaymentOrder order = request;
    order.set_from(card.id());
    co_return co_await purchases.PayTo(ctx, accounts, order, card.id(), reply);
  }
  Coroutine Status(Context& ctx, const PaymentQuery& request, Payment* reply) override {
    return purchases.Status(ctx, request, reply);
  }

  static constexpr Held kHeld{.what = "card", .list = "SELECT id, id FROM cards WHERE owner = ?1"};
  Coroutine Leave(Context& ctx, const LeaveOrder& request, Holdings* reply) override {
    return LeaveService(ctx, db, kHeld, request, reply);
  }
  Coroutine Stay(Context& ctx, const LeaveOrder& request, Holdings* reply) override {
    return StayAtService(ctx, db, kHeld, request, reply);
  }

  std::vector<DeclaredPath> Paths() const override {
    constexpr auto kPosting = Posting::kServiceName;
    return {{"Issue", {kPosting}},
            {"List", {}},
            {"Find", {}},
            {"Balance", {kPosting}},
            {"Statement", {activity}},
            {"Purchase", {accounts, access, apps::UniqueId::kServiceName, kPosting}},
            {"Status", {kPosting}},
            {"Leave", {}},
            {"Stay", {}}};
  }

  SqlDatabase& db;
  Env& env;
  const Accounts::Stub accounts = env.Stub<Accounts>("accounts");
  const AccessControl::Stub access = env.Stub<AccessControl>("access-control");
  const Activity::Stub activity = env.Stub<Activity>("activity");
  const Shards shards{env};
  Orders purchases;
};

HostedService HostedCreditCard() {
  return apps::HostedWithData<CreditCardService>(
      kApplication, "credit-card",
      {kCardsSchema, Orders::Schema(), kLeavingSchema, apps::kRefusalsSchema, Orders::OpenSchema(),
       Orders::RefusedSchema()});
}

}  // namespace curtail::bank
