// SPDX-License-Identifier: Apache-2.0
//
// Queue master: ends orders in rounds, each of which has the oldest orders of the queue, at most --ahead.
//
//  1  `inventory` reserves the lines, `payment` authorises the total, `discounts` counts the use of a code.
//  2  `orders` writes the decisions, in order: the decision of an order is this one write. Orders that commit get the next numbers.
//  3  For COMMITTED orders: the total is captured, the lines are sold, the invoice is issued, the shipment created, and the basket
//     loses what was bought. For REJECTED ones: all of 1 is taken back, also what may still come. For REFUNDED ones, which the queue has
//     once more: the total is given back, and the lines are on hand again.
//  4  `orders` notes that they are at their end, and the queue forgets them.
//
// Each call may be repeated, and an order has one answer for each. So a round that failed, or whose process died, begins again at 1. What 2
// has decided stays.
#include <algorithm>
#include <atomic>

#include "apps/kit/forward.h"
#include "apps/kit/page.h"
#include "apps/kit/wall_clock.h"
#include "apps/shop/data.h"
#include "customers.curtail.h"
#include "goods.curtail.h"

namespace curtail::shop {

// An older order that was not decided is rejected: its customer does not expect it any more.
constexpr int64_t kPatienceMs = 600'000;

// The requests of a round, for its orders by their decisions.
struct RoundEnd {
  apps::Ids committed, rejected, refunded, discounted;
  InvoiceOrders invoices;
  ShipmentOrders shipments;
  Bought bought;
};

struct QueueMasterService final : QueueMaster::CoroutineService {
  QueueMasterService(Env& e, uint32_t a) : env(e), ahead(a) {}

  Coroutine Run(Context& ctx, const QueuedOrders& request, apps::Ids* reply) override {
    absl::Status status = apps::CheckCount(request.orders_size(), kMostOrders, "orders");
    for (int begin = 0; status.ok() && begin < request.orders_size(); begin += static_cast<int>(ahead)) {
      const std::span<const QueuedOrder* const> all(request.orders().data(),
                                                    static_cast<size_t>(request.orders_size()));
      const auto from = static_cast<size_t>(begin);
      status = co_await Round(ctx, all.subspan(from, std::min<size_t>(ahead, all.size() - from)), reply);
    }
    // The caller gives the others again.
    co_return reply->ids().empty() ? status : absl::OkStatus();
  }

  Coroutine Round(Context& ctx, std::span<const QueuedOrder* const> orders, apps::Ids* done) {
    Verdicts verdicts;
    absl::Status status = co_await Prepare(ctx, orders, &verdicts);
    if (!status.ok()) co_return status;
    auto [decided] = co_await WhenAll(ctx, Ask(keeper, Orders::kDecide, std::move(verdicts)));
    if (!decided.ok()) co_return decided.status();
    if (static_cast<size_t>(decided->decisions_size()) != orders.size())
      co_return absl::InternalError("not every order has a decision");
    RoundEnd end;
    for (size_t i = 0; i < orders.size(); ++i)
      Sort(*orders[i], decided->decisions(static_cast<int>(i)), &end);
    rounds.fetch_add(1, std::memory_order_relaxed);
    absl::Status undone, followed, returned;
    if (!end.rejected.ids().empty()) undone = co_await Undo(ctx, end);
    if (!end.committed.ids().empty()) followed = co_await Follow(ctx, end);
    if (!end.refunded.ids().empty()) returned = co_await GiveBack(ctx, end);
    Decisions ended;
    for (const Decision& decision : decided->decisions()) {
      const absl::Status& refunds = decision.state() == Order::REFUNDED ? returned : undone;
      if ((decision.state() == Order::COMMITTED ? followed : refunds).ok()) *ended.add_decisions() = decision;
    }
    undone.Update(followed);
    undone.Update(returned);
    if (ended.decisions().empty()) co_return undone;
    auto [finished] = co_await WhenAll(ctx, Ask(keeper, Orders::kFinish, ended));
    if (!finished.ok()) co_return finished.status();
    Note(ended, done);
    co_return undone;
  }

