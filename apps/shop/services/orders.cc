// SPDX-License-Identifier: Apache-2.0
//
// Orders: quotes, and the orders that are placed of them. An order is PLACED, then COMMITTED or REJECTED by one write, and stays so, except
// that another write makes a COMMITTED order REFUNDED. It is open until all that follows from its last decision has happened.
//
// The queue has each open order. Place() puts it there. A thread does so again, if Place() could not, or died before it knew, and puts refunded
// orders there.
#include <algorithm>

#include "apps/kit/jobs/finisher.h"
#include "apps/kit/page.h"
#include "apps/kit/run_here.h"
#include "apps/kit/wall_clock.h"
#include "apps/shop/common/decision_waits.h"
#include "apps/shop/common/quoting.h"
#include "apps/shop/data.h"
#include "curtail/exec/aside.h"

namespace curtail::shop {

constexpr Nanos kVerdictTime = std::chrono::seconds(2);
constexpr int64_t kQueueMs = 5000;      // Place() has put an order into the queue by then
constexpr int64_t kKeptMs = 3'600'000;  // of a quote that has expired
constexpr int kMostOpen = 10'000;
constexpr int kRowsAtOnce = 64;

// name, content: of the request. queued: 1 once the queue is known to have the order in this state. number: 0 if it was not COMMITTED.
const char kOrdersSchema[] =
    "CREATE TABLE quotes(id INTEGER PRIMARY KEY, owner INTEGER NOT NULL, expires_ms INTEGER NOT NULL,"
    " bytes BLOB NOT NULL) STRICT;"
    "CREATE INDEX quotes_by_time ON quotes(expires_ms);"
    "CREATE TABLE orders(id INTEGER PRIMARY KEY, owner INTEGER NOT NULL, name TEXT NOT NULL,"
    " content TEXT NOT NULL, state INTEGER NOT NULL, number INTEGER NOT NULL, open INTEGER NOT NULL, queued "
    "INTEGER NOT NULL, placed_ms INTEGER NOT NULL,"
    " bytes BLOB NOT NULL) STRICT;"
    "CREATE UNIQUE INDEX orders_by_name ON orders(owner, name);"
    "CREATE UNIQUE INDEX orders_by_number ON orders(number) WHERE number > 0;"
    "CREATE INDEX orders_of ON orders(owner, id);"
    "CREATE INDEX orders_open ON orders(id) WHERE open = 1";

constexpr char kOrder[] = "SELECT id, owner, state, number, bytes, content FROM orders";

// A row of the table.
struct OrderRow {
  uint64_t id = 0, owner = 0, number = 0;
  Order::State state = Order::PLACED;
  std::string content;  // of its request, if that has a name
  KeptOrder kept;
  bool fresh = false;  // it was not there before
  bool stale = false;  // it is not there, as its quote has expired
};

struct OrdersService final : Orders::CoroutineService {
  OrdersService(SqlDatabase& d, Env& e)
      : db(d), env(e), queuing([this](auto stopping) { return QueueAll(stopping); }) {
    queuing.WorkWhileServing(env);
  }

  Coroutine Quote(Context& ctx, const QuoteOrder& request, shop::Quote* reply) override {
    KeptOrder kept;
    absl::Status status = co_await quoting.Make(ctx, request, &kept);
    if (!status.ok()) co_return status;
    *reply = kept.quote();
    const std::string bytes = kept.SerializeAsString();
    // One that is lost with the power is asked for again.
    co_return co_await db.Writing(
        ctx.deadline(),
        [&](SqlSession& s) {
          absl::Status written =
              s.Execute("INSERT INTO quotes(id, owner, expires_ms, bytes) VALUES (?1, ?2, ?3, ?4)",
                        {reply->id(), request.owner(), reply->expires_ms(), SqlValue::Bytes(bytes)});
          if (!written.ok()) return written;
          return s.Execute(
              "DELETE FROM quotes WHERE id IN (SELECT id FROM quotes WHERE expires_ms < ?1 ORDER BY "
              "expires_ms LIMIT 16)",
              {apps::NowMs() - kKeptMs});
        },
        Durable::kSoon);
  }

