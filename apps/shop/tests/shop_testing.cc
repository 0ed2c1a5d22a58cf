// SPDX-License-Identifier: Apache-2.0
#include "apps/shop/tests/shop_testing.h"

#include <sys/wait.h>

#include <chrono>
#include <cstdlib>

#include "apps/kit/testing/filled_files.h"
#include "apps/shop/common/clerk.h"
#include "apps/shop/data.h"
#include "curtail/base/strings.h"

namespace curtail::shop {
namespace {

template <class Request>
Request RequestOf(const apps::LoadUser& user, const std::vector<Line>& lines, const std::string& code) {
  Request request;
  request.set_token(user.token);
  for (const Line& line : lines) *request.add_lines() = line;
  request.set_address(std::stoull(user.more[0]));
  request.set_card(std::stoull(user.more[1]));
  request.set_code(code);
  return request;
}

}  // namespace

apps::Deployed ShopTest::Form(const std::string& folder, const std::string& config, bool monolith) {
  return {.config = config,
          .monolith = monolith,
          .set = {"load-balancer.replicas=0", "data=" + folder, Join("card_limit=", kCardLimit)}};
}

void ShopTest::Start(const std::string& config, bool monolith, const std::vector<std::string>& set) {
  static apps::FilledFiles filled(
      SHOP_TOPOLOGY,
      [](const std::string& folder) {
        apps::Deployed form = Form(folder, /*config=*/{}, /*monolith=*/true);
        form.options.flags = {"--no-sync"};
        return form;
      },
      [](const std::string& target, const std::string& folder) {
        ASSERT_EQ(std::system(Join(SHOP_PROGRAM, " fill --quiet --users ", kUsers, " --products ", kProducts,
                                   " --stock ", kStock, " --orders 0 --pictures none --data ", folder,
                                   " --target ", target)
                                  .c_str()),
                  0);
      });
  filled.CopyTo(Folder());
  apps::Deployed form = Form(Folder(), config, monolith);
  form.set.insert(form.set.end(), set.begin(), set.end());
  form.options.admin = !monolith;
  form.polyglot = !monolith && std::getenv("CURTAIL_TEST_POLYGLOT") != nullptr;
  app_ = apps::StartApp(SHOP_TOPOLOGY, std::move(form));
  front_ = Connect("front-end");
  auto users = apps::ReadLoadUsers(Folder(), "shop");
  ASSERT_TRUE(users.ok()) << users.status();
  users_ = *std::move(users);
  auto products = ReadKnownProducts(Folder());
  ASSERT_TRUE(products.ok()) << products.status();
  products_ = *std::move(products);
  ASSERT_EQ(products_.size(), kProducts);
}

void ShopTest::TearDown() {
  front_.reset();
  if (app_ == nullptr) return;
  const absl::Status ended = app_->Stop();
  EXPECT_TRUE(ended.ok()) << ended;
}

BuyRequest ShopTest::PurchaseOf(size_t user, const std::vector<Line>& lines, const std::string& code) const {
  return RequestOf<BuyRequest>(users_[user], lines, code);
}

QuoteRequest ShopTest::QuoteOf(size_t user, const std::vector<Line>& lines, const std::string& code) const {
  return RequestOf<QuoteRequest>(users_[user], lines, code);
}

absl::Status ShopTest::Buy(const BuyRequest& request, Order* order, const std::string& key,
                           Nanos patience) const {
  Context ctx(patience);
  if (!key.empty()) ctx.AddMetadata("idempotency-key", key);
  return shop().Buy(ctx, request, order);
}

absl::Status ShopTest::MakeQuote(const QuoteRequest& request, Quote* quote) const {
  Context ctx(kMaxTestWait);
  return shop().QuoteOrder(ctx, request, quote);
}

absl::Status ShopTest::Place(size_t user, uint64_t quote, Order* order, const std::string& key,
                             Nanos patience) const {
  PlaceRequest request;
  request.set_token(users_[user].token), request.set_quote(quote);
  Context ctx(patience);
  if (!key.empty()) ctx.AddMetadata("idempotency-key", key);
  return shop().PlaceOrder(ctx, request, order);
}

absl::Status ShopTest::Refund(const std::string& token, uint64_t order, Order* reply) const {
  OrderRequest request;
  request.set_token(token), request.set_order(order);
  Context ctx(kMaxTestWait);
  return shop().RefundOrder(ctx, request, reply);
}

std::string ShopTest::Clerk() const {
  const auto token = ClerkToken({.application = kApplication, .folder = Folder()}, /*hours=*/1);
  EXPECT_TRUE(token.ok()) << token.status();
  return token.ok() ? *token : "";
}

absl::Status ShopTest::Add(size_t user, uint64_t product, uint32_t count, Basket* basket,
                           const std::string& key, Nanos patience) const {
  LineRequest request;
  request.set_token(users_[user].token), request.set_product(product), request.set_count(count);
  Context ctx(patience);
  if (!key.empty()) ctx.AddMetadata("idempotency-key", key);
  return shop().AddToBasket(ctx, request, basket);
}

BasketPage ShopTest::BasketOf(size_t user) const {
  apps::TokenRequest request;
  request.set_token(users_[user].token);
  BasketPage page;
  Context ctx(kMaxTestWait);
  const absl::Status status = shop().GetBasket(ctx, request, &page);
  EXPECT_TRUE(status.ok()) << status;
  return page;
}

std::vector<Order> ShopTest::OrdersOf(size_t user) const {
  std::vector<Order> orders;
  OrderList page;
  OrderPage request;
  request.set_token(users_[user].token), request.set_limit(3);
  do {
    request.set_before(page.next());
    page.Clear();
    Context ctx(kMaxTestWait);
    const absl::Status status = shop().ListOrders(ctx, request, &page);
    EXPECT_TRUE(status.ok()) << status;
    orders.insert(orders.end(), page.orders().begin(), page.orders().end());
  } while (page.next() != 0);
  return orders;
}

Order ShopTest::OrderOf(size_t user, uint64_t id) const {
  OrderRequest request;
  request.set_token(users_[user].token), request.set_order(id);
  Order order;
  Context ctx(kMaxTestWait);
  const absl::Status status = shop().GetOrder(ctx, request, &order);
  EXPECT_TRUE(status.ok()) << status;
  return order;
}

Order ShopTest::Decided(size_t user, uint64_t id) const {
  const Deadline deadline = Deadline::In(kMaxTestWait);
  Order order;
  while ((order = OrderOf(user, id)).state() == Order::PLACED && !deadline.Expired()) BetweenLooks();
  return order;
}

int64_t ShopTest::AvailableOf(uint64_t product) const {
  ProductRequest request;
  request.set_product(product);
  ProductPage page;
  Context ctx(kMaxTestWait);
  const absl::Status status = shop().GetProduct(ctx, request, &page);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(page.missing().empty()) << page.missing(0);
  return page.available();
}

int ShopTest::Audited(bool quiet) const {
  const int ended =
      std::system(Join(SHOP_PROGRAM, " audit --data ", Folder(), quiet ? " 2>/dev/null" : "").c_str());
  return WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
}

void ShopTest::ExpectAuditedWhenIdle() const {
  constexpr int kBroken = 99;
  const Deadline deadline = Deadline::In(kMaxTestWait);
  int exit = 0;
  while ((exit = Audited(/*quiet=*/true)) != 0 && exit != kBroken && !deadline.Expired())
    BetweenLooks(std::chrono::milliseconds(100));  // each one is a process
  EXPECT_TRUE(exit == 0 || Audited() == 0);
}

}  // namespace curtail::shop
