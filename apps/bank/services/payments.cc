// SPDX-License-Identifier: Apache-2.0
//
// Payments: orders of customers, each kept before it is booked.
//
//  P1  An order is kept with its name and a digest of its content. From then on it is finished, even if its caller is gone.
//  P2  It is decided by its posting. The ledger knows it by its id, so that any number of attempts books it once.
//  P3  Its row follows the posting. BOOKED is never changed. REFUSED means that nothing has moved; a repetition tries again.
#include <chrono>

#include "apps/bank/data.h"
#include "apps/bank/iban.h"
#include "apps/kit/jobs/finisher.h"
#include "apps/kit/ledger/input.h"
#include "apps/kit/once.h"
#include "apps/kit/run_here.h"
#include "curtail/rpc/when_all.h"

namespace curtail::bank {

// A state is a Payment::State.
const char kPaymentsSchema[] =
    "CREATE TABLE payments(id INTEGER PRIMARY KEY, customer INTEGER NOT NULL, name TEXT NOT NULL,"
    " content TEXT NOT NULL, payer INTEGER NOT NULL, payee INTEGER NOT NULL, iban TEXT NOT NULL,"
    " cents INTEGER NOT NULL, purpose TEXT NOT NULL, state INTEGER NOT NULL, posting INTEGER NOT NULL,"
    " version INTEGER NOT NULL, created_ms INTEGER NOT NULL) STRICT;"
    "CREATE UNIQUE INDEX payments_by_name ON payments(customer, name);"
    "CREATE INDEX payments_pending ON payments(id) WHERE state = 0";
constexpr char kColumns[] =
    "SELECT id, payer, iban, cents, purpose, state, version, created_ms, customer, payee, posting, content "
    "FROM payments ";

constexpr int64_t kCallerTriesMs = 5000;  // for so long its caller goes on with an order
constexpr uint64_t kOrdersAtOnce = 64;

// An order as it is kept.
struct Order {
  Payment shown;
  uint64_t customer = 0, payee = 0, posting = 0;
  std::string content;
};

Order OrderOf(const SqlRow& row) {
  Order order;
  order.shown.set_id(row.Unsigned(0));
  order.shown.set_from(row.Unsigned(1));
  order.shown.set_iban(std::string(row.Text(2)));
  order.shown.set_cents(row.Integer(3));
  order.shown.set_text(std::string(row.Text(4)));
  order.shown.set_state(static_cast<Payment::State>(row.Integer(5)));
  order.shown.set_version(row.Unsigned(6));
  order.shown.set_created_ms(row.Integer(7));
  order.customer = row.Unsigned(8);
  order.payee = row.Unsigned(9);
  order.posting = row.Unsigned(10);
  order.content = row.Text(11);
  return order;
}

// The ledger has answered, and moved nothing.
bool IsRefusal(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsFailedPrecondition(status) || absl::IsInvalidArgument(status);
}

struct PaymentsService final : Payments::CoroutineService {
  PaymentsService(SqlDatabase& d, Env& e)
      : db(d), env(e), finisher([this](auto stopping) { return FinishAll(stopping); }) {
    finisher.WorkWhileServing(env);
  }

  Coroutine Pay(Context& ctx, const PaymentOrder& request, Payment* reply) override {
    absl::Status status = apps::ledger::CheckCents(request.cents(), 1);
    if (status.ok()) status = apps::ledger::CheckText(request.text());
    if (!status.ok()) co_return status;
    Account account;
    account.set_iban(request.iban());
    apps::IdCount one;
    one.set_count(1);
    auto found = co_await WhenAllOk(ctx, Ask(accounts, Accounts::kResolve, account),
                                    Ask(unique_id, apps::UniqueId::kNext, one));
    if (!found.ok()) co_return found.status();
    const auto& [payee, ids] = *found;
    if (payee.id() == request.from()) co_return absl::InvalidArgumentError("an account does not pay itself");
    const apps::Once once(ctx, request.customer());
    Order order;
    order.customer = request.customer();
    order.payee = payee.id();
    order.content = once.content();
    order.shown.set_id(ids.ids(0));
    order.shown.set_from(request.from());
    order.shown.set_iban(payee.iban());
    order.shown.set_cents(request.cents());
    order.shown.set_text(request.text());
    order.shown.set_created_ms(NowMs());
    const std::string name = once.named() ? Join("key ", once.name()) : Join("id ", ids.ids(0));
    status = co_await db.Writing(ctx.deadline(), [&](SqlSession& s) { return Keep(s, name, &order); });  // P1
    if (status.ok() && order.shown.state() != Payment::BOOKED) status = co_await Book(ctx, order);
    if (status.ok()) Show(order, reply);
    co_return status;
  }

