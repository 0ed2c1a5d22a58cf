// SPDX-License-Identifier: Apache-2.0
//
// Front end: what clients call. shop.proto says who may call, and what other services answer.
#include <algorithm>
#include <map>

#include "apps/kit/accounts/for_clients.h"
#include "apps/kit/accounts/sessions.h"
#include "apps/kit/forward.h"
#include "apps/kit/page.h"
#include "apps/shop/common/clerk.h"
#include "apps/shop/data.h"
#include "curtail/gateway/page/page.h"
#include "customers.curtail.h"
#include "goods.curtail.h"
#include "page_files.h"
#include "shop.curtail.h"

namespace curtail::shop {

using apps::User;

constexpr int kMostBought = 10;
constexpr size_t kCardDigitsShown = 4;

apps::UserId UserOf(uint64_t id) {
  apps::UserId user;
  user.set_user(id);
  return user;
}

// Takes a part of a page, or notes that it is missing.
template <class Part, class Take>
void TakePart(const absl::StatusOr<Part>& part, const char* name,
              google::protobuf::RepeatedPtrField<std::string>* missing, Take take) {
  if (part.ok()) take(*part);
  else *missing->Add() = name;
}

struct FrontEndService final : Shop::CoroutineService {
  FrontEndService(const apps::Sessions& s, Env& e) : env(e), sessions(s) {}

  Coroutine Register(Context& ctx, const apps::Credentials& request, apps::Session* reply) override {
    return sessions.Register(ctx, request, reply);
  }
  Coroutine Logout(Context& ctx, const apps::TokenRequest& request, apps::Changed* reply) override {
    return sessions.End(ctx, request.token(), reply);
  }

  Coroutine Home(Context& ctx, const HomeRequest& request, HomePage* reply) override {
    ProductQuery newest;
    newest.set_order(ProductQuery::NEWEST);
    newest.set_limit(request.limit());
    const Nanos optional = apps::OptionalTime(ctx.deadline());
    auto [products, all, codes, basket] =
        co_await WhenAll(ctx, Ask(catalogue, Catalogue::kList, newest),
                         Ask(tags, Tags::kAll, apps::Nothing()).Within(optional),
                         Ask(discounts, Discounts::kCurrent, apps::Nothing()).Within(optional),
                         Ask(cart, Cart::kGet, UserOf(apps::CallerOf(ctx))).Within(optional));
    if (!products.ok()) co_return products.status();
    *reply->mutable_newest() = products->products();
    const auto missing = reply->mutable_missing();
    TakePart(all, "tags", missing, [&](const TagList& list) { *reply->mutable_tags() = list.tags(); });
    TakePart(codes, "discounts", missing,
             [&](const DiscountList& list) { *reply->mutable_discounts() = list.discounts(); });
    TakePart(basket, "cart", missing,
             [&](const Basket& one) { reply->set_basket_lines(static_cast<uint32_t>(one.lines_size())); });
    co_return absl::OkStatus();
  }

  Coroutine GetProduct(Context& ctx, const ProductRequest& request, ProductPage* reply) override {
    RecommendationQuery like;
    like.add_products(request.product());
    like.set_limit(6);
    const Nanos optional = apps::OptionalTime(ctx.deadline());
    auto [products, stocks, similar] = co_await WhenAll(
        ctx, Ask(catalogue, Catalogue::kGet, apps::IdsOf(request.product())),
        Ask(inventory, Inventory::kAvailable, apps::IdsOf(request.product())).Within(optional),
        Ask(recommender, Recommender::kSimilar, std::move(like)).Within(optional));
    if (!products.ok()) co_return products.status();
    if (products->products().empty()) co_return NoProduct(request.product());
    *reply->mutable_product() = products->products(0);
    const auto missing = reply->mutable_missing();
    TakePart(stocks, "inventory", missing,
             [&](const StockList& list) { reply->set_available(list.stocks(0).on_hand()); });
    if (absl::IsFailedPrecondition(similar.status())) co_return absl::OkStatus();  // nothing was learned yet
    TakePart(similar, "recommender", missing,
             [&](const ProductList& list) { *reply->mutable_similar() = list.products(); });
    co_return absl::OkStatus();
  }
  static absl::Status NoProduct(uint64_t product) {
    return absl::NotFoundError(Join("there is no product ", product));
  }

