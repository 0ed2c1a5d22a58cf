// SPDX-License-Identifier: Apache-2.0
//
// Orders that a service leaves half way, as it dies, stands still, or has another clock. model_test.cc has random customers.
//
// Property: once the application is idle, each order is COMMITTED, REJECTED or REFUNDED, and `shop audit` finds what follows from that, once.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "apps/kit/testing/preload.h"
#include "apps/shop/load/fill.h"
#include "apps/shop/tests/shop_testing.h"
#include "buying.curtail.h"
#include "curtail/base/strings.h"
#include "curtail/store/sql/sqlite.h"

namespace curtail::shop {
namespace {

// Short, so that a service that stands still does not hold up the test.
constexpr Nanos kPatience = std::chrono::milliseconds(500);

bool IsOfFault(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) || absl::IsResourceExhausted(status);
}

class OrdersLeft : public ShopTest {};

// At each step of the queue master it dies, while the service of the step stands still.
TEST_F(OrdersLeft, ByTheQueueMasterAreEndedByANewOne) {
  Order order;
  ASSERT_TRUE(Buy(PurchaseOf(3, {LineOf(products_[1].id, 2)}), &order).ok());
  Basket basket;
  ASSERT_TRUE(Add(1, products_[0].id, 40, &basket).ok());
  int64_t bought = 0;
  for (const char* service : {"inventory", "payment", "payment-auth", "invoice", "shipping", "cart"}) {
    Quote quote, too_many;
    ASSERT_TRUE(MakeQuote(QuoteOf(1, {LineOf(products_[0].id, 2)}), &quote).ok());
    ASSERT_TRUE(MakeQuote(QuoteOf(2, {LineOf(products_[1].id, 49)}), &too_many).ok());
    app_->Stall(service);
    const absl::Status placed = Place(1, quote.id(), &order, Join("of ", service), 4 * kPatience);
    EXPECT_TRUE(placed.ok()) << service << ": " << placed;
    const absl::Status refused = Place(2, too_many.id(), &order, Join("of ", service), 2 * kPatience);
    EXPECT_TRUE(refused.ok()) << service << ": " << refused;
    app_->Kill("queue-master");
    app_->GoOn(service);
    ASSERT_TRUE(app_->Restart("queue-master").ok());
    EXPECT_EQ(Decided(1, quote.id()).state(), Order::COMMITTED) << service;
    EXPECT_EQ(Decided(2, too_many.id()).state(), Order::REJECTED) << service;
    bought += 2;
  }
  ExpectAuditedWhenIdle();
  EXPECT_EQ(AvailableOf(products_[0].id), kStock - bought);
  EXPECT_EQ(AvailableOf(products_[1].id), kStock - 2);
  EXPECT_EQ(BasketOf(1).lines(0).count(), 40 - bought) << "each order has taken its own once";
}

TEST_F(OrdersLeft, OutOfTheQueueAreQueuedLater) {
  Quote quote;
  ASSERT_TRUE(MakeQuote(QuoteOf(0, {LineOf(products_[0].id, 1)}), &quote).ok());
  app_->Kill("order-queue");
  Order order;
  const absl::Status placed = Place(0, quote.id(), &order, "a key", 4 * kPatience);
  EXPECT_TRUE(placed.ok() || IsOfFault(placed)) << placed;
  EXPECT_EQ(OrderOf(0, quote.id()).state(), Order::PLACED);
  app_->Kill("orders");
  ASSERT_TRUE(app_->Restart("order-queue").ok());
  ASSERT_TRUE(app_->Restart("orders").ok());
  EXPECT_EQ(Decided(0, quote.id()).state(), Order::COMMITTED);
  ExpectAuditedWhenIdle();
}

// As a loss of power leaves them: the queue has forgotten the order on its disk, `orders` has not written its end.
TEST_F(OrdersLeft, OpenAndInNoQueueAreEndedByANewProcess) {
  Order order, refunded;
  ASSERT_TRUE(Buy(PurchaseOf(0, {LineOf(products_[0].id, 1)}), &order).ok());
  ASSERT_EQ(Decided(0, order.id()).state(), Order::COMMITTED);
  ExpectAuditedWhenIdle();
  app_->Kill("orders");
  {
    const auto kept = internal::SqliteSession::Open({.path = Join(Folder(), "/orders.db")});
    ASSERT_TRUE(kept.ok()) << kept.status();
    ASSERT_TRUE((*kept)->Execute("UPDATE orders SET open = 1, queued = 1", {}).ok());
  }
  ASSERT_TRUE(app_->Restart("orders").ok());
  ExpectAuditedWhenIdle();
  EXPECT_TRUE(Refund(Clerk(), order.id(), &refunded).ok());
  ExpectAuditedWhenIdle();
}

// Each wants all that is left of a product, so the first one that came gets it.
TEST_F(OrdersLeft, InTheQueueAreEndedInTheOrderOfTheirArrival) {
  app_->Stall("queue-master");
  std::vector<std::pair<size_t, uint64_t>> placed;
  for (size_t i = 0; i < 6; ++i) {
    const size_t user = (3 * i + 1) % kUsers, product = i % 3;
    Quote quote;
    ASSERT_TRUE(MakeQuote(QuoteOf(user, {LineOf(products_[product].id, kStock)}), &quote).ok());
    Order order;
    ASSERT_TRUE(Place(user, quote.id(), &order, /*key=*/{}, 2 * kPatience).ok());
    ASSERT_EQ(order.state(), Order::PLACED);
    placed.emplace_back(user, order.id());
  }
  app_->GoOn("queue-master");
  for (size_t i = 0; i < placed.size(); ++i) {
    const Order order = Decided(placed[i].first, placed[i].second);
    EXPECT_EQ(order.number(), i < 3 ? i + 1 : 0) << order.ShortDebugString();
  }
  ExpectAuditedWhenIdle();
}

TEST_F(OrdersLeft, InTheQueueMayBeCancelledAndHoldNothing) {
  Quote quote;
  ASSERT_TRUE(MakeQuote(QuoteOf(0, {LineOf(products_[0].id, 1)}), &quote).ok());
  app_->Stall("queue-master");
  Order order;
  ASSERT_TRUE(Place(0, quote.id(), &order).ok());
  EXPECT_EQ(order.state(), Order::PLACED);
  OrderRequest request;
  request.set_token(users_[0].token), request.set_order(quote.id());
  for (int repeat = 0; repeat < 2; ++repeat) {
    Context ctx(kMaxTestWait);
    const absl::Status cancelled = shop().CancelOrder(ctx, request, &order);
    ASSERT_TRUE(cancelled.ok()) << cancelled;
    EXPECT_EQ(order.state(), Order::REJECTED);
  }
  app_->GoOn("queue-master");
  ExpectAuditedWhenIdle();
  EXPECT_EQ(AvailableOf(products_[0].id), kStock);
  EXPECT_TRUE(absl::IsFailedPrecondition(Place(0, quote.id(), &order))) << "it stays cancelled";
}

// A step of the refund, or the queue, stands still. The sender of the step dies, and the service that has decided.
TEST_F(OrdersLeft, ToBeRefundedAreByNewProcesses) {
  const std::string clerk = Clerk();
  const auto orders = Connect("orders");
  for (const char* service : {"inventory", "payment", "order-queue"}) {
    Order order;
    ASSERT_TRUE(Buy(PurchaseOf(1, {LineOf(products_[0].id, 2)}), &order).ok());
    ExpectAuditedWhenIdle();
    app_->Stall(service);
    const absl::Status refunded = Refund(clerk, order.id(), &order);
    ASSERT_TRUE(refunded.ok()) << service << ": " << refunded;
    Decisions late;
    late.add_decisions()->set_order(order.id());
    late.mutable_decisions(0)->set_state(Order::COMMITTED);
    apps::Nothing nothing;
    Context ctx(kMaxTestWait);
    ASSERT_TRUE(Orders::Stub(orders.get()).Finish(ctx, late, &nothing).ok());
    for (const char* died : {"queue-master", "orders"}) app_->Kill(died);
    app_->GoOn(service);
    for (const char* died : {"queue-master", "orders"}) ASSERT_TRUE(app_->Restart(died).ok());
    ExpectAuditedWhenIdle();
    EXPECT_EQ(OrderOf(1, order.id()).state(), Order::REFUNDED) << service;
    EXPECT_EQ(AvailableOf(products_[0].id), kStock) << service;
  }
}

TEST_F(OrdersLeft, JustCommittedAreRefundedLater) {
  app_->Stall("invoice");
  Order order;
  ASSERT_TRUE(Buy(PurchaseOf(0, {LineOf(products_[0].id, 2)}), &order).ok());
  ASSERT_EQ(Decided(0, order.id()).state(), Order::COMMITTED);
  const std::string clerk = Clerk();
  EXPECT_TRUE(absl::IsAborted(Refund(clerk, order.id(), &order)));
  app_->GoOn("invoice");
  ExpectAuditedWhenIdle();
  EXPECT_TRUE(Refund(clerk, order.id(), &order).ok());
  ExpectAuditedWhenIdle();
  EXPECT_EQ(AvailableOf(products_[0].id), kStock);
}

TEST_F(OrdersLeft, BehindTheirTimeAreQuotedAgainOrRejected) {
  constexpr int kLateS = 601;
  const apps::SetClock clock;
  for (const char* service : {"orders", "queue-master"})
    ASSERT_TRUE(app_->Restart(service, {.wrapper = clock.Words()}).ok());
  Quote quote;
  ASSERT_TRUE(MakeQuote(QuoteOf(0, {LineOf(products_[0].id, 1)}, kLoadCode), &quote).ok());
  clock.SetAhead(kLateS);
  PlaceRequest request;
  request.set_token(users_[0].token), request.set_quote(quote.id());
  Context ctx(kMaxTestWait);
  Order order;
  ReplyMetadata metadata;
  const absl::Status stale = shop().PlaceOrder(ctx, request, &order, &metadata);
  EXPECT_TRUE(absl::IsAborted(stale)) << stale;
  const auto fresh = metadata.trailing.Find("quote");
  ASSERT_TRUE(fresh.has_value());
  ASSERT_TRUE(Place(0, std::stoull(std::string(*fresh)), &order).ok());
  EXPECT_EQ(Decided(0, order.id()).quote().total_cents(), quote.total_cents()) << "the same again";

  ASSERT_TRUE(MakeQuote(QuoteOf(1, {LineOf(products_[0].id, 1)}), &quote).ok());
  app_->Stall("queue-master");
  ASSERT_TRUE(Place(1, quote.id(), &order).ok());
  EXPECT_EQ(order.state(), Order::PLACED);
  clock.SetAhead(2 * kLateS);
  app_->GoOn("queue-master");
  order = Decided(1, quote.id());
  EXPECT_EQ(order.state(), Order::REJECTED);
  EXPECT_NE(order.reason().find("in time"), std::string::npos) << order.reason();
  ExpectAuditedWhenIdle();
  EXPECT_EQ(AvailableOf(products_[0].id), kStock - 1);
}

}  // namespace
}  // namespace curtail::shop
