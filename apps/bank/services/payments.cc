// SPDX-License-Identifier: Apache-2.0
//
// Payments: orders of customers, each a saga of one step (apps/kit/jobs/saga.h), which its posting decides. The state of its row is
// a Payment::State. REFUSED means that nothing has moved: a repetition tries again. A payment of a later time is SCHEDULED until
// then. That it has begun is a state, too, which is written before the shard is asked: so it is paid or cancelled, never both.
#include "apps/bank/data.h"
#include "apps/bank/iban.h"
#include "apps/kit/jobs/saga.h"
#include "apps/kit/ledger/input.h"
#include "apps/kit/once.h"
#include "curtail/rpc/when_all.h"

namespace curtail::bank {

constexpr char kTable[] = "payments";
constexpr int64_t kMostAheadMs = 366 * int64_t{86'400'000};

struct PaymentsService final : Payments::CoroutineService {
  PaymentsService(SqlDatabase& db, Env& e)
      : env(e), orders(db, kTable, [this](Context& ctx, apps::SagaRow& row) { return Book(ctx, row); }) {
    orders.WorkWhileServing(env);
  }

  Coroutine Pay(Context& ctx, const PaymentOrder& request, Payment* reply) override {
    absl::Status status = apps::ledger::CheckCents(request.cents(), 1);
    if (status.ok()) status = apps::ledger::CheckText(request.text());
    if (status.ok() && (request.at_ms() < 0 || request.at_ms() > apps::NowMs() + kMostAheadMs))
      status = absl::InvalidArgumentError("at_ms is a time since 1970, at most a year from now");
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
    KeptPayment kept;
    kept.set_payee(payee.id());
    Payment& shown = *kept.mutable_shown();
    shown.set_id(ids.ids(0));
    shown.set_from(request.from());
    shown.set_iban(payee.iban());
    shown.set_cents(request.cents());
    shown.set_text(request.text());
    shown.set_created_ms(apps::NowMs());
    shown.set_at_ms(request.at_ms());
    apps::SagaRow row{.id = shown.id(),
                      .owner = request.customer(),
                      .state = request.at_ms() > 0 ? Payment::SCHEDULED : Payment::PENDING,
                      .due_ms = request.at_ms(),
                      .bytes = kept.SerializeAsString()};
    status = co_await orders.Begin(ctx, apps::Once(ctx, request.customer()), Payment::REFUSED, &row);
    if (status.ok() && row.state != Payment::SCHEDULED) status = co_await orders.Finish(ctx, &row);
    if (status.ok()) status = Show(row, reply);
    co_return status;
  }

  Coroutine Book(Context& ctx, apps::SagaRow& row) {
    if (row.state == Payment::SCHEDULED) {
      row.state = Payment::PENDING;
      co_return absl::OkStatus();
    }
    KeptPayment kept;
    if (absl::Status read = Read(row, &kept); !read.ok()) co_return read;
    TransferOrder transfer;
    transfer.set_owner(row.owner);
    transfer.set_request(row.RequestName("payment"));
    transfer.set_from(kept.shown().from());
    transfer.set_to(kept.payee());
    transfer.set_cents(kept.shown().cents());
    transfer.set_text(kept.shown().text());
    auto [entry] = co_await WhenAll(ctx, Ask(shards.Of(transfer.from()), Posting::kTransfer, transfer));
    const bool refused = absl::IsNotFound(entry.status()) || absl::IsFailedPrecondition(entry.status()) ||
                         absl::IsInvalidArgument(entry.status());
    if (!entry.ok() && !refused) co_return entry.status();
    row.open = false;
    row.state = refused ? Payment::REFUSED : Payment::BOOKED;
    if (refused) co_return entry.status();
    kept.mutable_shown()->set_version(entry->version());
    kept.set_posting(entry->posting());
    row.bytes = kept.SerializeAsString();
    co_return absl::OkStatus();
  }

  static absl::Status Read(const apps::SagaRow& row, KeptPayment* kept) {
    if (kept->ParseFromString(row.bytes)) return absl::OkStatus();
    return absl::DataLossError(Join("payment ", row.id, " is unreadable"));
  }
  bool Crosses(const KeptPayment& kept) const {
    return shards.IndexOf(kept.shown().from()) != shards.IndexOf(kept.payee());
  }
  // A payment, of which the shard of the payer may know more.
  absl::Status Show(const apps::SagaRow& row, Payment* reply) const {
    KeptPayment kept;
    absl::Status status = Read(row, &kept);
    const bool arrived = row.state == Payment::BOOKED && !Crosses(kept);
    *reply = kept.shown();
    reply->set_state(arrived ? Payment::ARRIVED : static_cast<Payment::State>(row.state));
    return status;
  }

  Coroutine Find(Context& ctx, const PaymentQuery& request, apps::SagaRow* row) {
    absl::Status status = co_await orders.Find(ctx, request.customer(), request.id(), row);
    if (status.ok() && row->id == 0)
      co_return absl::NotFoundError(Join("there is no payment ", request.id()));
    co_return status;
  }

  Coroutine Cancel(Context& ctx, const PaymentQuery& request, Payment* reply) override {
    apps::SagaRow row;
    absl::Status status = co_await Find(ctx, request, &row);
    if (status.ok() && row.state == Payment::SCHEDULED) {
      apps::SagaRow next = row;
      next.state = Payment::CANCELLED;
      next.open = false;
      status = co_await orders.Replace(ctx, row, &next);
      row = std::move(next);
    }
    if (!status.ok()) co_return status;
    if (row.state != Payment::CANCELLED)
      co_return absl::FailedPreconditionError(Join("payment ", request.id(), " is not scheduled any more"));
    co_return Show(row, reply);
  }

  Coroutine Status(Context& ctx, const PaymentQuery& request, Payment* reply) override {
    apps::SagaRow row;
    absl::Status status = co_await Find(ctx, request, &row);
    if (status.ok()) status = Show(row, reply);
    if (!status.ok() || reply->state() != Payment::BOOKED) co_return status;
    KeptPayment kept;
    status = Read(row, &kept);
    EntryPage posting;
    posting.set_after(kept.posting());
    auto [looked] = co_await WhenAll(ctx, Ask(shards.Of(reply->from()), Posting::kLook, posting));
    if (!looked.ok()) co_return looked.status();
    reply->set_state(looked->state());
    co_return status;
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Pay", {accounts, unique_id, Posting::kServiceName}},
            {"Status", {Posting::kServiceName}},
            {"Cancel", {}}};
  }

  Env& env;
  const Accounts::Stub accounts = env.Stub<Accounts>("accounts");
  const apps::UniqueId::Stub unique_id = env.Stub<apps::UniqueId>("unique-id");
  const Shards shards{env};
  apps::Saga orders;
};

HostedService HostedPayments() {
  auto data = std::make_shared<Data>();
  return {.name = "payments",
          .flags = [data](Flags& flags) { apps::AddDataFlags(flags, data.get()); },
          .make = [data](Env& env) -> MadeService {
            auto db = apps::OpenData(env, *data, "payments", {apps::SagaSchema(kTable)});
            if (!db.ok()) return db.status();
            return std::make_unique<PaymentsService>(**db, env);
          }};
}

}  // namespace curtail::bank