  Coroutine RecommendProducts(Context& ctx, const RecommendRequest& request, ProductList* reply) override {
    auto [basket] = co_await WhenAll(ctx, Ask(cart, Cart::kGet, UserOf(apps::CallerOf(ctx))));
    if (!basket.ok()) co_return basket.status();
    RecommendationQuery query;
    query.set_limit(request.limit());
    for (const Line& line : basket->lines()) query.add_products(line.product());
    auto [suited] = co_await WhenAll(ctx, Ask(recommender, Recommender::kFor, std::move(query)));
    if (suited.ok()) reply->Swap(&*suited);
    co_return suited.status();
  }

  Coroutine GetBasket(Context& ctx, const apps::TokenRequest&, BasketPage* reply) override {
    auto [basket] = co_await WhenAll(ctx, Ask(cart, Cart::kGet, UserOf(apps::CallerOf(ctx))));
    if (!basket.ok()) co_return basket.status();
    uint64_t ignored = 0;
    co_return co_await Price(ctx, *basket, reply, &ignored);
  }

  // Adds the products to the lines of a basket, and their weight to `*grams`.
  Coroutine Price(Context& ctx, const Basket& basket, BasketPage* page, uint64_t* grams) {
    page->set_version(basket.version());
    if (basket.lines().empty()) co_return absl::OkStatus();
    apps::Ids ids;
    for (const Line& line : basket.lines()) ids.add_ids(line.product());
    auto [products] = co_await WhenAll(ctx, Ask(catalogue, Catalogue::kGet, std::move(ids)));
    if (!products.ok()) co_return products.status();
    std::map<uint64_t, const Product*> by_id;
    for (const Product& product : products->products()) by_id[product.id()] = &product;
    for (const Line& line : basket.lines()) {
      const auto found = by_id.find(line.product());
      if (found == by_id.end()) co_return NoProduct(line.product());
      BasketLine& shown = *page->add_lines();
      *shown.mutable_product() = *found->second;
      shown.set_count(line.count());
      shown.set_cents(found->second->cents() * line.count());
      page->set_goods_cents(page->goods_cents() + shown.cents());
      *grams += uint64_t{found->second->grams()} * line.count();
    }
    co_return absl::OkStatus();
  }

  Coroutine AddToBasket(Context& ctx, const LineRequest& request, Basket* reply) override {
    return Add(ctx, request, /*part=*/{}, reply);
  }

  // `part` tells the adds of one request apart.
  Coroutine Add(Context& ctx, LineRequest wanted, std::string part, Basket* reply) {
    auto [products] = co_await WhenAll(ctx, Ask(catalogue, Catalogue::kGet, apps::IdsOf(wanted.product())));
    if (!products.ok()) co_return products.status();
    if (products->products().empty()) co_return NoProduct(wanted.product());
    BasketChange change;
    change.set_owner(apps::CallerOf(ctx));
    change.mutable_line()->set_product(wanted.product());
    change.mutable_line()->set_count(wanted.count());
    Context named(&ctx);
    absl::Status status = apps::NameRequest(named, Shop::kAddToBasket.path, change, part);
    if (!status.ok()) co_return status;
    auto [basket] = co_await WhenAll(named, Ask(cart, Cart::kAdd, std::move(change)));
    if (basket.ok()) *reply = *std::move(basket);
    co_return basket.status();
  }