  // Step 4.
  void Note(const Decisions& ended, apps::Ids* done) {
    for (const Decision& decision : ended.decisions()) {
      done->add_ids(decision.order());
      if (decision.state() == Order::COMMITTED) committed.fetch_add(1, std::memory_order_relaxed);
      if (decision.state() == Order::REJECTED) rejected.fetch_add(1, std::memory_order_relaxed);
    }
  }

  // Step 1.
  Coroutine Prepare(Context& ctx, std::span<const QueuedOrder* const> orders, Verdicts* verdicts) {
    Reservations reservations;
    Charges charges;
    Redemptions redemptions;
    for (const QueuedOrder* const order : orders) {
      Verdict& verdict = *verdicts->add_verdicts();
      verdict.set_order(order->order());
      if (apps::NowMs() - order->placed_ms() < kPatienceMs) {
        Fill(*order, &reservations, &charges, &redemptions);
      } else {
        verdict.set_code(static_cast<int>(absl::StatusCode::kFailedPrecondition));
        verdict.set_why("the order could not be ended in time");
      }
    }
    auto asked = co_await WhenAllOk(ctx, Ask(inventory, Inventory::kReserve, std::move(reservations)),
                                    Ask(payment, Payment::kAuthorise, std::move(charges)));
    if (!asked.ok()) co_return asked.status();
    const auto& [reserved, authorised] = *asked;
    Judge(reserved, verdicts);
    Judge(authorised, verdicts);
    if (redemptions.orders().empty()) co_return absl::OkStatus();
    auto [redeemed] = co_await WhenAll(ctx, Ask(discounts, Discounts::kRedeem, std::move(redemptions)));
    if (redeemed.ok()) Judge(*redeemed, verdicts);
    co_return redeemed.status();
  }

  static void Fill(const QueuedOrder& order, Reservations* reservations, Charges* charges,
                   Redemptions* redemptions) {
    OrderLines& lines = *reservations->add_orders();
    lines.set_order(order.order());
    *lines.mutable_lines() = LinesOf(order.quote());
    Charge& charge = *charges->add_charges();
    charge.set_order(order.order());
    charge.set_owner(order.owner());
    charge.set_cents(order.quote().total_cents());
    charge.set_card_token(order.card_token());
    if (order.quote().discount_code().empty()) return;
    Redemption& redemption = *redemptions->add_orders();
    redemption.set_order(order.order());
    redemption.set_owner(order.owner());
    redemption.set_code(order.quote().discount_code());
  }

  static google::protobuf::RepeatedPtrField<Line> LinesOf(const Quote& quote) {
    google::protobuf::RepeatedPtrField<Line> lines;
    for (const QuotedLine& quoted : quote.lines()) {
      Line& line = *lines.Add();
      line.set_product(quoted.product());
      line.set_count(quoted.count());
    }
    return lines;
  }

  // The first refusal of an order is its reason.
  static void Judge(const Outcomes& outcomes, Verdicts* verdicts) {
    for (const Outcome& outcome : outcomes.outcomes()) {
      if (outcome.code() == 0) continue;
      for (Verdict& verdict : *verdicts->mutable_verdicts()) {
        if (verdict.order() != outcome.order() || verdict.code() != 0) continue;
        verdict.set_code(outcome.code());
        verdict.set_why(outcome.why());
      }
    }
  }

