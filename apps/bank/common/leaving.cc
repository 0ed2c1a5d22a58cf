// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/common/leaving.h"

#include "curtail/base/strings.h"

namespace curtail::bank {
namespace {

absl::Status List(SqlSession& s, const Held& held, uint64_t customer, Holdings* reply) {
  if (held.list == nullptr) return absl::OkStatus();
  return s.Query(held.list, {customer}, [&](const SqlRow& row) {
    Holdings::One* const one = reply->add_holdings();
    one->set_account(row.Unsigned(0));
    one->set_owner(row.Unsigned(1));
    one->set_name(Join(held.what, " ", row.Unsigned(0)));
  });
}

absl::Status CheckIdle(SqlSession& s, const Held& held, uint64_t customer) {
  uint64_t busy = 0;
  absl::Status status;
  if (held.busy != nullptr)
    status = s.Query(held.busy, {customer}, [&](const SqlRow& row) { busy = row.Unsigned(0); });
  if (status.ok() && busy == 0 && held.check != nullptr) status = held.check(s, customer);
  if (!status.ok() || busy == 0) return status;
  return absl::FailedPreconditionError(Join(held.what, " ", busy, " has money in flight; try again"));
}

}  // namespace

absl::Status Leave(SqlSession& s, uint64_t id, uint64_t attempt) {
  absl::Status status = s.Execute(
      "INSERT INTO leaving(id, attempt, away) VALUES (?1, ?2, 1) ON CONFLICT(id) DO UPDATE SET"
      " attempt = excluded.attempt, away = 1 WHERE leaving.attempt < excluded.attempt"
      " OR (leaving.attempt = excluded.attempt AND leaving.away = 1)",
      {id, attempt});
  if (!status.ok() || s.changes() == 1) return status;
  return absl::AbortedError("the customer stays after all");
}

absl::Status Stay(SqlSession& s, uint64_t id, uint64_t attempt, bool* ended) {
  absl::Status status = s.Execute(
      "INSERT INTO leaving(id, attempt, away) VALUES (?1, ?2, 0) ON CONFLICT(id) DO UPDATE SET"
      " attempt = excluded.attempt, away = 0 WHERE leaving.attempt <= excluded.attempt",
      {id, attempt});
  *ended = s.changes() == 1;
  return status;
}

absl::Status CheckStays(SqlSession& s, uint64_t customer) {
  bool away = false;
  absl::Status status = s.Query("SELECT 1 FROM leaving WHERE id = ?1 AND away = 1", {customer},
                                [&](const SqlRow&) { away = true; });
  if (!status.ok() || !away) return status;
  return absl::FailedPreconditionError("the customer is leaving the bank");
}

Coroutine CheckStays(Context& ctx, SqlDatabase& db, const apps::SagaRow& row) {
  co_return co_await apps::DecideOnce(ctx, db, row.id, row.round,
                                      [&](SqlSession& s) { return CheckStays(s, row.owner); });
}

Coroutine LeaveService(Context& ctx, SqlDatabase& db, const Held& held, const LeaveOrder& order,
                       Holdings* reply) {
  const auto leave = [&](SqlSession& s) {
    absl::Status status = CheckIdle(s, held, order.customer());
    if (status.ok() && order.attempt() > 0) status = Leave(s, order.customer(), order.attempt());
    return status.ok() ? List(s, held, order.customer(), reply) : status;
  };
  if (order.attempt() == 0) co_return co_await db.Reading(ctx.deadline(), leave);
  co_return co_await db.Writing(ctx.deadline(), leave);
}

Coroutine StayAtService(Context& ctx, SqlDatabase& db, const Held& held, const LeaveOrder& order,
                        Holdings* reply) {
  co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
    bool ended = false;
    absl::Status status = Stay(s, order.customer(), order.attempt(), &ended);
    return status.ok() ? List(s, held, order.customer(), reply) : status;
  });
}

}  // namespace curtail::bank