  Coroutine Checkout(Context& ctx, const apps::TokenRequest&, CheckoutPage* reply) override {
    const apps::UserId caller = UserOf(apps::CallerOf(ctx));
    auto all = co_await WhenAllOk(ctx, Ask(cart, Cart::kGet, caller), Ask(book, AddressBook::kList, caller),
                                  Ask(book, AddressBook::kListCards, caller));
    if (!all.ok()) co_return all.status();
    const auto& [basket, addresses, cards] = *all;
    *reply->mutable_addresses() = addresses.addresses();
    *reply->mutable_cards() = cards.cards();
    ShippingQuery parcel;
    uint64_t grams = 0;
    absl::Status status = co_await Price(ctx, basket, reply->mutable_basket(), &grams);
    if (!status.ok() || addresses.addresses().empty()) co_return status;
    parcel.set_grams(grams);
    *parcel.mutable_address() = addresses.addresses(0);
    auto [options] = co_await WhenAll(ctx, Ask(shipping, Shipping::kOptions, std::move(parcel)));
    if (options.ok()) reply->mutable_shipping()->Swap(options->mutable_options());
    co_return options.status();
  }

  Coroutine PlaceOrder(Context& ctx, const PlaceRequest& request, Order* reply) override {
    OwnedQuote owned;
    owned.set_owner(apps::CallerOf(ctx));
    owned.set_quote(request.quote());
    if (absl::Status named = apps::NameRequest(ctx, Shop::kPlaceOrder.path, owned); !named.ok())
      co_return named;
    ReplyMetadata metadata;
    auto [order] = co_await WhenAll(ctx, Ask(orders, Orders::kPlace, owned, &metadata));
    if (const auto quote = metadata.trailing.Find("quote")) ctx.AddTrailingMetadata("quote", *quote);
    if (order.ok()) *reply = *std::move(order);
    co_return order.status();
  }

  Coroutine Buy(Context& ctx, const BuyRequest& request, Order* reply) override {
    if (request.lines().empty() || request.lines_size() > kMostBought)
      co_return absl::InvalidArgumentError(Join("1 to ", kMostBought, " products are bought at once"));
    Basket basket;
    for (int i = 0; i < request.lines_size(); ++i) {
      LineRequest line;
      line.set_product(request.lines(i).product());
      line.set_count(request.lines(i).count());
      absl::Status added = co_await Add(ctx, line, /*part=*/Join("/", i), &basket);
      if (!added.ok()) co_return added;
    }
    shop::QuoteOrder wanted;
    wanted.set_owner(apps::CallerOf(ctx));
    *wanted.mutable_lines() = request.lines();
    wanted.set_address(request.address());
    wanted.set_card(request.card());
    wanted.set_shipping(request.shipping());
    wanted.set_code(request.code());
    if (absl::Status named = apps::NameRequest(ctx, Shop::kBuy.path, wanted); !named.ok()) co_return named;
    auto [order] = co_await WhenAll(ctx, Ask(orders, Orders::kBuy, std::move(wanted)));
    if (order.ok()) *reply = *std::move(order);
    co_return order.status();
  }

  // The name of the request has a digest of its content, by which a whole number could be guessed.
  Coroutine AddCard(Context& ctx, const CardRequest& request, Card* reply) override {
    CardOrder card;
    card.set_owner(apps::CallerOf(ctx));
    card.set_expires(request.expires());
    card.set_number(request.number().substr(request.number().size() -
                                            std::min(request.number().size(), kCardDigitsShown)));
    if (absl::Status named = apps::NameRequest(ctx, Shop::kAddCard.path, card); !named.ok()) co_return named;
    card.set_number(request.number());
    auto [added] = co_await WhenAll(ctx, Ask(book, AddressBook::kAddCard, std::move(card)));
    if (added.ok()) *reply = *std::move(added);
    co_return added.status();
  }

  static absl::Status CheckClerk(const Context& ctx) {
    if (apps::CallerOf(ctx) == kClerk) return absl::OkStatus();
    return absl::PermissionDeniedError("only the clerk does this; `shop clerk` prints its token");
  }

  Coroutine PutProduct(Context& ctx, const PutProductRequest& request, Product* reply) override {
    if (absl::Status allowed = CheckClerk(ctx); !allowed.ok()) co_return allowed;
    absl::Status status = apps::NameRequest(ctx, Shop::kPutProduct.path, request.product());
    if (!status.ok()) co_return status;
    auto [product] = co_await WhenAll(ctx, Ask(catalogue, Catalogue::kPut, request.product()));
    if (!product.ok()) co_return product.status();
    TagsOfProduct with;
    with.set_product(product->id());
    *with.mutable_tags() = product->tags();
    auto followed = co_await WhenAllOk(ctx, Ask(tags, Tags::kSet, std::move(with)),
                                       Ask(search, Search::kEnter, *product));
    if (followed.ok()) reply->Swap(&*product);
    co_return followed.status();
  }

