// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/common/orders.h"

#include <algorithm>
#include <utility>

#include "apps/bank/common/iban.h"
#include "apps/kit/ledger/input.h"
#include "apps/kit/once.h"
#include "apps/kit/wall_clock.h"
#include "curtail/rpc/when_all.h"

namespace curtail::bank {
namespace {

constexpr char kTable[] = "payments";
// A row may have this state, too. Clients are shown PENDING.
constexpr int kPermitted = 100;
constexpr int64_t kMostAheadMs = 366 * kADayMs;
constexpr int kForgottenAtOnce = 16;

absl::Status Read(const apps::SagaRow& row, KeptPayment* kept) {
  if (kept->ParseFromString(row.bytes)) return absl::OkStatus();
  return absl::DataLossError(Join("payment ", row.id, " is unreadable"));
}

absl::Status Refuse(const absl::Status& why, apps::SagaRow* row, KeptPayment* kept) {
  row->state = Payment::REFUSED;
  row->open = false;
  row->due_ms = apps::NowMs();  // for CheckRefused(): the customer's own at_ms may be long past
  kept->set_refusal_code(why.raw_code());
  kept->set_refusal(std::string(Message(why)));
  row->bytes = kept->SerializeAsString();
  return why;
}

// The time of an order that all attempts at all of its rounds have: it is kept with the order, and never written again.
int64_t SinceOf(const KeptPayment& kept) { return std::max(kept.shown().created_ms(), kept.shown().at_ms()); }

// One thread finishes every scheduled or abandoned order, so one customer's orders delay everybody's.
absl::Status CheckOpen(SqlSession& s, uint64_t customer, bool scheduled) {
  uint64_t open = 0;
  absl::Status status =
      s.Query(Join("SELECT count(*) FROM ", kTable, " WHERE owner = ?1 AND open = 1 AND state ",
                   scheduled ? "=" : "<>", " ?2"),
              {customer, Payment::SCHEDULED}, [&](const SqlRow& row) { open = row.Unsigned(0); });
  if (!status.ok() || open < (scheduled ? kMostScheduled : kMostUnfinished)) return status;
  return absl::ResourceExhaustedError(
      Join("the customer has ", open,
           scheduled ? " scheduled payments; cancel one, or wait" : " that are not done; wait",
           " until one is paid"));
}

// The rows of refused orders of the customer ?1. RefusedSchema() has them in the order of their times.
std::string OfRefused() {
  return Join(" FROM ", kTable,
              " WHERE owner = ?1 AND open = 0 AND state = ", static_cast<int>(Payment::REFUSED));
}

absl::Status CheckRefused(SqlSession& s, uint64_t customer, int64_t* oldest_ms) {
  const std::string refused = OfRefused();
  uint64_t attempts = 0;
  absl::Status status =
      s.Query(Join("SELECT (SELECT CAST(coalesce(sum(round + 1), 0) AS INTEGER)", refused,
                   " AND due_ms > ?2), coalesce((SELECT due_ms", refused, " ORDER BY due_ms LIMIT 1), ?2)"),
              {customer, apps::NowMs() - kAnHourMs}, [&](const SqlRow& found) {
                attempts = found.Unsigned(0);
                *oldest_ms = found.Integer(1);
              });
  if (!status.ok() || attempts < kMostRefused) return status;
  return absl::ResourceExhaustedError(
      Join("the bank has refused ", attempts, " orders of the customer within an hour; try again later"));
}

// Forgets some that are so old that no repetition of them is expected (apps/kit/once.h), but for `row`, which may be one that is tried
// again. The shard refuses late attempts at them (L10 of ledger.cc), so these move no money. For the same reason a `row` whose order is
// older than a day goes: its repetition becomes a new order, which the shard takes.
absl::Status ForgetRefused(SqlSession& s, const apps::SagaRow& row, int64_t oldest_ms) {
  const int64_t before_ms = apps::NowMs() - kADayMs;
  KeptPayment kept;
  absl::Status status = Read(row, &kept);
  if (status.ok() && SinceOf(kept) < before_ms)
    status = s.Execute(Join("DELETE FROM ", kTable, " WHERE id = ?1 AND open = 0"), {row.id});
  if (!status.ok() || oldest_ms >= before_ms) return status;
  return s.Execute(Join("DELETE FROM ", kTable, " WHERE id IN (SELECT id", OfRefused(),
                        " AND due_ms < ?2 AND id <> ?3 ORDER BY due_ms LIMIT ?4)"),
                   {row.owner, before_ms, row.id, kForgottenAtOnce});
}

}  // namespace

bool IsRefusal(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsFailedPrecondition(status) || absl::IsInvalidArgument(status);
}

std::string Orders::Schema() { return apps::SagaSchema(kTable); }

std::string Orders::OpenSchema() {
  return Join("CREATE INDEX payments_waiting ON ", kTable, "(owner) WHERE open = 1");
}

std::string Orders::RefusedSchema() {
  return Join("CREATE INDEX payments_refused ON ", kTable,
              "(owner, due_ms) WHERE open = 0 AND state = ", static_cast<int>(Payment::REFUSED));
}

absl::Status Orders::Check(const PaymentOrder& order) {
  absl::Status status = apps::ledger::CheckCents(order.cents(), 1);
  if (status.ok()) status = apps::ledger::CheckText(order.text());
  if (status.ok() && (order.at_ms() < 0 || order.at_ms() > apps::NowMs() + kMostAheadMs))
    status = absl::InvalidArgumentError("at_ms is a time since 1970, at most a year from now");
  return status;
}

Act Orders::ActOf(const PaymentOrder& order, uint64_t id) {
  Act act;
  act.set_customer(order.customer());
  act.set_account(order.from());
  act.set_cents(order.cents());
  act.set_stepped_up(order.stepped_up());
  act.set_reference(id);
  return act;
}

Orders::Orders(SqlDatabase& db, Env& env, int again, AroundTransfer around, const AccessControl::Stub* access,
               const BankInfoSearch::Stub* banks)
    : unique_id_(env.Stub<apps::UniqueId>("unique-id")),
      shards_(env),
      again_(again),
      around_(std::move(around)),
      db_(db),
      access_(access),
      banks_(banks),
      sagas_(
          db, kTable, [this](Context& ctx, apps::SagaRow& row) { return Book(ctx, row); },
          /*callers_time=*/std::chrono::seconds(5), /*waits=*/Payment::SCHEDULED, around_.moved) {
  sagas_.WorkWhileServing(env);
}

Coroutine Orders::PayTo(Context& ctx, const Accounts::Stub& accounts, const PaymentOrder& order,
                        uint64_t payer, Payment* reply) {
  if (absl::Status status = Check(order); !status.ok()) co_return status;
  Account account;
  account.set_iban(order.iban());
  auto [here, ids] = co_await WhenAll(ctx, Ask(accounts, Accounts::kResolve, account),
                                      Ask(unique_id_, apps::UniqueId::kNext, OneId()));
  absl::Status found = here.status();
  Account payee;
  if (here.ok()) payee = *std::move(here);
  else if (absl::IsNotFound(found) && banks_ != nullptr) {
    absl::Status elsewhere = co_await FindElsewhere(ctx, order, &payee);
    if (!absl::IsNotFound(elsewhere)) found = elsewhere;
  }
  if (!found.ok()) co_return found;
  if (!ids.ok()) co_return ids.status();
  uint64_t id = ids->ids(0);
  if (payee.id() == order.from()) co_return absl::InvalidArgumentError("an account does not pay itself");
  if (access_ != nullptr) {
    Permission permission;
    absl::Status allowed = co_await Allow(ctx, order, &id, &permission);
    if (!allowed.ok()) co_return allowed;
    if (payer == order.customer()) payer = permission.owner();
  }
  PaymentOrder resolved = order;
  resolved.set_iban(payee.iban());
  co_return co_await Give(ctx, resolved, id, payer, payee.id(), reply);
}

Coroutine Orders::FindElsewhere(Context& ctx, const PaymentOrder& order, Account* payee) const {
  const absl::StatusOr<std::string> iban = CheckedIban(order.iban());
  if (!iban.ok()) co_return iban.status();
  BankQuery query;
  query.set_iban(*iban);
  auto [found] = co_await WhenAll(ctx, Ask(*banks_, BankInfoSearch::kFind, query));
  if (!found.ok()) co_return found.status();
  for (const BankInfo& bank : found->banks()) {
    if (bank.bic().empty()) continue;
    payee->set_id(shards_.NostroBeside(order.from(), bank.bic()));
    payee->set_iban(*iban);
    co_return absl::OkStatus();
  }
  co_return absl::NotFoundError("the bank of this IBAN has no BIC");
}

absl::Status Orders::CheckRoom(SqlSession& s, const PaymentOrder& order, int64_t* oldest_ms) const {
  absl::Status status = CheckOpen(s, order.customer(), /*scheduled=*/false);
  if (status.ok() && order.at_ms() > 0) status = CheckOpen(s, order.customer(), /*scheduled=*/true);
  return status.ok() ? CheckRefused(s, order.customer(), oldest_ms) : status;
}

Coroutine Orders::WouldBegin(Context& ctx, const PaymentOrder& order, bool* begins) {
  const apps::Once once(ctx, order.customer());
  co_return co_await db_.Reading(ctx.deadline(), [&](SqlSession& s) {
    int64_t ignored = 0;
    absl::Status looked = sagas_.WouldBegin(s, order.customer(), once, again_, begins);
    return looked.ok() && *begins ? CheckRoom(s, order, &ignored) : looked;
  });
}

Coroutine Orders::Allow(Context& ctx, const PaymentOrder& order, uint64_t* id, Permission* reply) {
  bool begins = true;
  absl::Status status = co_await WouldBegin(ctx, order, &begins);
  if (!status.ok()) co_return status;
  if (!begins) *id = 0;
  auto [permission] = co_await WhenAll(ctx, Ask(*access_, AccessControl::kMay, ActOf(order, *id)));
  if (permission.ok()) *reply = *std::move(permission);
  co_return permission.status();
}

Coroutine Orders::Give(Context& ctx, const PaymentOrder& order, uint64_t id, uint64_t payer, uint64_t payee,
                       Payment* reply) {
  KeptPayment kept;
  kept.set_payee(payee);
  kept.set_payer(payer);
  kept.set_number(order.number());
  if (order.has_trade()) *kept.mutable_trade() = order.trade();
  kept.set_stepped_up(order.stepped_up());
  Payment& shown = *kept.mutable_shown();
  shown.set_id(id);
  shown.set_from(order.from());
  shown.set_iban(order.iban());
  shown.set_cents(order.cents());
  shown.set_text(order.text());
  shown.set_created_ms(apps::NowMs());
  shown.set_at_ms(order.at_ms());
  shown.set_card(order.card());
  apps::SagaRow row{.id = id,
                    .owner = order.customer(),
                    .state = order.at_ms() > 0 ? Payment::SCHEDULED : Payment::PENDING,
                    .due_ms = order.at_ms(),
                    .bytes = kept.SerializeAsString()};
  const auto admit = [&](SqlSession& s) {
    if (id == 0) return absl::UnavailableError("the order that this repeats has ended meanwhile; try again");
    int64_t oldest_ms = 0;
    absl::Status admitted = CheckRoom(s, order, &oldest_ms);
    return admitted.ok() && around_.forgets ? ForgetRefused(s, row, oldest_ms) : admitted;
  };
  absl::Status status = co_await sagas_.Begin(ctx, apps::Once(ctx, order.customer()), again_, &row, admit);
  if (status.ok() && row.state != Payment::SCHEDULED) status = co_await sagas_.Finish(ctx, &row);
  if (status.ok()) status = Read(row, &kept);
  if (status.ok() && row.state == Payment::REFUSED)
    status = absl::Status(static_cast<absl::StatusCode>(kept.refusal_code()), kept.refusal());
  if (status.ok()) status = Show(row, reply);
  co_return status;
}

Coroutine Orders::Book(Context& ctx, apps::SagaRow& row) {
  if (row.state == Payment::SCHEDULED) {
    row.state = Payment::PENDING;
    co_return absl::OkStatus();
  }
  KeptPayment kept;
  if (absl::Status read = Read(row, &kept); !read.ok()) co_return read;
  if (row.state == Payment::BOOKED) {
    absl::Status done = co_await around_.after(ctx, kept);
    row.open = !done.ok();
    co_return done;
  }
  const bool own = kept.payer() == row.owner || kept.payer() == kept.shown().from();  // the second: a card
  if (row.state == Payment::PENDING && access_ != nullptr && !own) co_return co_await Permit(ctx, row, &kept);
  absl::Status allowed;
  if (around_.before) allowed = co_await around_.before(ctx, row, kept);
  if (!allowed.ok()) co_return IsRefusal(allowed) ? Refuse(allowed, &row, &kept) : allowed;
  TransferOrder transfer;
  transfer.set_owner(kept.payer());
  transfer.set_request(row.RequestName("payment"));
  transfer.set_from(kept.shown().from());
  transfer.set_to(kept.payee());
  transfer.set_cents(kept.shown().cents());
  transfer.set_text(kept.shown().text());
  if (around_.forgets) transfer.set_since_ms(SinceOf(kept));
  auto [entry] = co_await WhenAll(ctx, Ask(shards_.Of(transfer.from()), Posting::kTransfer, transfer));
  row.decided_elsewhere = true;  // the shard answers this name so for ever: L3 and L10 of ledger.cc
  if (!entry.ok()) co_return IsRefusal(entry.status()) ? Refuse(entry.status(), &row, &kept) : entry.status();
  row.open = around_.after != nullptr;
  row.state = Payment::BOOKED;
  kept.mutable_shown()->set_version(entry->version());
  kept.set_posting(entry->posting());
  kept.set_booked_ms(entry->booked_ms());
  row.bytes = kept.SerializeAsString();
  co_return absl::OkStatus();
}

Coroutine Orders::Permit(Context& ctx, apps::SagaRow& row, KeptPayment* kept) {
  PaymentOrder order;
  order.set_customer(row.owner);
  order.set_from(kept->shown().from());
  order.set_cents(kept->shown().cents());
  order.set_stepped_up(kept->stepped_up());
  auto [permission] = co_await WhenAll(ctx, Ask(*access_, AccessControl::kMay, ActOf(order, row.id)));
  if (!permission.ok() && !absl::IsPermissionDenied(permission.status())) co_return permission.status();
  if (permission.ok() && permission->owner() == kept->payer()) {
    row.state = kPermitted;
    co_return absl::OkStatus();
  }
  co_return Refuse(absl::PermissionDeniedError("the owner of the account does not allow it any more"), &row,
                   kept);
}

absl::Status Orders::Show(const apps::SagaRow& row, Payment* reply) const {
  KeptPayment kept;
  absl::Status status = Read(row, &kept);
  const bool crosses = shards_.IndexOf(kept.shown().from()) != shards_.IndexOf(kept.payee());
  *reply = kept.shown();
  reply->set_state(row.state == Payment::BOOKED && !crosses ? Payment::ARRIVED
                   : row.state == kPermitted                ? Payment::PENDING
                                                            : static_cast<Payment::State>(row.state));
  return status;
}

Coroutine Orders::Find(Context& ctx, const PaymentQuery& query, apps::SagaRow* row) {
  absl::Status status = co_await sagas_.Find(ctx, query.customer(), query.id(), row);
  if (status.ok() && row->id == 0) co_return absl::NotFoundError(Join("there is no payment ", query.id()));
  co_return status;
}

Coroutine Orders::Cancel(Context& ctx, const PaymentQuery& query, Payment* reply) {
  apps::SagaRow row;
  absl::Status status = co_await Find(ctx, query, &row);
  if (status.ok() && row.state == Payment::SCHEDULED) {
    apps::SagaRow next = row;
    next.state = Payment::CANCELLED;
    next.open = false;
    status = co_await sagas_.Replace(ctx, row, &next);
    row = std::move(next);
  }
  if (!status.ok()) co_return status;
  if (row.state != Payment::CANCELLED)
    co_return absl::FailedPreconditionError(Join("payment ", query.id(), " is not scheduled any more"));
  co_return Show(row, reply);
}

Coroutine Orders::Status(Context& ctx, const PaymentQuery& query, Payment* reply) {
  apps::SagaRow row;
  absl::Status status = co_await Find(ctx, query, &row);
  if (status.ok()) status = Show(row, reply);
  if (!status.ok() || reply->state() != Payment::BOOKED) co_return status;
  KeptPayment kept;
  status = Read(row, &kept);
  EntryPage posting;
  posting.set_after(kept.posting());
  auto [looked] = co_await WhenAll(ctx, Ask(shards_.Of(reply->from()), Posting::kLook, posting));
  if (!looked.ok()) co_return looked.status();
  reply->set_state(looked->state());
  co_return status;
}

}  // namespace curtail::bank