  static void Sort(const QueuedOrder& order, const Decision& decision, RoundEnd* end) {
    if (decision.state() == Order::REFUNDED) {
      end->refunded.add_ids(order.order());
      return;
    }
    const bool commits = decision.state() == Order::COMMITTED;
    (commits ? end->committed : end->rejected).add_ids(order.order());
    if (!commits) {
      if (!order.quote().discount_code().empty()) end->discounted.add_ids(order.order());
      return;
    }
    InvoiceOrder& invoice = *end->invoices.add_orders();
    invoice.set_order(order.order());
    invoice.set_owner(order.owner());
    *invoice.mutable_quote() = order.quote();
    invoice.set_number(decision.number());
    ShipmentOrder& shipment = *end->shipments.add_orders();
    shipment.set_order(order.order());
    shipment.set_owner(order.owner());
    *shipment.mutable_address() = order.quote().address();
    shipment.set_option(order.quote().shipping_option());
    *shipment.mutable_lines() = LinesOf(order.quote());
    BoughtLines& bought = *end->bought.add_orders();
    bought.set_order(order.order());
    bought.set_owner(order.owner());
    *bought.mutable_lines() = LinesOf(order.quote());
  }

  // Step 3 of orders that commit.
  Coroutine Follow(Context& ctx, const RoundEnd& end) {
    auto all = co_await WhenAll(
        ctx, Ask(payment, Payment::kCapture, end.committed),
        Ask(inventory, Inventory::kCommit, end.committed), Ask(invoices, Invoices::kIssue, end.invoices),
        Ask(shipping, Shipping::kCreate, end.shipments), Ask(cart, Cart::kTake, end.bought));
    co_return apps::FirstErrorOf(all);
  }

  // Step 3 of orders that are rejected.
  Coroutine Undo(Context& ctx, const RoundEnd& end) {
    auto all = co_await WhenAll(ctx, Ask(payment, Payment::kVoid, end.rejected),
                                Ask(inventory, Inventory::kRelease, end.rejected));
    absl::Status status = apps::FirstErrorOf(all);
    if (!status.ok() || end.discounted.ids().empty()) co_return status;
    auto [released] = co_await WhenAll(ctx, Ask(discounts, Discounts::kRelease, end.discounted));
    co_return released.status();
  }

  // Step 3 of orders that are refunded.
  Coroutine GiveBack(Context& ctx, const RoundEnd& end) {
    auto all = co_await WhenAll(ctx, Ask(payment, Payment::kRefund, end.refunded),
                                Ask(inventory, Inventory::kTakeBack, end.refunded));
    co_return apps::FirstErrorOf(all);
  }

  Coroutine State(Context&, const apps::Nothing&, QueueState* reply) override {
    reply->set_rounds(rounds.load(std::memory_order_relaxed));
    reply->set_committed(committed.load(std::memory_order_relaxed));
    reply->set_rejected(rejected.load(std::memory_order_relaxed));
    reply->set_ahead(ahead);
    co_return absl::OkStatus();
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Run", {inventory, payment, discounts, keeper, invoices, shipping, cart}}, {"State", {}}};
  }

  Env& env;
  const uint32_t ahead;
  const Inventory::Stub inventory = env.Stub<Inventory>("inventory");
  const Payment::Stub payment = env.Stub<Payment>("payment");
  const Discounts::Stub discounts = env.Stub<Discounts>("discounts");
  const Orders::Stub keeper = env.Stub<Orders>("orders");
  const Invoices::Stub invoices = env.Stub<Invoices>("invoice");
  const Shipping::Stub shipping = env.Stub<Shipping>("shipping");
  const Cart::Stub cart = env.Stub<Cart>("cart");
  // Atomic; relaxed, statistics.
  std::atomic<uint64_t> rounds{0}, committed{0}, rejected{0};
};

HostedService HostedQueueMaster() {
  const auto ahead = std::make_shared<uint32_t>(kMostOrders);
  return {
      .name = "queue-master",
      .flags =
          [ahead](Flags& flags) {
            flags.Add("--ahead", ahead.get(),
                      "queue-master: orders of a round at most; 1: one after the other", {1, kMostOrders});
          },
      .make = [ahead](Env& env) -> MadeService { return std::make_unique<QueueMasterService>(env, *ahead); }};
}

}  // namespace curtail::shop
