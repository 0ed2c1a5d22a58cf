// SPDX-License-Identifier: Apache-2.0
//
// The catalogue, baskets and orders of the whole application.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "apps/kit/accounts/ids.h"
#include "apps/kit/testing/actors.h"
#include "apps/kit/testing/configs_to_test.h"
#include "apps/shop/common/clerk.h"
#include "apps/shop/data.h"
#include "apps/shop/load/fill.h"
#include "apps/shop/tests/shop_testing.h"
#include "curtail/base/strings.h"

namespace curtail::shop {
namespace {

TEST_F(ShopTest, AnOrderIsPaidInvoicedAndSentOnce) {
  const uint64_t shirt = products_[0].id, boots = products_[1].id;
  Basket basket;
  ASSERT_TRUE(Add(0, shirt, 2, &basket).ok());
  ASSERT_TRUE(Add(0, boots, 5, &basket).ok());
  Quote quote;
  absl::Status status = MakeQuote(QuoteOf(0, {LineOf(shirt, 2), LineOf(boots, 1)}, kLoadCode), &quote);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(quote.goods_cents(), 2 * products_[0].cents + products_[1].cents);
  EXPECT_EQ(quote.discount_cents(), quote.goods_cents() / 10);
  EXPECT_GT(quote.shipping_cents(), 0);
  EXPECT_EQ(quote.total_cents(), quote.goods_cents() - quote.discount_cents() + quote.shipping_cents());
  EXPECT_EQ(quote.card().last_four(), "1111");
  EXPECT_EQ(quote.card().token(), "");

  Order order, again;
  status = Place(0, quote.id(), &order, "a key");
  ASSERT_TRUE(status.ok()) << status;
  order = Decided(0, order.id());
  EXPECT_EQ(order.state(), Order::COMMITTED);
  EXPECT_EQ(order.number(), 1u);
  EXPECT_EQ(order.quote().total_cents(), quote.total_cents());
  ASSERT_TRUE(Place(0, quote.id(), &again, "a key").ok());
  EXPECT_EQ(again.SerializeAsString(), order.SerializeAsString());
  ASSERT_TRUE(Place(0, quote.id(), &again, "another key").ok()) << "a quote is placed once";
  EXPECT_EQ(again.number(), 1u);
  EXPECT_TRUE(absl::IsAlreadyExists(Place(0, quote.id() + 1, &again, "a key"))) << "another content";
  EXPECT_TRUE(absl::IsNotFound(Place(1, quote.id(), &again))) << "of another user";

  ExpectAuditedWhenIdle();
  EXPECT_EQ(AvailableOf(shirt), kStock - 2);
  EXPECT_EQ(AvailableOf(boots), kStock - 1);
  const BasketPage left = BasketOf(0);
  ASSERT_EQ(left.lines_size(), 1) << "only what was bought is gone";
  EXPECT_EQ(left.lines(0).product().id(), boots);
  EXPECT_EQ(left.lines(0).count(), 4u);
  EXPECT_EQ(left.goods_cents(), 4 * products_[1].cents);

  OrderRequest mine;
  mine.set_token(users_[0].token), mine.set_order(order.id());
  Invoice invoice;
  Shipment shipment;
  Context asking(kMaxTestWait), tracking(kMaxTestWait), other(kMaxTestWait);
  ASSERT_TRUE(shop().GetInvoice(asking, mine, &invoice).ok());
  EXPECT_EQ(invoice.number(), 1u);
  EXPECT_EQ(invoice.quote().total_cents(), quote.total_cents());
  ASSERT_TRUE(shop().TrackOrder(tracking, mine, &shipment).ok());
  EXPECT_EQ(shipment.option(), "standard");
  EXPECT_GT(shipment.due_ms(), shipment.created_ms());
  mine.set_token(users_[1].token);
  EXPECT_TRUE(absl::IsNotFound(shop().GetInvoice(other, mine, &invoice)));
}

TEST_F(ShopTest, WhatIsRejectedChargesAndHoldsNothing) {
  const uint64_t product = products_[0].id;
  Order order;
  absl::Status status = Buy(PurchaseOf(0, {LineOf(product, 40)}), &order);
  ASSERT_TRUE(status.ok()) << status;
  status = Buy(PurchaseOf(1, {LineOf(products_[1].id, 1), LineOf(product, 40)}), &order, "a key");
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_NE(status.ToString().find(Join("products ", product, " (10 left)")), std::string::npos) << status;
  EXPECT_EQ(Buy(PurchaseOf(1, {LineOf(products_[1].id, 1), LineOf(product, 40)}), &order, "a key"), status)
      << "a refusal stays";
  std::vector<Line> dear;
  for (size_t i = 1; i < 11; ++i) dear.push_back(LineOf(products_[i].id, 49));
  Quote quote;
  ASSERT_TRUE(MakeQuote(QuoteOf(1, dear), &quote).ok());
  ASSERT_GT(quote.total_cents(), kCardLimit);
  status = Place(1, quote.id(), &order);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_NE(status.ToString().find("declined"), std::string::npos) << status;
  ExpectAuditedWhenIdle();
  EXPECT_EQ(AvailableOf(products_[1].id), kStock);
  EXPECT_EQ(AvailableOf(product), 10);
  const std::vector<Order> mine = OrdersOf(1);
  ASSERT_EQ(mine.size(), 2u);
  EXPECT_EQ(mine[0].state(), Order::REJECTED);
  EXPECT_EQ(mine[0].number(), 0u);
  OrderRequest request;
  request.set_token(users_[1].token), request.set_order(mine[0].id());
  Context cancelling(kMaxTestWait), asking(kMaxTestWait);
  Order ignored;
  EXPECT_TRUE(shop().CancelOrder(cancelling, request, &ignored).ok()) << "it is rejected already";
  Invoice invoice;
  EXPECT_TRUE(absl::IsNotFound(shop().GetInvoice(asking, request, &invoice)));
}

TEST_F(ShopTest, TheClerkRefundsAnOrderOnce) {
  const uint64_t product = products_[0].id;
  Order order, refunded;
  ASSERT_TRUE(Buy(PurchaseOf(0, {LineOf(product, 3)}, kLoadCode), &order).ok());
  order = Decided(0, order.id());
  EXPECT_TRUE(absl::IsFailedPrecondition(Buy(PurchaseOf(1, {LineOf(product, 48)}), &refunded)));
  ExpectAuditedWhenIdle();
  const std::string clerk = Clerk();
  EXPECT_TRUE(absl::IsPermissionDenied(Refund(users_[0].token, order.id(), &refunded)));
  EXPECT_TRUE(absl::IsFailedPrecondition(Refund(clerk, OrdersOf(1)[0].id(), &refunded))) << "it was rejected";
  EXPECT_TRUE(absl::IsNotFound(Refund(clerk, 7, &refunded)));
  apps::AllAtOnce(3, TestSeed(), [&](Rng&, size_t) {
    Order told;
    const absl::Status status = Refund(clerk, order.id(), &told);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(told.state(), Order::REFUNDED);
  });
  ExpectAuditedWhenIdle();
  ASSERT_TRUE(Refund(clerk, order.id(), &refunded).ok()) << "again, once all has happened";
  ExpectAuditedWhenIdle();
  EXPECT_EQ(AvailableOf(product), kStock);
  order.set_state(Order::REFUNDED);
  EXPECT_EQ(refunded.ShortDebugString(), order.ShortDebugString()) << "its number stays";
  EXPECT_EQ(OrderOf(0, order.id()).ShortDebugString(), order.ShortDebugString());
  OrderRequest mine;
  mine.set_token(users_[0].token), mine.set_order(order.id());
  Invoice invoice;
  Context cancelling(kMaxTestWait), asking(kMaxTestWait);
  EXPECT_TRUE(absl::IsFailedPrecondition(shop().CancelOrder(cancelling, mine, &refunded)));
  EXPECT_TRUE(shop().GetInvoice(asking, mine, &invoice).ok());
  ASSERT_TRUE(Buy(PurchaseOf(2, {LineOf(product, kStock)}), &order).ok());
  EXPECT_EQ(Decided(2, order.id()).number(), 2u);
  ExpectAuditedWhenIdle();
}

// As a queue master sends them that stood still meanwhile.
TEST_F(ShopTest, LateStepsOfARefundedOrderChangeNothing) {
  Order order;
  ASSERT_TRUE(Buy(PurchaseOf(0, {LineOf(products_[0].id, 3)}), &order).ok());
  ExpectAuditedWhenIdle();
  const auto payment = Connect("payment"), inventory = Connect("inventory");
  const auto send = [](const auto& stub, auto step, uint64_t id) {
    apps::Nothing nothing;
    Context ctx(kMaxTestWait);
    return (stub.*step)(ctx, apps::IdsOf(id), &nothing, /*metadata=*/nullptr);
  };
  const Payment::Stub money(payment.get());
  const Inventory::Stub goods(inventory.get());
  EXPECT_TRUE(absl::IsFailedPrecondition(send(money, &Payment::Stub::Refund, 7)))
      << "order 7 was never charged";
  EXPECT_TRUE(absl::IsFailedPrecondition(send(goods, &Inventory::Stub::TakeBack, 7)));
  ASSERT_TRUE(Refund(Clerk(), order.id(), &order).ok());
  ExpectAuditedWhenIdle();
  for (const auto step : {&Payment::Stub::Refund, &Payment::Stub::Capture})
    EXPECT_TRUE(send(money, step, order.id()).ok());
  for (const auto step : {&Inventory::Stub::TakeBack, &Inventory::Stub::Commit})
    EXPECT_TRUE(send(goods, step, order.id()).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(send(money, &Payment::Stub::Void, order.id())));
  EXPECT_TRUE(absl::IsFailedPrecondition(send(goods, &Inventory::Stub::Release, order.id())));
  EXPECT_EQ(Audited(), 0);
  EXPECT_EQ(AvailableOf(products_[0].id), kStock);
}

TEST_F(ShopTest, RefusesBadInput) {
  const uint64_t product = products_[0].id;
  Basket basket;
  EXPECT_TRUE(absl::IsInvalidArgument(Add(0, product, 0, &basket)));
  EXPECT_TRUE(absl::IsInvalidArgument(Add(0, product, 100, &basket)));
  EXPECT_TRUE(absl::IsNotFound(Add(0, 999, 1, &basket)));
  ASSERT_TRUE(Add(0, product, 99, &basket, "a key").ok());
  ASSERT_TRUE(Add(0, product, 99, &basket, "a key").ok()) << "once";
  EXPECT_TRUE(absl::IsInvalidArgument(Add(0, product, 1, &basket))) << "more than 99 in all";
  EXPECT_TRUE(absl::IsAlreadyExists(Add(0, product, 1, &basket, "a key")));
  Quote quote;
  EXPECT_TRUE(absl::IsInvalidArgument(MakeQuote(QuoteOf(1, {}), &quote))) << "the basket is empty";
  EXPECT_TRUE(
      absl::IsInvalidArgument(MakeQuote(QuoteOf(0, {LineOf(product, 1), LineOf(product, 1)}), &quote)));
  EXPECT_TRUE(absl::IsInvalidArgument(MakeQuote(QuoteOf(0, {LineOf(product, 100)}), &quote)));
  EXPECT_TRUE(absl::IsNotFound(MakeQuote(QuoteOf(0, {LineOf(999, 1)}), &quote)));
  EXPECT_TRUE(absl::IsNotFound(MakeQuote(QuoteOf(0, {LineOf(product, 1)}, "NOSUCHCODE"), &quote)));
  QuoteRequest wrong = QuoteOf(0, {LineOf(product, 1)});
  wrong.set_address(wrong.address() + 1000);
  EXPECT_TRUE(absl::IsNotFound(MakeQuote(wrong, &quote)));
  wrong = QuoteOf(0, {LineOf(product, 1)});
  wrong.set_shipping("by pigeon");
  EXPECT_TRUE(absl::IsNotFound(MakeQuote(wrong, &quote)));
  std::vector<Line> many;
  for (uint64_t i = 1; i <= 101; ++i) many.push_back(LineOf(i, 1));
  EXPECT_TRUE(absl::IsInvalidArgument(MakeQuote(QuoteOf(0, many), &quote)));
  EXPECT_TRUE(absl::IsInvalidArgument(Buy(PurchaseOf(0, {}), std::make_unique<Order>().get())));
  PutProductRequest put;
  put.set_token(users_[0].token);
  *put.mutable_product() = GenerateProduct(1, 1, "shirt");
  Product entered;
  Context ctx(kMaxTestWait);
  EXPECT_TRUE(absl::IsPermissionDenied(shop().PutProduct(ctx, put, &entered))) << "not the clerk";
}

TEST_F(ShopTest, OnlyATokenByTheSecretIsTheClerks) {
  const auto refused = [this](const std::string& token) {
    PutProductRequest product;
    product.set_token(token);
    *product.mutable_product() = GenerateProduct(1, 1, "shirt");
    DeliverRequest delivery;
    delivery.set_token(token);
    delivery.mutable_delivery()->set_name("some"), delivery.mutable_delivery()->set_count(1);
    delivery.mutable_delivery()->set_product(products_[0].id);
    PutDiscountRequest discount;
    discount.set_token(token);
    discount.mutable_discount()->set_code("FREE"), discount.mutable_discount()->set_percent(100);
    Product entered;
    apps::Changed changed;
    Context putting(kMaxTestWait), delivering(kMaxTestWait), discounting(kMaxTestWait);
    const absl::Status put = shop().PutProduct(putting, product, &entered);
    EXPECT_EQ(shop().DeliverStock(delivering, delivery, &changed).code(), put.code());
    EXPECT_EQ(shop().PutDiscount(discounting, discount, &changed).code(), put.code());
    return put;
  };
  apps::Credentials named;
  named.set_name("clerk"), named.set_password("a password");
  apps::Session first, guest;
  Context registering(kMaxTestWait), opening(kMaxTestWait);
  ASSERT_TRUE(shop().Register(registering, named, &first).ok()) << "a name like any other";
  ASSERT_TRUE(shop().OpenGuestSession(opening, {}, &guest).ok());
  for (const std::string& token : {first.token(), guest.token(), users_[0].token})
    EXPECT_TRUE(absl::IsPermissionDenied(refused(token)));
  EXPECT_EQ(AvailableOf(products_[0].id), kStock);
  const auto forged = ClerkToken({.application = kApplication, .folder = dir_.File("another")}, 1);
  ASSERT_TRUE(forged.ok()) << forged.status();
  EXPECT_TRUE(absl::IsUnauthenticated(refused(*forged))) << "by another secret";
  EXPECT_TRUE(refused(Clerk()).ok());
  EXPECT_EQ(AvailableOf(products_[0].id), kStock + 1);
}

TEST_F(ShopTest, ListsProductsByTagsInAnOrderPageByPage) {
  std::vector<uint64_t> listed;
  ProductQuery query;
  query.set_order(ProductQuery::CHEAPEST), query.set_limit(5);
  ProductList page;
  int64_t cents = 0;
  do {
    query.set_page(page.next());
    page.Clear();
    Context ctx(kMaxTestWait);
    ASSERT_TRUE(shop().ListProducts(ctx, query, &page).ok());
    for (const Product& one : page.products()) {
      EXPECT_GE(one.cents(), cents);
      cents = one.cents();
      listed.push_back(one.id());
    }
  } while (page.next() != 0);
  EXPECT_EQ(std::set<uint64_t>(listed.begin(), listed.end()).size(), kProducts);
  EXPECT_EQ(listed.size(), kProducts);

  ProductQuery of;
  of.add_tags(products_[0].tag);
  ProductCount count;
  Context counting(kMaxTestWait), listing(kMaxTestWait), wrong(kMaxTestWait), beyond(kMaxTestWait);
  ASSERT_TRUE(shop().CountProducts(counting, of, &count).ok());
  const auto same = std::ranges::count(products_, products_[0].tag, &KnownProduct::tag);
  EXPECT_EQ(count.count(), static_cast<uint64_t>(same));
  page.Clear();
  ASSERT_TRUE(shop().ListProducts(listing, of, &page).ok());
  ASSERT_EQ(page.products_size(), same);
  EXPECT_EQ(page.products(0).id(), products_[0].id);
  of.add_tags(products_[0].tag);
  EXPECT_TRUE(absl::IsInvalidArgument(shop().ListProducts(wrong, of, &page))) << "a tag twice";
  query.set_page(10'001);
  EXPECT_TRUE(absl::IsInvalidArgument(shop().ListProducts(beyond, query, &page)));
}

TEST_F(ShopTest, AQuoteKeepsItsPriceAndAPageShowsTheNewOne) {
  auto catalogue = Connect("catalogue");
  Quote quote;
  ASSERT_TRUE(MakeQuote(QuoteOf(0, {LineOf(products_[2].id, 3)}), &quote).ok());
  Product dearer;
  ProductRequest request;
  request.set_product(products_[2].id);
  ProductPage page;
  Context reading(kMaxTestWait), putting(kMaxTestWait), again(kMaxTestWait);
  ASSERT_TRUE(shop().GetProduct(reading, request, &page).ok());
  page.mutable_product()->set_cents(page.product().cents() + 1000);
  ASSERT_TRUE(Catalogue::Stub(catalogue.get()).Put(putting, page.product(), &dearer).ok());
  ASSERT_TRUE(shop().GetProduct(again, request, &page).ok());
  EXPECT_EQ(page.product().cents(), products_[2].cents + 1000);
  Order order;
  ASSERT_TRUE(Place(0, quote.id(), &order).ok());
  order = Decided(0, order.id());
  EXPECT_EQ(order.quote().total_cents(), quote.total_cents()) << "as it was shown";
  Quote later;
  ASSERT_TRUE(MakeQuote(QuoteOf(0, {LineOf(products_[2].id, 3)}), &later).ok());
  EXPECT_EQ(later.goods_cents(), quote.goods_cents() + 3000);
  ExpectAuditedWhenIdle();
}

// Under each kind of waiting, calls in the process.
class ShopConfigs : public ShopTest, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override { Start(GetParam(), /*monolith=*/true); }
};

INSTANTIATE_TEST_SUITE_P(Configs, ShopConfigs,
                         testing::ValuesIn(apps::ConfigsToTest({"SDB1-4", "FIB1", "ADB1-2-2"}, {})));

TEST_P(ShopConfigs, NoProductIsSoldThatIsNotThere) {
  std::atomic<int64_t> bought{0}, refused{0};
  apps::AllAtOnce(4, TestSeed(), [&](Rng& rng, size_t user) {
    for (int i = 0; i < 8; ++i) {
      const auto count = 1 + static_cast<uint32_t>(rng.Below(5));
      Order order;
      const absl::Status status = Buy(PurchaseOf(user, {LineOf(products_[0].id, count)}), &order);
      EXPECT_TRUE(status.ok() || absl::IsFailedPrecondition(status)) << status;
      if (status.ok() && order.state() == Order::PLACED) order = Decided(user, order.id());
      if (status.ok() && order.state() == Order::COMMITTED) bought.fetch_add(count);
      else refused.fetch_add(1);
    }
  });
  ExpectAuditedWhenIdle();
  EXPECT_EQ(AvailableOf(products_[0].id), kStock - bought);
  EXPECT_GT(refused, 0) << "the stock was enough, and this tests nothing";
}

}  // namespace
}  // namespace curtail::shop
