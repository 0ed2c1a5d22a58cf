// SPDX-License-Identifier: Apache-2.0
//
// Payments: orders of customers to pay from their accounts. A repetition of a refused one tries again. A payment to another bank
// goes to this bank's account for that one, in the shard of the payer.
#include "apps/bank/common/orders.h"
#include "apps/bank/data.h"
#include "curtail/rpc/when_all.h"

namespace curtail::bank {

struct PaymentsService final : Payments::CoroutineService {
  PaymentsService(SqlDatabase& db, Env& e)
      : env(e),
        orders(db, e, Payment::REFUSED,
               {.before = [this](Context& ctx, const apps::SagaRow&,
                                 const KeptPayment& kept) { return OpenNostro(ctx, kept.payee()); },
                .forgets = true},
               &access, &banks) {}

  Coroutine Pay(Context& ctx, const PaymentOrder& request, Payment* reply) override {
    return orders.PayTo(ctx, accounts, request, request.customer(), reply);
  }
  Coroutine Cancel(Context& ctx, const PaymentQuery& request, Payment* reply) override {
    return orders.Cancel(ctx, request, reply);
  }
  Coroutine Status(Context& ctx, const PaymentQuery& request, Payment* reply) override {
    return orders.Status(ctx, request, reply);
  }

  Coroutine OpenNostro(Context& ctx, uint64_t payee) {
    if (!IsNostro(payee)) co_return absl::OkStatus();
    OwnedAccount nostro;
    nostro.set_account(payee), nostro.set_owner(payee);
    auto [opened] = co_await WhenAll(ctx, Ask(shards.Of(payee), Posting::kOpen, nostro));
    co_return opened.status();
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Pay", {accounts, access, banks, apps::UniqueId::kServiceName, Posting::kServiceName}},
            {"Status", {Posting::kServiceName}},
            {"Cancel", {}}};
  }

  Env& env;
  const Accounts::Stub accounts = env.Stub<Accounts>("accounts");
  const AccessControl::Stub access = env.Stub<AccessControl>("access-control");
  const BankInfoSearch::Stub banks = env.Stub<BankInfoSearch>("bank-info-search");
  const Shards shards{env};
  Orders orders;
};

HostedService HostedPayments() {
  return apps::HostedWithData<PaymentsService>(
      kApplication, "payments", {Orders::Schema(), Orders::OpenSchema(), Orders::RefusedSchema()});
}

}  // namespace curtail::bank
