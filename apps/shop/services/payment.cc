// SPDX-License-Identifier: Apache-2.0
//
// Payment: what orders are charged. A charge has a row with its state, and writers take turns, so each goes one way (buying.proto). The
// first answer of the bank is kept with it.
#include <map>

#include "apps/kit/page.h"
#include "apps/shop/data.h"

namespace curtail::shop {

struct KeptCharge {
  Charge charge;
  std::string why;  // if it is DECLINED
};

struct PaymentService final : Payment::CoroutineService {
  PaymentService(SqlDatabase& d, Env& e) : db(d), env(e) {}

  Coroutine Authorise(Context& ctx, const Charges& request, Outcomes* reply) override {
    absl::Status status = apps::CheckCount(request.charges_size(), kMostOrders, "charges");
    if (!status.ok()) co_return status;
    Charges fresh;
    status = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return Each(s, request, [&](const Charge& charge, const KeptCharge& kept) {
        if (kept.charge.order() == 0) *fresh.add_charges() = charge;
      });
    });
    if (!status.ok()) co_return status;
    std::map<uint64_t, KeptCharge> decided;
    if (!fresh.charges().empty()) status = co_await AskBank(ctx, fresh, &decided);
    if (!status.ok()) co_return status;
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      reply->clear_outcomes();
      absl::Status written;
      for (const auto& [order, kept] : decided) written.Update(Insert(s, kept));
      if (!written.ok()) return written;
      return Each(s, request, [&](const Charge& charge, const KeptCharge& kept) {
        AddOutcome(charge.order(), OutcomeOf(charge, kept), reply);
      });
    });
  }

  // Asks the bank of the cards, and for numbers.
  Coroutine AskBank(Context& ctx, const Charges& charges, std::map<uint64_t, KeptCharge>* decided) {
    TransactionName names;
    for (const Charge& charge : charges.charges()) names.add_names(Join("order ", charge.order()));
    auto asked = co_await WhenAllOk(ctx, Ask(auth, PaymentAuth::kDecide, charges),
                                    Ask(transactions, TransactionId::kNext, std::move(names)));
    if (!asked.ok()) co_return asked.status();
    const auto& [outcomes, numbers] = *asked;
    if (outcomes.outcomes_size() != charges.charges_size() ||
        numbers.numbers_size() != charges.charges_size())
      co_return absl::InternalError("not every charge has an answer");
    for (int i = 0; i < charges.charges_size(); ++i) {
      KeptCharge& kept = (*decided)[charges.charges(i).order()];
      kept.charge = charges.charges(i);
      kept.charge.set_transaction(numbers.numbers(i));
      kept.charge.set_state(outcomes.outcomes(i).code() == 0 ? Charge::AUTHORISED : Charge::DECLINED);
      kept.why = outcomes.outcomes(i).why();
    }
    co_return absl::OkStatus();
  }

  // Leaves a charge that is there.
  static absl::Status Insert(SqlSession& s, const KeptCharge& kept) {
    const Charge& charge = kept.charge;
    return s.Execute(
        "INSERT INTO charges(order_id, owner, cents, card, state, number, why)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT(order_id) DO NOTHING",
        {charge.order(), charge.owner(), charge.cents(), charge.card_token(), int{charge.state()},
         charge.transaction(), kept.why});
  }

  static absl::Status OutcomeOf(const Charge& asked, const KeptCharge& kept) {
    const Charge& charge = kept.charge;
    if (charge.state() == Charge::VOIDED) return absl::FailedPreconditionError("the payment was taken back");
    if (charge.owner() != asked.owner() || charge.cents() != asked.cents() ||
        charge.card_token() != asked.card_token())
      return absl::AlreadyExistsError("the order was charged to another card, or with other cents");
    if (charge.state() == Charge::DECLINED) return absl::FailedPreconditionError(kept.why);
    return absl::OkStatus();
  }

  // Calls `found` with each of the charges and what is kept of it: the order 0, if nothing is.
  template <class Found>
  static absl::Status Each(SqlSession& s, const Charges& asked, Found found) {
    for (const Charge& charge : asked.charges()) {
      KeptCharge kept;
      absl::Status status = Read(s, charge.order(), &kept);
      if (!status.ok()) return status;
      found(charge, kept);
    }
    return absl::OkStatus();
  }

  static absl::Status Read(SqlSession& s, uint64_t order, KeptCharge* kept) {
    return s.Query("SELECT owner, cents, card, state, number, why FROM charges WHERE order_id = ?1", {order},
                   [&](const SqlRow& row) {
                     kept->charge.set_order(order);
                     kept->charge.set_owner(row.Unsigned(0));
                     kept->charge.set_cents(row.Integer(1));
                     kept->charge.set_card_token(std::string(row.Text(2)));
                     kept->charge.set_state(static_cast<Charge::State>(row.Integer(3)));
                     kept->charge.set_transaction(row.Unsigned(4));
                     kept->why = row.Text(5);
                   });
  }

  Coroutine Capture(Context& ctx, const apps::Ids& request, apps::Nothing*) override {
    return Go(ctx, request, Charge::CAPTURED);
  }
  Coroutine Refund(Context& ctx, const apps::Ids& request, apps::Nothing*) override {
    return Go(ctx, request, Charge::REFUNDED);
  }
  Coroutine Void(Context& ctx, const apps::Ids& request, apps::Nothing*) override {
    return Go(ctx, request, Charge::VOIDED);
  }

  Coroutine Go(Context& ctx, const apps::Ids& orders, Charge::State to) {
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status = apps::CheckCount(orders.ids_size(), kMostOrders, "orders");
      for (int i = 0; status.ok() && i < orders.ids_size(); ++i) status = GoOne(s, orders.ids(i), to);
      return status;
    });
  }

  static absl::Status GoOne(SqlSession& s, uint64_t order, Charge::State to) {
    KeptCharge kept;
    absl::Status status = Read(s, order, &kept);
    const Charge::State from = kept.charge.state();
    if (!status.ok() || from == to || (to == Charge::VOIDED && from == Charge::DECLINED) ||
        (to == Charge::CAPTURED && from == Charge::REFUNDED))
      return status;
    if (from == Charge::NONE && to == Charge::VOIDED) {
      kept.charge.set_order(order);
      kept.charge.set_state(to);
      return Insert(s, kept);
    }
    if (from != (to == Charge::REFUNDED ? Charge::CAPTURED : Charge::AUTHORISED))
      return absl::FailedPreconditionError(
          Join("the payment of order ", order, " is ", Charge::State_Name(from)));
    return s.Execute("UPDATE charges SET state = ?2 WHERE order_id = ?1", {order, int{to}});
  }

  Coroutine Get(Context& ctx, const apps::Ids& request, Charges* reply) override {
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status = apps::CheckCount(request.ids_size(), apps::kMostIds, "orders");
      for (int i = 0; status.ok() && i < request.ids_size(); ++i) {
        KeptCharge kept;
        status = Read(s, request.ids(i), &kept);
        kept.charge.set_order(request.ids(i));
        *reply->add_charges() = kept.charge;
      }
      return status;
    });
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Authorise", {auth, transactions}}, {"Capture", {}}, {"Refund", {}}, {"Void", {}}, {"Get", {}}};
  }

  SqlDatabase& db;
  Env& env;
  const PaymentAuth::Stub auth = env.Stub<PaymentAuth>("payment-auth");
  const TransactionId::Stub transactions = env.Stub<TransactionId>("transaction-id");
};

HostedService HostedPayment() {
  return apps::HostedWithData<PaymentService>(kApplication, "payment", {SchemaOf("payment")});
}

}  // namespace curtail::shop