  // Keeps an order, or sets `*order` to the one that has its name.
  static absl::Status Keep(SqlSession& s, const std::string& name, Order* order) {
    const std::string content = order->content;
    bool known = false;
    absl::Status status =
        s.Query(Join(kColumns, "WHERE customer = ?1 AND name = ?2"), {order->customer, name},
                [&](const SqlRow& row) { *order = OrderOf(row), known = true; });
    if (!status.ok()) return status;
    if (known && order->content != content)
      return absl::AlreadyExistsError(
          "the idempotency key was given to another payment; take a new one for each");
    if (known) {
      return s.Execute("UPDATE payments SET state = ?2 WHERE id = ?1 AND state = ?3",
                       {order->shown.id(), int{Payment::PENDING}, int{Payment::REFUSED}});
    }
    const Payment& p = order->shown;
    return s.Execute(
        "INSERT INTO payments(id, customer, name, content, payer, payee, iban, cents, purpose, state, "
        "posting, version,"
        " created_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0, 0, 0, ?10)",
        {p.id(), order->customer, name, content, p.from(), order->payee, p.iban(), p.cents(), p.text(),
         p.created_ms()});
  }

  // Books an order that is kept, and says so in `order`.
  Coroutine Book(Context& ctx, Order& order) {
    TransferOrder transfer;
    transfer.set_owner(order.customer);
    transfer.set_request(Join("payment ", order.shown.id()));
    transfer.set_from(order.shown.from());
    transfer.set_to(order.payee);
    transfer.set_cents(order.shown.cents());
    transfer.set_text(order.shown.text());
    auto [entry] =
        co_await WhenAll(ctx, Ask(shards.Of(order.shown.from()), Posting::kTransfer, transfer));  // P2
    if (!entry.ok() && !IsRefusal(entry.status())) co_return entry.status();
    absl::Status written = co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {  // P3
      if (!entry.ok())
        return s.Execute("UPDATE payments SET state = ?2 WHERE id = ?1 AND state = ?3",
                         {order.shown.id(), int{Payment::REFUSED}, int{Payment::PENDING}});
      return s.Execute("UPDATE payments SET state = ?2, posting = ?3, version = ?4 WHERE id = ?1",
                       {order.shown.id(), int{Payment::BOOKED}, entry->posting(), entry->version()});
    });
    if (!entry.ok()) co_return entry.status();
    order.shown.set_state(Payment::BOOKED);
    order.shown.set_version(entry->version());
    order.posting = entry->posting();
    co_return written;
  }

  bool Crosses(const Order& order) const {
    return shards.IndexOf(order.shown.from()) != shards.IndexOf(order.payee);
  }
  void Show(Order& order, Payment* reply) const {
    if (order.shown.state() == Payment::BOOKED && !Crosses(order)) order.shown.set_state(Payment::ARRIVED);
    reply->Swap(&order.shown);
  }

  Coroutine Status(Context& ctx, const PaymentQuery& request, Payment* reply) override {
    Order order;
    absl::Status status = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query(Join(kColumns, "WHERE id = ?1 AND customer = ?2"), {request.id(), request.customer()},
                     [&](const SqlRow& row) { order = OrderOf(row); });
    });
    if (!status.ok()) co_return status;
    if (order.customer == 0) co_return absl::NotFoundError(Join("there is no payment ", request.id()));
    if (order.shown.state() == Payment::BOOKED && Crosses(order)) {
      EntryPage posting;
      posting.set_after(order.posting);
      auto [looked] = co_await WhenAll(ctx, Ask(shards.Of(order.shown.from()), Posting::kLook, posting));
      if (!looked.ok()) co_return looked.status();
      order.shown.set_state(looked->state());
    }
    Show(order, reply);
    co_return absl::OkStatus();
  }

  // Goes on with orders whose callers have left them.
  absl::Status FinishAll(absl::FunctionRef<bool()> stopping) {
    absl::Status first;
    uint64_t after = 0, seen = kOrdersAtOnce;
    while (seen == kOrdersAtOnce && !stopping()) {
      std::vector<Order> orders;
      absl::Status read = db.Read(Deadline::In(kStepTime), [&](SqlSession& s) {
        return s.Query(Join(kColumns, "WHERE state = 0 AND id > ?1 AND created_ms < ?2 ORDER BY id LIMIT ?3"),
                       {after, NowMs() - kCallerTriesMs, kOrdersAtOnce},
                       [&](const SqlRow& row) { orders.push_back(OrderOf(row)); });
      });
      if (!read.ok()) return read;
      seen = orders.size();
      for (Order& order : orders) {
        if (stopping()) return first;
        after = order.shown.id();
        Context ctx(kStepTime);
        const absl::Status booked = apps::RunHere(Book(ctx, order));
        if (!booked.ok() && !IsRefusal(booked)) first.Update(booked);
      }
    }
    return first;
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Pay", {accounts, unique_id, Posting::kServiceName}}, {"Status", {Posting::kServiceName}}};
  }

  SqlDatabase& db;
  Env& env;
  const Accounts::Stub accounts = env.Stub<Accounts>("accounts");
  const apps::UniqueId::Stub unique_id = env.Stub<apps::UniqueId>("unique-id");
  const Shards shards{env};
  apps::Finisher finisher;
};

HostedService HostedPayments() {
  auto data = std::make_shared<Data>();
  return {.name = "payments",
          .flags = [data](Flags& flags) { apps::AddDataFlags(flags, data.get()); },
          .make = [data](Env& env) -> MadeService {
            auto db = apps::OpenData(env, *data, "payments", {kPaymentsSchema});
            if (!db.ok()) return db.status();
            return std::make_unique<PaymentsService>(**db, env);
          }};
}

}  // namespace curtail::bank
