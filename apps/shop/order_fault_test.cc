// SPDX-License-Identifier: Apache-2.0
//
// Users buy while services die, stand still and have no room.
//
// Property: an order that a user was told of is there, and a request has one order. Once the application is idle, each order is COMMITTED or
// REJECTED, and `shop audit` finds what follows from that, once: no product is sold that is not there, no order is charged what was
// not shown, numbers of orders and invoices have no gaps. A basket has what was acknowledged, less what was bought.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "apps/kit/testing/actors.h"
#include "apps/kit/testing/faults.h"
#include "apps/kit/testing/preload.h"
#include "apps/shop/fill.h"
#include "apps/shop/shop_testing.h"
#include "curtail/base/strings.h"

namespace curtail::shop {
namespace {

// Short, so that a service that stands still does not hold up the test.
constexpr Nanos kPatience = std::chrono::milliseconds(500);
constexpr size_t kBought = 3, kActors = 4;  // the last products are only put into baskets
constexpr uint32_t kMostOfLine = 99;

bool IsOfFault(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) || absl::IsResourceExhausted(status);
}

class OrderFaults : public ShopTest {
 protected:
  // With more of the products that are bought than a test buys.
  void SetUp() override {
    ShopTest::SetUp();
    const auto channel = Connect("inventory");
    for (size_t i = 0; i <= kBought; ++i) {
      Delivery delivery;
      delivery.set_name(Join("more ", i)), delivery.set_product(products_[i].id), delivery.set_count(20'000);
      apps::Nothing nothing;
      Context ctx(kMaxTestWait);
      ASSERT_TRUE(Inventory::Stub(channel.get()).Deliver(ctx, delivery, &nothing).ok());
    }
  }

  // The answers that a user got, and what it has sent.
  struct Known {
    std::map<std::string, uint64_t> orders;  // by the name of the request
    uint64_t added = 0, perhaps = 0;         // to its basket, of its own product
  };

  apps::Actors::Did ActOnce(Rng& rng) {
    const size_t user = rng.Below(kUsers);
    const uint64_t number = next_.fetch_add(1);
    return rng.Below(4) == 0 ? AddOne(user, Join("add ", number)) : BuyOne(rng, user, Join("order ", number));
  }

  // Each request is repeated once if its outcome is unknown.
  apps::Actors::Did BuyOne(Rng& rng, size_t user, const std::string& name) {
    std::vector<Line> lines = {
        LineOf(products_[rng.Below(kBought)].id, 1 + static_cast<uint32_t>(rng.Below(2)))};
    if (rng.Below(3) == 0) lines.push_back(LineOf(products_[kBought].id, 1));
    const BuyRequest request = PurchaseOf(user, lines);
    Order order;
    absl::Status status = Buy(request, &order, name, kPatience);
    if (IsOfFault(status)) status = Buy(request, &order, name, kPatience);
    if (absl::IsInvalidArgument(status)) return TakeOut(user, lines);  // failed purchases have left 99 there
    if (absl::IsFailedPrecondition(status)) return apps::Actors::Did::kOther;
    EXPECT_TRUE(status.ok() || IsOfFault(status)) << status;
    if (!status.ok()) return apps::Actors::Did::kFailedToWrite;
    const std::lock_guard lock(mu_);
    known_[user].orders[name] = order.id();
    return apps::Actors::Did::kWrote;
  }

  apps::Actors::Did TakeOut(size_t user, const std::vector<Line>& lines) {
    for (const Line& line : lines) {
      LineRequest request;
      request.set_token(users_[user].token), request.set_product(line.product());
      Basket ignored;
      Context ctx(kPatience);
      const absl::Status status = shop().RemoveFromBasket(ctx, request, &ignored);
      EXPECT_TRUE(status.ok() || IsOfFault(status)) << status;
    }
    return apps::Actors::Did::kOther;
  }

  apps::Actors::Did AddOne(size_t user, const std::string& name) {
    {
      const std::lock_guard lock(mu_);
      if (known_[user].perhaps == kMostOfLine) return apps::Actors::Did::kOther;
      ++known_[user].perhaps;
    }
    Basket basket;
    absl::Status status = Add(user, OwnProduct(user), 1, &basket, name, kPatience);
    if (IsOfFault(status)) status = Add(user, OwnProduct(user), 1, &basket, name, kPatience);
    EXPECT_TRUE(status.ok() || IsOfFault(status)) << status;
    if (!status.ok()) return apps::Actors::Did::kFailedToWrite;
    const std::lock_guard lock(mu_);
    ++known_[user].added;
    return apps::Actors::Did::kWrote;
  }
  // One that it does not buy.
  uint64_t OwnProduct(size_t user) const { return products_[kBought + 1 + user].id; }

  void ExpectToBeAsTold(size_t user) {
    const Known& known = known_[user];
    std::map<uint64_t, Order> orders;
    for (const Order& order : OrdersOf(user)) {
      EXPECT_NE(order.state(), Order::PLACED) << order.ShortDebugString();
      orders[order.id()] = order;
    }
    std::set<uint64_t> ids;
    for (const auto& [name, id] : known.orders) {
      EXPECT_TRUE(ids.insert(id).second) << "two requests have one order";
      EXPECT_TRUE(orders.contains(id)) << name << " is lost";
    }
    uint64_t in_basket = 0;
    const BasketPage basket = BasketOf(user);
    for (const BasketLine& line : basket.lines())
      if (line.product().id() == OwnProduct(user)) in_basket = line.count();
    EXPECT_GE(in_basket, known.added) << "an acknowledged add is lost";
    EXPECT_LE(in_basket, known.perhaps) << "an add came twice";
  }

  void EndActs(apps::FaultSchedule& schedule) {
    for (size_t i = 0; i < kActors; ++i)
      actors_.Begin(seed_ + i, [this](Rng& rng) { actors_.Note(ActOnce(rng)); });
    schedule.Run();
    actors_.Rest();
    ExpectAuditedWhenIdle();
    for (size_t user = 0; user < kUsers; ++user) ExpectToBeAsTold(user);
  }

  const uint64_t seed_ = TestSeed();
  std::atomic<uint64_t> next_{0};
  std::mutex mu_;
  std::vector<Known> known_ = std::vector<Known>(kUsers);  // guarded by mu_ while users act
  apps::Actors actors_;                                    // ends first
};

TEST_F(OrderFaults, OrdersAreEndedOnceOrNotAtAllStress) {
  apps::FaultSchedule schedule(seed_, &actors_);
  for (const char* kept : {"orders", "order-queue", "queue-master", "inventory", "payment", "cart"})
    schedule.Add(apps::KillOf(app_.get(), kept));
  schedule.AddOneOf({apps::KillOf(app_.get(), "payment-auth"), apps::KillOf(app_.get(), "transaction-id"),
                     apps::KillOf(app_.get(), "catalogue"), apps::KillOf(app_.get(), "address-book"),
                     apps::KillOf(app_.get(), "front-end")});
  schedule.AddOneOf({apps::KillOf(app_.get(), "invoice"), apps::KillOf(app_.get(), "shipping")});
  schedule.AddOneOf({apps::StallOf(app_.get(), "queue-master"), apps::StallOf(app_.get(), "order-queue")});
  schedule.AddOneOf({apps::StallOf(app_.get(), "inventory"), apps::StallOf(app_.get(), "payment")});
  schedule.AddOneOf({apps::FullDiskOf(app_.get(), "orders", /*refuses=*/true),
                     apps::FullDiskOf(app_.get(), "order-queue", /*refuses=*/false),
                     apps::FullDiskOf(app_.get(), "inventory", /*refuses=*/false)});
  EndActs(schedule);
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
