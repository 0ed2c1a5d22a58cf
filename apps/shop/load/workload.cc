// SPDX-License-Identifier: Apache-2.0
#include "apps/shop/load/workload.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/kit/load/mixed_workload.h"
#include "apps/shop/data.h"
#include "apps/shop/load/fill.h"
#include "apps/shop/load/products.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "shop.curtail.h"

namespace curtail::shop {
namespace {

constexpr uint32_t kPageLength = 10;
constexpr size_t kWordsOfUser = 3;    // that Fill() has left
constexpr uint64_t kFavourites = 20;  // products that a user puts into its basket

constexpr apps::NamedMix kMixes[] = {
    {"mixed",
     "product 30, list 15, search 10, home 10, basket 10, category 8, add 5, buy 5, clear 2, checkout 2, "
     "orders 2, count 1"},
    // The weights of Online Boutique's load generator. Its page "currency" is the discounts, and its check-out empties the basket.
    {"boutique", "product 10, basket 3, discounts 2, add 2, home 1, buy 1, clear 1"},
    // The journey of Sock Shop's load generator.
    {"socks", "list 1, home 1, login 1, category 1, product 1, clear 1, add 1, basket 1, buy 1"},
    {"browse", "product 10, list 5, home 2, search 2, category 1"},
    {"order", "buy 1"},
    {"list", "list 1"},
    {"product", "product 1"},
    {"search", "search 1"},
    {"basket", "basket 1"}};

// A user as Fill() has left it.
struct Caller {
  uint64_t id = 0;
  std::string name, token, password;
  uint64_t address = 0, card = 0;
};

absl::StatusOr<std::vector<Caller>> CallersOf(const std::vector<apps::LoadUser>& users) {
  std::vector<Caller> callers;
  for (const apps::LoadUser& user : users) {
    if (user.more.size() != kWordsOfUser)
      return absl::InvalidArgumentError("a user has no address or card: run shop fill");
    callers.push_back(
        {user.id, user.name, user.token, user.more[2], std::stoull(user.more[0]), std::stoull(user.more[1])});
  }
  return callers;
}

// Of the quote's lines, at what they cost.
bool IsRight(const Quote& quote) {
  int64_t goods = 0;
  for (const QuotedLine& line : quote.lines()) goods += line.cents() * line.count();
  return quote.lines_size() > 0 && goods == quote.goods_cents() &&
         quote.total_cents() == goods - quote.discount_cents() + quote.shipping_cents();
}

bool AscendById(const ProductList& list) {
  const auto& all = list.products();
  return std::ranges::is_sorted(all, {}, [](const Product& one) { return one.id(); });
}

// A request draws its product first, so that the reply can be compared with it.
apps::Kinds KindsOf(const apps::Senders<Caller>& all, std::vector<KnownProduct> known) {
  using Of = const Caller&;
  const auto products = std::make_shared<const std::vector<KnownProduct>>(std::move(known));
  const auto any = [products](Rng& rng) -> const KnownProduct& {
    return (*products)[rng.Below(products->size())];
  };
  const auto favourite = [products](Rng& rng, Of caller) -> const KnownProduct& {
    Rng of_user(caller.id);
    return (*products)[(of_user.Next() + rng.Below(kFavourites)) % products->size()];
  };
  apps::Kinds kinds;
  const auto add = [&](std::string_view name, const auto& method, auto fill, auto is_right) {
    kinds[name] = apps::KindOf(all, method, fill, is_right);
  };
  const auto nothing = [](Rng&, Of, const auto&) {};
  const auto whole = [](const auto& page) { return page.missing().empty(); };
  const auto buy = [=](Rng& rng, Of caller, BuyRequest& r) {
    Line& line = *r.add_lines();
    line.set_product(any(rng).id), line.set_count(1 + static_cast<uint32_t>(rng.Below(2)));
    r.set_address(caller.address), r.set_card(caller.card);
    if (rng.Below(10) == 0) r.set_code(kLoadCode);
  };

  add("home", Shop::kHome, nothing,
      [=](const HomePage& page) { return page.newest_size() > 0 && whole(page); });
  add(
      "list", Shop::kListProducts,
      [=](Rng& rng, Of, ProductQuery& r) {
        r.set_page(static_cast<uint32_t>(rng.Below(1 + (products->size() - 1) / kPageLength)));
        r.set_limit(kPageLength);
      },
      [](const ProductList& list) { return list.products_size() > 0 && AscendById(list); });
  add(
      "category", Shop::kListProducts,
      [=](Rng& rng, Of, ProductQuery& r) { r.add_tags(any(rng).tag), r.set_limit(kPageLength); },
      [](const ProductList& list) { return list.products_size() > 0 && AscendById(list); });
  add(
      "count", Shop::kCountProducts, [=](Rng& rng, Of, ProductQuery& r) { r.add_tags(any(rng).tag); },
      [](const ProductCount& of) { return of.count() > 0; });
  add(
      "product", Shop::kGetProduct, [=](Rng& rng, Of, ProductRequest& r) { r.set_product(any(rng).id); },
      [=](Rng& rng, Of, const ProductPage& page) {
        return page.product().id() == any(rng).id && whole(page);
      });
  add(
      "search", Shop::kSearchProducts,
      [=](Rng& rng, Of, ProductSearch& r) { r.set_text(any(rng).tag), r.set_limit(kPageLength); },
      [](const ProductList& list) { return list.products_size() > 0; });
  add("discounts", Shop::kListDiscounts, nothing,
      [](const DiscountList& list) { return list.discounts_size() > 0; });
  add("basket", Shop::kGetBasket, nothing, [](const BasketPage& page) {
    int64_t cents = 0;
    for (const BasketLine& line : page.lines()) cents += line.product().cents() * line.count();
    return cents == page.goods_cents();
  });
  add(
      "add", Shop::kAddToBasket,
      [=](Rng& rng, Of caller, LineRequest& r) { r.set_product(favourite(rng, caller).id), r.set_count(1); },
      [=](Rng& rng, Of caller, const Basket& basket) {
        const uint64_t wanted = favourite(rng, caller).id;
        return std::ranges::any_of(basket.lines(),
                                   [&](const Line& line) { return line.product() == wanted; });
      });
  add("clear", Shop::kClearBasket, nothing, [](const Basket& basket) { return basket.lines().empty(); });
  add("checkout", Shop::kCheckout, nothing,
      [](const CheckoutPage& page) { return page.addresses_size() > 0 && page.cards_size() > 0; });
  add(
      "orders", Shop::kListOrders, [](Rng&, Of, OrderPage& r) { r.set_limit(kPageLength); },
      [](const OrderList& list) {
        return std::ranges::is_sorted(list.orders(), std::ranges::greater(),
                                      [](const Order& one) { return one.id(); });
      });
  add("buy", Shop::kBuy, buy, [=](Rng& rng, Of, const Order& order) {
    return order.state() != Order::REJECTED && IsRight(order.quote()) &&
           order.quote().lines(0).product() == any(rng).id;
  });
  add(
      "login", Shop::kLogin,
      [](Rng&, Of caller, apps::Credentials& r) { r.set_name(caller.name), r.set_password(caller.password); },
      [](Rng&, Of caller, const apps::Session& session) { return session.user() == caller.id; });
  return kinds;
}

absl::StatusOr<apps::Kinds> MakeKinds(const std::vector<apps::LoadUser>& users,
                                      const apps::UserWorkloadOptions& options) {
  absl::StatusOr<std::vector<Caller>> callers = CallersOf(users);
  if (!callers.ok()) return callers.status();
  absl::StatusOr<std::vector<KnownProduct>> products = ReadKnownProducts(options.folder);
  if (!products.ok()) return products.status();
  return KindsOf(std::make_shared<const std::vector<Caller>>(*std::move(callers)), *std::move(products));
}

}  // namespace

apps::AppRequests Requests() {
  return apps::MixedRequests("curtail.shop.Shop", kApplication, kMixes, MakeKinds);
}

}  // namespace curtail::shop