  Coroutine DeliverStock(Context& ctx, const DeliverRequest& request, apps::Changed* reply) override {
    if (absl::Status allowed = CheckClerk(ctx); !allowed.ok()) co_return allowed;
    auto [products] =
        co_await WhenAll(ctx, Ask(catalogue, Catalogue::kGet, apps::IdsOf(request.delivery().product())));
    if (!products.ok()) co_return products.status();
    if (products->products().empty()) co_return NoProduct(request.delivery().product());
    auto [delivered] = co_await WhenAll(ctx, Ask(inventory, Inventory::kDeliver, request.delivery()));
    reply->set_changed(delivered.ok());
    co_return delivered.status();
  }

  Coroutine RefundOrder(Context& ctx, const OrderRequest& request, Order* reply) override {
    if (absl::Status allowed = CheckClerk(ctx); !allowed.ok()) co_return allowed;
    Refunding refunding;
    refunding.set_order(request.order());
    auto [order] = co_await WhenAll(ctx, Ask(orders, Orders::kRefund, refunding));
    if (order.ok()) *reply = *std::move(order);
    co_return order.status();
  }

  Coroutine PutDiscount(Context& ctx, const PutDiscountRequest& request, apps::Changed* reply) override {
    if (absl::Status allowed = CheckClerk(ctx); !allowed.ok()) co_return allowed;
    auto [put] = co_await WhenAll(ctx, Ask(discounts, Discounts::kPut, request.discount()));
    reply->set_changed(put.ok());
    co_return put.status();
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Register", {User::kServiceName}},
            {"Logout", {User::kServiceName}},
            {"Home", {catalogue, tags, discounts, cart}},
            {"GetProduct", {catalogue, inventory, recommender}},
            {"RecommendProducts", {cart, recommender}},
            {"GetBasket", {cart, catalogue}},
            {"AddToBasket", {catalogue, cart}},
            {"Checkout", {cart, book, catalogue, shipping}},
            {"PlaceOrder", {orders}},
            {"Buy", {catalogue, cart, orders}},
            {"AddCard", {book}},
            {"PutProduct", {catalogue, tags, search}},
            {"DeliverStock", {catalogue, inventory}},
            {"RefundOrder", {orders}},
            {"PutDiscount", {discounts}}};
  }

  Env& env;
  const apps::Sessions& sessions;
  const Catalogue::Stub catalogue = env.Stub<Catalogue>("catalogue");
  const Tags::Stub tags = env.Stub<Tags>("tags");
  const Inventory::Stub inventory = env.Stub<Inventory>("inventory");
  const Search::Stub search = env.Stub<Search>("search");
  const Recommender::Stub recommender = env.Stub<Recommender>("recommender");
  const Cart::Stub cart = env.Stub<Cart>("cart");
  const Orders::Stub orders = env.Stub<Orders>("orders");
  const Shipping::Stub shipping = env.Stub<Shipping>("shipping");
  const Discounts::Stub discounts = env.Stub<Discounts>("discounts");
  const AddressBook::Stub book = env.Stub<AddressBook>("address-book");
};

HostedService HostedFrontEnd() {
  return apps::HostedOnData(
      kApplication, "front-end", [](Env& env, const apps::DataOptions& data) -> MadeService {
        auto sessions = apps::Sessions::Load(data, env.Stub<User>("login"));
        if (!sessions.ok()) return sessions.status();
        env.AlsoServe(gateway::MakePage(PageFiles()));
        const apps::Sessions& kept = env.Keep(std::make_unique<apps::Sessions>(*std::move(sessions)));
        return apps::ForClients(std::make_unique<FrontEndService>(kept, env), kept, apps::PeersOf(env));
      });
}

}  // namespace curtail::shop
