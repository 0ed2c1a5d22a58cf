// SPDX-License-Identifier: Apache-2.0
//
// New cards: applications, each a saga of one step (apps/kit/jobs/saga.h). The rule: the limit is at most three months' income; and
// `credit-card` issues at most five to a customer. The card has the id of its application, so it is issued once. The state of a row
// is an Application::State.
#include "apps/bank/common/orders.h"
#include "apps/bank/data.h"
#include "apps/kit/jobs/saga.h"
#include "apps/kit/ledger/input.h"
#include "apps/kit/once.h"
#include "curtail/rpc/when_all.h"

namespace curtail::bank {

constexpr char kApplications[] = "applications";
constexpr int64_t kMonthsOfIncome = 3;

struct NewCardService final : NewCards::CoroutineService {
  NewCardService(SqlDatabase& db, Env& e)
      : env(e), applications(db, kApplications, [this](Context& ctx, apps::SagaRow& row) {
          return Decide(ctx, row);
        }) {
    applications.WorkWhileServing(env);
  }

  Coroutine Apply(Context& ctx, const ApplicationOrder& request, Application* reply) override {
    absl::Status status = apps::ledger::CheckCents(request.income_cents(), 0);
    if (status.ok()) status = apps::ledger::CheckCents(request.limit_cents(), 1);
    if (!status.ok()) co_return status;
    auto [ids] = co_await WhenAll(ctx, Ask(unique_id, apps::UniqueId::kNext, OneId()));
    if (!ids.ok()) co_return ids.status();
    KeptApplication kept;
    *kept.mutable_order() = request;
    kept.mutable_shown()->set_id(ids->ids(0));
    apps::SagaRow row{.id = ids->ids(0), .owner = request.customer(), .bytes = kept.SerializeAsString()};
    const auto admit = [&](SqlSession& s) {
      uint64_t open = 0;
      absl::Status read = s.Query("SELECT count(*) FROM applications WHERE owner = ?1 AND open = 1",
                                  {row.owner}, [&](const SqlRow& found) { open = found.Unsigned(0); });
      if (read.ok() && open < kMostApplications) read = ForgetDeclined(s, row.owner);
      if (!read.ok() || open < kMostApplications) return read;
      return absl::ResourceExhaustedError(
          Join("the bank has not decided ", open, " applications of the customer; try again later"));
    };
    status = co_await applications.Begin(ctx, apps::Once(ctx, request.customer()), apps::Saga::kNeverAgain,
                                         &row, admit);
    if (status.ok()) status = co_await applications.Finish(ctx, &row);
    if (status.ok()) status = Show(row, reply);
    co_return status;
  }

  // All but the last ones, once a repetition of them is as unlikely as of other requests (apps/kit/once.h).
  static absl::Status ForgetDeclined(SqlSession& s, uint64_t customer) {
    return s.Execute(
        "DELETE FROM applications WHERE owner = ?1 AND state = ?2 AND open = 0 AND due_ms < ?3 AND id < "
        "(SELECT"
        " id FROM applications WHERE owner = ?1 AND state = ?2 AND open = 0 ORDER BY id DESC LIMIT 1 OFFSET "
        "?4)",
        {customer, Application::DECLINED, apps::NowMs() - kADayMs, kMostDeclined - 2});
  }

  Coroutine Decide(Context& ctx, apps::SagaRow& row) {
    KeptApplication kept;
    if (absl::Status read = Read(row, &kept); !read.ok()) co_return read;
    Application& shown = *kept.mutable_shown();
    CardOrder order;
    order.set_id(row.id);
    order.set_customer(row.owner);
    order.set_limit_cents(kept.order().limit_cents());
    if (order.limit_cents() > kMonthsOfIncome * kept.order().income_cents()) {
      shown.set_reason(Join("the limit exceeds the income of ", kMonthsOfIncome, " months"));
    } else {
      auto [card] = co_await WhenAll(ctx, Ask(cards, CreditCards::kIssue, order));
      if (!card.ok() && !absl::IsFailedPrecondition(card.status())) co_return card.status();
      if (card.ok()) *shown.mutable_card() = *std::move(card);
      else shown.set_reason(std::string(Message(card.status())));
    }
    shown.set_state(shown.has_card() ? Application::ISSUED : Application::DECLINED);
    row.state = shown.state();
    row.open = false;
    row.bytes = kept.SerializeAsString();
    co_return absl::OkStatus();
  }

  static absl::Status Read(const apps::SagaRow& row, KeptApplication* kept) {
    if (kept->ParseFromString(row.bytes)) return absl::OkStatus();
    return absl::DataLossError(Join("application ", row.id, " is unreadable"));
  }
  static absl::Status Show(const apps::SagaRow& row, Application* reply) {
    KeptApplication kept;
    absl::Status status = Read(row, &kept);
    *reply = kept.shown();
    return status;
  }

  Coroutine Status(Context& ctx, const PaymentQuery& request, Application* reply) override {
    apps::SagaRow row;
    absl::Status status = co_await applications.Find(ctx, request.customer(), request.id(), &row);
    if (!status.ok()) co_return status;
    if (row.id == 0) co_return absl::NotFoundError(Join("there is no application ", request.id()));
    co_return Show(row, reply);
  }

  std::vector<DeclaredPath> Paths() const override { return {{"Apply", {cards, unique_id}}, {"Status", {}}}; }

  Env& env;
  const CreditCards::Stub cards = env.Stub<CreditCards>("credit-card");
  const apps::UniqueId::Stub unique_id = env.Stub<apps::UniqueId>("unique-id");
  apps::Saga applications;
};

HostedService HostedNewCard() {
  return apps::HostedWithData<NewCardService>(kApplication, "new-card", {apps::SagaSchema(kApplications)});
}

}  // namespace curtail::bank
