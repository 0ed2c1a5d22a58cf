// SPDX-License-Identifier: Apache-2.0
//
// orders.h - orders to move money, for each service that takes some: payments, purchases with cards, payments of cards.
//
// An order is a saga of one step (apps/kit/jobs/saga.h), which the shard of the payer decides. The state of its row is a
// Payment::State. REFUSED means that nothing has moved. An order of a later time is SCHEDULED until then. That it has begun is a
// state, too, which is written before the shard is asked: so it is booked or cancelled, never both. An order from another customer's
// account has its permission looked up again in each round, and at its time. That it has it is a state for the same reason: so it
// is booked, or refused as the owner has ended the permission, never both.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "accounts.curtail.h"
#include "apps/bank/data.h"
#include "apps/kit/accounts/ids.h"
#include "apps/kit/jobs/saga.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/host.h"
#include "curtail/store/sql/sql.h"
#include "services.curtail.h"

namespace curtail::bank {

using apps::OneId;

// True for errors that a shard gives for ever.
bool IsRefusal(const absl::Status& status);

// The work of a service around the transfer of an order. The first two may run several times for one order, also at once. Each may be
// empty.
struct AroundTransfer {
  // Runs before the shard is asked. NOT_FOUND, FAILED_PRECONDITION and INVALID_ARGUMENT refuse the order. All attempts at one round
  // must have the first one's answer (apps::DecideOnce()), as another attempt may have moved the money when a refusal is written.
  std::function<Coroutine(Context& ctx, const apps::SagaRow& row, const KeptPayment& kept)> before = nullptr;
  // Runs once it is booked, until it has returned OK.
  std::function<Coroutine(Context& ctx, const KeptPayment& kept)> after = nullptr;
  // Runs in each transaction that writes a state of an order.
  apps::Saga::Moved moved = nullptr;
  // True: refused orders are forgotten after a day. No other table refers to the rows of these orders.
  bool forgets = false;
};

// Thread-safe. All calls have the errors of SqlDatabase, `posting` and `unique-id`, too.
class Orders {
 public:
  // The table `payments`, a step of the schema of the service.
  static std::string Schema();
  // Later steps of the schema, in this order.
  static std::string OpenSchema();
  static std::string RefusedSchema();
  // INVALID_ARGUMENT: the cents, the text or the time are out of bounds.
  static absl::Status Check(const PaymentOrder& order);
  // The request to `access-control` for the order with the id `id`.
  static Act ActOf(const PaymentOrder& order, uint64_t id);

  // `db` has the steps of the schema. `env`, `db` and `access` outlive the object. `again`, as of Saga::Begin(), is REFUSED if a repetition of a refused
  // order tries again, or Saga::kNeverAgain if it is refused again. With `banks`, PayTo() pays to other banks, too: `around` opens
  // the account NostroOf() before.
  Orders(SqlDatabase& db, Env& env, int again, AroundTransfer around = {},
         const AccessControl::Stub* access = nullptr, const BankInfoSearch::Stub* banks = nullptr);

  // Sets `*begins` to whether Give() would take this as a new order, or as another attempt at a refused one. RESOURCE_EXHAUSTED, as
  // Give().
  Coroutine WouldBegin(Context& ctx, const PaymentOrder& order, bool* begins);
  // Takes an order to pay to an IBAN, if `access` allows it. `payer` is the customer, for whom whoever `access` finds to own the
  // account pays; or a card, which pays for itself.
  // Errors: as Check(), Give(), AccessControl::May() and Accounts::Resolve(); INVALID_ARGUMENT: the account pays itself.
  Coroutine PayTo(Context& ctx, const Accounts::Stub& accounts, const PaymentOrder& order, uint64_t payer,
                  Payment* reply);
  // Asks `access` about an order of the caller that Give() is called for next. If that is a repetition which changes nothing, `*id`
  // becomes 0, and no decision is kept. Errors: as AccessControl::May(), ALREADY_EXISTS, and RESOURCE_EXHAUSTED as Give(), for which
  // `access` is not asked. So each kept decision belongs to an order, unless the caller has gone before Give().
  Coroutine Allow(Context& ctx, const PaymentOrder& order, uint64_t* id, Permission* reply);
  // Takes the order with the id `id`, which Allow() has left, to pay to the account `payee`, whose IBAN, if any, is order.iban(). The
  // order has passed Check(). Errors: the refusal, be it of this call or of the one that this repeats; ALREADY_EXISTS;
  // RESOURCE_EXHAUSTED: the customer has kMostScheduled that wait for their time, or kMostUnfinished others, or kMostRefused that were
  // refused within an hour. UNAVAILABLE: the id is 0, and the order that this repeats has ended meanwhile.
  Coroutine Give(Context& ctx, const PaymentOrder& order, uint64_t id, uint64_t payer, uint64_t payee,
                 Payment* reply);
  // NOT_FOUND: the customer has not given this order, or it was refused and is forgotten.
  Coroutine Status(Context& ctx, const PaymentQuery& query, Payment* reply);
  // FAILED_PRECONDITION: the order is not SCHEDULED. NOT_FOUND, as Status().
  Coroutine Cancel(Context& ctx, const PaymentQuery& query, Payment* reply);

 private:
  // Sets the account for the bank of order.iban(). NOT_FOUND: no bank that is known has it.
  Coroutine FindElsewhere(Context& ctx, const PaymentOrder& order, Account* payee) const;
  Coroutine Book(Context& ctx, apps::SagaRow& row);
  // RESOURCE_EXHAUSTED, as Give(). Sets `*oldest_ms` to the time of the customer's oldest refused order.
  absl::Status CheckRoom(SqlSession& s, const PaymentOrder& order, int64_t* oldest_ms) const;
  // The step of an order from another customer's account.
  Coroutine Permit(Context& ctx, apps::SagaRow& row, KeptPayment* kept);
  Coroutine Find(Context& ctx, const PaymentQuery& query, apps::SagaRow* row);
  // The order, of which the shard of the payer may know more.
  absl::Status Show(const apps::SagaRow& row, Payment* reply) const;

  const apps::UniqueId::Stub unique_id_;
  const Shards shards_;
  const int again_;
  const AroundTransfer around_;
  SqlDatabase& db_;
  const AccessControl::Stub* const access_;  // may be null
  const BankInfoSearch::Stub* const banks_;  // may be null
  apps::Saga sagas_;
};

}  // namespace curtail::bank
