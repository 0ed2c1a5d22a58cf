// SPDX-License-Identifier: Apache-2.0
//
// Payments of cards: orders of customers to pay a card's debt from an account. A repetition of a refused one tries again.
#include "apps/bank/common/orders.h"
#include "apps/bank/data.h"
#include "curtail/rpc/when_all.h"

namespace curtail::bank {

struct CardPaymentService final : CardPayments::CoroutineService {
  CardPaymentService(SqlDatabase& db, Env& e)
      : env(e), orders(db, e, Payment::REFUSED, {.forgets = true}, &access) {}

  Coroutine Pay(Context& ctx, const PaymentOrder& request, Payment* reply) override {
    PaymentOrder order = request;
    order.set_text("card payment");
    if (absl::Status status = Orders::Check(order); !status.ok()) co_return status;
    CardQuery query;
    query.set_customer(order.customer());
    query.set_card(order.card());
    auto found = co_await WhenAllOk(ctx, Ask(cards, CreditCards::kFind, query),
                                    Ask(unique_id, apps::UniqueId::kNext, OneId()));
    if (!found.ok()) co_return found.status();
    const auto& [card, ids] = *found;
    uint64_t id = ids.ids(0);
    Permission permission;
    absl::Status allowed = co_await orders.Allow(ctx, order, &id, &permission);
    if (!allowed.ok()) co_return allowed;
    co_return co_await orders.Give(ctx, order, id, order.customer(), card.id(), reply);
  }
  Coroutine Status(Context& ctx, const PaymentQuery& request, Payment* reply) override {
    return orders.Status(ctx, request, reply);
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Pay", {cards, access, unique_id, Posting::kServiceName}}, {"Status", {Posting::kServiceName}}};
  }

  Env& env;
  const CreditCards::Stub cards = env.Stub<CreditCards>("credit-card");
  const apps::UniqueId::Stub unique_id = env.Stub<apps::UniqueId>("unique-id");
  const AccessControl::Stub access = env.Stub<AccessControl>("access-control");
  Orders orders;
};

HostedService HostedCardPayment() {
  return apps::HostedWithData<CardPaymentService>(
      kApplication, "card-payment", {Orders::Schema(), Orders::OpenSchema(), Orders::RefusedSchema()});
}

}  // namespace curtail::bank