  Coroutine Place(Context& ctx, const OwnedQuote& request, Order* reply) override {
    const apps::Once once(ctx, request.owner());
    OrderRow row;
    absl::Status status = co_await db.Writing(
        ctx.deadline(), [&](SqlSession& s) { return EnterQuoted(s, once, request, &row); });
    if (!status.ok()) co_return status;
    if (row.stale) co_return co_await QuoteAgain(ctx, row);
    co_return co_await Answer(ctx, &row, reply);
  }

  Coroutine Buy(Context& ctx, const QuoteOrder& request, Order* reply) override {
    const apps::Once once(ctx, request.owner());
    OrderRow row = {.owner = request.owner()};
    absl::Status status = co_await db.Reading(
        ctx.deadline(), [&](SqlSession& s) { return FindNamed(s, once, NameOf(once, 0), &row); });
    if (status.ok() && row.id == 0) {
      KeptOrder kept;
      status = co_await quoting.Make(ctx, request, &kept);
      if (!status.ok()) co_return status;
      status = co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
        row = {.owner = request.owner(), .kept = kept};
        return EnterNamed(s, once, kept.quote().id(), &row);
      });
    }
    if (!status.ok()) co_return status;
    co_return co_await Answer(ctx, &row, reply);
  }

  // Waits for the decision of an order.
  Coroutine Answer(Context& ctx, OrderRow* row, Order* reply) {
    absl::Status status;
    if (row->state == Order::PLACED) status = co_await Await(ctx, row);
    if (status.ok() && row->state == Order::REJECTED)
      status = absl::Status(static_cast<absl::StatusCode>(row->kept.refusal_code()), row->kept.refusal());
    Show(*row, reply);
    co_return status;
  }

  // The name of a request without one is its quote, so that a quote is placed once.
  static std::string NameOf(const apps::Once& once, uint64_t quote) {
    return once.named() ? Join("key ", once.name()) : Join("quote ", quote);
  }

  static absl::Status TooMany() {
    return absl::ResourceExhaustedError("too many orders wait; try again later");
  }

  // Leaves `*row` if there is no such order of its owner.
  static absl::Status FindNamed(SqlSession& s, const apps::Once& once, const std::string& name,
                                OrderRow* row) {
    absl::Status status = Find(s, Join(kOrder, " WHERE owner = ?1 AND name = ?2"), {row->owner, name}, row);
    if (status.ok() && row->id != 0 && row->content != once.content())
      return absl::AlreadyExistsError("the idempotency key was given to another request of this caller");
    return status;
  }

  // Finds the order of the request or of the quote, or makes it of the quote.
  static absl::Status EnterQuoted(SqlSession& s, const apps::Once& once, const OwnedQuote& request,
                                  OrderRow* row) {
    *row = {.owner = request.owner()};
    absl::Status status = FindNamed(s, once, NameOf(once, request.quote()), row);
    if (status.ok() && row->id == 0) status = Find(s, request.owner(), request.quote(), row);
    if (!status.ok() || row->id != 0) return status;
    int64_t expires_ms = 0;
    status = s.Query("SELECT expires_ms, bytes FROM quotes WHERE id = ?1 AND owner = ?2",
                     {request.quote(), request.owner()}, [&](const SqlRow& found) {
                       expires_ms = found.Integer(0);
                       row->kept.ParseFromString(std::string(found.Text(1)));
                     });
    if (!status.ok()) return status;
    if (expires_ms == 0) return absl::NotFoundError("there is no such quote");
    row->stale = expires_ms <= apps::NowMs();
    if (row->stale) return absl::OkStatus();
    status = EnterNamed(s, once, request.quote(), row);
    return status.ok() ? s.Execute("DELETE FROM quotes WHERE id = ?1", {row->id}) : status;
  }

  // Finds the order of the request, or makes it of row->kept.
  static absl::Status EnterNamed(SqlSession& s, const apps::Once& once, uint64_t quote, OrderRow* row) {
    const std::string name = NameOf(once, quote);
    absl::Status status = FindNamed(s, once, name, row);
    if (!status.ok() || row->id != 0) return status;
    int64_t open = 0;
    status = s.Query("SELECT count(*) FROM (SELECT 1 FROM orders WHERE open = 1 LIMIT ?1) AS waiting",
                     {kMostOpen}, [&](const SqlRow& found) { open = found.Integer(0); });
    if (status.ok() && open == kMostOpen) return TooMany();
    row->id = quote;
    row->fresh = true;
    row->kept.set_placed_ms(apps::NowMs());
    const std::string bytes = row->kept.SerializeAsString();
    if (!status.ok()) return status;
    return s.Execute(
        "INSERT INTO orders(id, owner, name, content, state, number, open, queued, placed_ms, bytes)"
        " VALUES (?1, ?2, ?3, ?4, ?5, 0, 1, 0, ?6, ?7)",
        {row->id, row->owner, name, once.content(), int{Order::PLACED}, row->kept.placed_ms(),
         SqlValue::Bytes(bytes)});
  }

  Coroutine QuoteAgain(Context& ctx, const OrderRow& row) {
    shop::Quote fresh;
    absl::Status status = co_await Quote(ctx, Quoting::Again(row.owner, row.kept.quote()), &fresh);
    if (!status.ok()) co_return status;
    ctx.AddTrailingMetadata("quote", Join(fresh.id()));
    co_return absl::AbortedError(
        Join("the quote has expired; a new one is ", fresh.id(), ", of ", fresh.total_cents(), " cents"));
  }

  // Waits for the decision, which may not come in time.
  Coroutine Await(Context& ctx, OrderRow* row) {
    DecisionWaits::Wait wait(waits, row->id);
    absl::Status status;
    bool queued = true;
    if (row->fresh) {
      absl::Status put = co_await Queue(ctx, *row);
      queued = put.ok();
      if (absl::IsResourceExhausted(put)) status = co_await RejectOne(ctx, TooMany(), row);
    } else {
      status = co_await Look(ctx, row);  // it may have been decided before the wait began
    }
    if (!status.ok() || row->state != Order::PLACED || !queued) co_return status;
    const Deadline until = Deadline::In(std::min(kVerdictTime, ctx.deadline().Remaining() / 4 * 3));
    if (co_await Aside([&] { return wait.Until(until); })) co_return co_await Look(ctx, row);
    if (!row->fresh) co_return co_await Look(ctx, row);
    co_return co_await Mark(ctx, *row);
  }

  Coroutine Queue(Context& ctx, const OrderRow& row) const {
    QueuedOrder order;
    order.set_order(row.id);
    order.set_owner(row.owner);
    *order.mutable_quote() = row.kept.quote();
    order.set_card_token(row.kept.card_token());
    order.set_placed_ms(row.kept.placed_ms());
    auto [put] = co_await WhenAll(ctx, Ask(queue, OrderQueue::kPut, std::move(order)));
    co_return put.status();
  }

  // The queue has the order. Leaves an order that was refunded since: the queue may have ended what it had.
  Coroutine Mark(Context& ctx, const OrderRow& row) {
    co_return co_await db.Writing(
        ctx.deadline(),
        [&](SqlSession& s) {
          return s.Execute("UPDATE orders SET queued = 1 WHERE id = ?1 AND state = ?2",
                           {row.id, int{row.state}});
        },
        Durable::kSoon);
  }

  Coroutine Look(Context& ctx, OrderRow* row) {
    co_return co_await db.Reading(ctx.deadline(),
                                  [&](SqlSession& s) { return Find(s, row->owner, row->id, row); });
  }

  // Puts orders into the queue that Place() has left, and refunded ones; at first, all decided ones that are open.
  absl::Status QueueAll(absl::FunctionRef<bool()> stopping) {
    constexpr Nanos kTime = std::chrono::seconds(5);
    // Finish() does not wait for the disk: a loss of power may have opened an order again that the queue has forgotten.
    if (!open_are_queued) {
      absl::Status reset = db.Write(Deadline::In(kTime), [](SqlSession& s) {
        return s.Execute("UPDATE orders SET queued = 0 WHERE open = 1 AND queued = 1 AND state <> ?1",
                         {int{Order::PLACED}});
      });
      if (!reset.ok()) return reset;
      open_are_queued = true;
    }
    std::vector<OrderRow> rows;
    const int64_t now = apps::NowMs();
    absl::Status status = db.Read(Deadline::In(kTime), [&](SqlSession& s) {
      // A clock that was ahead delays none.
      return s.Query(Join(kOrder,
                          " WHERE open = 1 AND queued = 0 AND (state = ?4 OR NOT placed_ms BETWEEN ?1 AND ?2)"
                          " ORDER BY id LIMIT ?3"),
                     {now - kQueueMs, now, kRowsAtOnce, int{Order::REFUNDED}},
                     [&](const SqlRow& row) { Read(row, &rows.emplace_back()); });
    });
    for (const OrderRow& row : rows) {
      if (!status.ok() || stopping()) return status;
      Context ctx(kTime);
      status = apps::RunHere(Queue(ctx, row));
      if (status.ok()) status = apps::RunHere(Mark(ctx, row));
    }
    return status;
  }

  Coroutine Get(Context& ctx, const OwnedOrder& request, Order* reply) override {
    OrderRow row = {.id = request.order(), .owner = request.owner()};
    absl::Status status = co_await Look(ctx, &row);
    if (status.ok() && row.kept.placed_ms() == 0) status = NoOrder();
    Show(row, reply);
    co_return status;
  }
  static absl::Status NoOrder() { return absl::NotFoundError("there is no such order"); }

  Coroutine List(Context& ctx, const OrdersOf& request, OrderList* reply) override {
    const uint64_t limit = apps::LimitOf(request.limit());
    absl::Status status = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query(Join(kOrder, " WHERE owner = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3"),
                     {request.owner(), apps::BeforeOf(request.before()), limit}, [&](const SqlRow& found) {
                       OrderRow row;
                       Read(found, &row);
                       Show(row, reply->add_orders());
                     });
    });
    if (status.ok() && static_cast<uint64_t>(reply->orders_size()) == limit)
      reply->set_next(reply->orders().rbegin()->id());
    co_return status;
  }

  Coroutine Cancel(Context& ctx, const OwnedOrder& request, Order* reply) override {
    OrderRow row = {.id = request.order(), .owner = request.owner()};
    absl::Status status =
        co_await RejectOne(ctx, absl::FailedPreconditionError("the customer has cancelled the order"), &row);
    if (status.ok() && row.kept.placed_ms() == 0) status = NoOrder();
    if (status.ok() && row.state != Order::REJECTED)
      status = absl::FailedPreconditionError("the order was committed");
    Show(row, reply);
    co_return status;
  }

  // An order that is still open may not have been charged yet.
  Coroutine Refund(Context& ctx, const Refunding& request, Order* reply) override {
    OrderRow row;
    absl::Status status = co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      row = OrderRow();
      absl::Status written = s.Execute(
          "UPDATE orders SET state = ?2, open = 1, queued = 0 WHERE id = ?1 AND state = ?3 AND open = 0",
          {request.order(), int{Order::REFUNDED}, int{Order::COMMITTED}});
      if (written.ok()) written = Find(s, Join(kOrder, " WHERE id = ?1"), {request.order()}, &row);
      if (!written.ok() || row.state == Order::REFUNDED) return written;
      if (row.id == 0) return NoOrder();
      if (row.state == Order::COMMITTED)
        return absl::AbortedError("the order has just been committed; try again later");
      return absl::FailedPreconditionError("only a committed order is refunded");
    });
    if (!status.ok()) co_return status;
    queuing.Wake();
    Show(row, reply);
    co_return status;
  }

  // Rejects an order of its owner, unless it is decided, and sets `*row` to it.
  Coroutine RejectOne(Context& ctx, const absl::Status& why, OrderRow* row) {
    const uint64_t id = row->id, owner = row->owner;
    absl::Status status = co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      *row = OrderRow();
      absl::Status found = Find(s, owner, id, row);
      if (!found.ok() || row->id == 0 || row->state != Order::PLACED) return found;
      return Decide(s, why, row);
    });
    if (status.ok()) waits.Decided(id);
    co_return status;
  }

  // The decision. REQUIRES: the order is PLACED.
  static absl::Status Decide(SqlSession& s, const absl::Status& verdict, OrderRow* row) {
    row->state = verdict.ok() ? Order::COMMITTED : Order::REJECTED;
    row->kept.set_refusal_code(verdict.raw_code());
    row->kept.set_refusal(std::string(Message(verdict)));
    row->kept.set_decided_ms(apps::NowMs());
    absl::Status status;
    if (verdict.ok())
      status = s.Query("SELECT coalesce(max(number), 0) + 1 FROM orders WHERE number > 0", {},
                       [&](const SqlRow& found) { row->number = found.Unsigned(0); });
    if (!status.ok()) return status;
    const std::string bytes = row->kept.SerializeAsString();
    return s.Execute("UPDATE orders SET state = ?2, number = ?3, bytes = ?4 WHERE id = ?1",
                     {row->id, int{row->state}, row->number, SqlValue::Bytes(bytes)});
  }

  Coroutine Decide(Context& ctx, const Verdicts& request, Decisions* reply) override {
    if (absl::Status status = apps::CheckCount(request.verdicts_size(), kMostOrders, "orders"); !status.ok())
      co_return status;
    absl::Status status = co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      reply->clear_decisions();
      for (const Verdict& verdict : request.verdicts()) {
        OrderRow row = {.state = Order::REJECTED};
        absl::Status decided = Find(s, Join(kOrder, " WHERE id = ?1"), {verdict.order()}, &row);
        if (decided.ok() && row.state == Order::PLACED)
          decided =
              Decide(s, absl::Status(static_cast<absl::StatusCode>(verdict.code()), verdict.why()), &row);
        if (!decided.ok()) return decided;
        Decision& decision = *reply->add_decisions();
        decision.set_order(verdict.order());
        decision.set_state(row.state);
        decision.set_number(row.number);
      }
      return absl::OkStatus();
    });
    for (const Decision& decision : reply->decisions())
      if (status.ok()) waits.Decided(decision.order());
    co_return status;
  }

  Coroutine Finish(Context& ctx, const Decisions& request, apps::Nothing*) override {
    absl::Status status = apps::CheckCount(request.decisions_size(), kMostOrders, "orders");
    if (!status.ok()) co_return status;
    std::vector<SqlValue> ended;
    for (const Decision& decision : request.decisions()) {
      ended.emplace_back(decision.order());
      ended.emplace_back(int{decision.state()});
    }
    co_return co_await db.Writing(
        ctx.deadline(),
        [&](SqlSession& s) {
          return s.QueryEach("UPDATE orders SET open = 0 WHERE id = ?1 AND state = ?2", 2, ended,
                             [](size_t, const SqlRow&) {});
        },
        Durable::kSoon);
  }

  static absl::Status Find(SqlSession& s, uint64_t owner, uint64_t id, OrderRow* row) {
    return Find(s, Join(kOrder, " WHERE owner = ?1 AND id = ?2"), {owner, id}, row);
  }
  // Leaves `*row` if there is none.
  static absl::Status Find(SqlSession& s, const std::string& sql, std::initializer_list<SqlValue> values,
                           OrderRow* row) {
    return s.Query(sql, values, [&](const SqlRow& found) { Read(found, row); });
  }
  static void Read(const SqlRow& found, OrderRow* row) {
    row->id = found.Unsigned(0);
    row->owner = found.Unsigned(1);
    row->state = static_cast<Order::State>(found.Integer(2));
    row->number = found.Unsigned(3);
    const std::string_view bytes = found.Text(4);
    row->kept.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
    row->content = found.Text(5);
  }
  static void Show(const OrderRow& row, Order* reply) {
    reply->set_id(row.id);
    reply->set_state(row.state);
    reply->set_number(row.number);
    reply->set_reason(row.kept.refusal());
    *reply->mutable_quote() = row.kept.quote();
    reply->set_placed_ms(row.kept.placed_ms());
    reply->set_decided_ms(row.kept.decided_ms());
  }

  std::vector<DeclaredPath> Paths() const override {
    std::vector<PathCall> placing = quoting.Calls();
    placing.emplace_back(queue);
    return {{"Quote", quoting.Calls()},
            {"Place", placing},
            {"Buy", placing},
            {"Get", {}},
            {"List", {}},
            {"Cancel", {}},
            {"Refund", {}},
            {"Decide", {}},
            {"Finish", {}}};
  }

  SqlDatabase& db;
  Env& env;
  const Quoting quoting{env};
  const OrderQueue::Stub queue = env.Stub<OrderQueue>("order-queue");
  DecisionWaits waits;
  bool open_are_queued = false;  // of QueueAll() alone
  apps::Finisher queuing;
};

HostedService HostedOrders() {
  return apps::HostedWithData<OrdersService>(kApplication, "orders", {kOrdersSchema});
}

}  // namespace curtail::shop
