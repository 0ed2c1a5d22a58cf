// SPDX-License-Identifier: Apache-2.0
#include "apps/shop/common/quoting.h"

#include <map>
#include <set>
#include <utility>

#include "apps/kit/wall_clock.h"
#include "apps/shop/data.h"

namespace curtail::shop {
namespace {

absl::Status CheckLines(const google::protobuf::RepeatedPtrField<Line>& lines) {
  if (lines.empty() || lines.size() > kMostLines)
    return absl::InvalidArgumentError(Join("an order has 1 to ", kMostLines, " products"));
  std::set<uint64_t> products;
  for (const Line& line : lines) {
    if (line.count() < 1 || line.count() > kMostOfProduct)
      return absl::InvalidArgumentError(Join("an order has 1 to ", kMostOfProduct, " of a product"));
    if (!products.insert(line.product()).second)
      return absl::InvalidArgumentError(Join("product ", line.product(), " is in two lines"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Quoting::Price(const google::protobuf::RepeatedPtrField<Line>& lines,
                            const ProductList& products, Quote* quote, uint64_t* grams) {
  std::map<uint64_t, const Product*> by_id;
  for (const Product& product : products.products()) by_id[product.id()] = &product;
  for (const Line& line : lines) {
    const auto found = by_id.find(line.product());
    if (found == by_id.end()) return absl::NotFoundError(Join("there is no product ", line.product()));
    QuotedLine& quoted = *quote->add_lines();
    quoted.set_product(line.product());
    quoted.set_name(found->second->name());
    quoted.set_cents(found->second->cents());
    quoted.set_count(line.count());
    quote->set_goods_cents(quote->goods_cents() + quoted.cents() * line.count());
    *grams += uint64_t{found->second->grams()} * line.count();
  }
  return absl::OkStatus();
}

Coroutine Quoting::Make(Context& ctx, const QuoteOrder& request, KeptOrder* kept) const {
  google::protobuf::RepeatedPtrField<Line> lines = request.lines();
  if (lines.empty()) {
    apps::UserId owner;
    owner.set_user(request.owner());
    auto [basket] = co_await WhenAll(ctx, Ask(cart_, Cart::kGet, owner));
    if (!basket.ok()) co_return basket.status();
    lines.Swap(basket->mutable_lines());
  }
  if (absl::Status status = CheckLines(lines); !status.ok()) co_return status;
  apps::Ids products;
  for (const Line& line : lines) products.add_ids(line.product());
  DeliveryQuery place;
  place.set_owner(request.owner());
  place.set_address(request.address());
  place.set_card(request.card());
  auto known = co_await WhenAllOk(ctx, Ask(catalogue_, Catalogue::kGet, std::move(products)),
                                  Ask(addresses_, AddressBook::kLook, std::move(place)),
                                  Ask(ids_, apps::UniqueId::kNext, apps::OneId()));
  if (!known.ok()) co_return known.status();
  auto& [list, to, ids] = *known;
  Quote& quote = *kept->mutable_quote();
  quote.set_id(ids.ids(0));
  kept->set_card_token(to.card().token());
  to.mutable_card()->clear_token();
  quote.mutable_address()->Swap(to.mutable_address());
  quote.mutable_card()->Swap(to.mutable_card());
  uint64_t grams = 0;
  absl::Status status = Price(lines, list, &quote, &grams);
  if (status.ok()) status = co_await AddRates(ctx, request, grams, &quote);
  quote.set_total_cents(quote.goods_cents() - quote.discount_cents() + quote.shipping_cents());
  quote.set_expires_ms(apps::NowMs() + kQuoteMs);
  co_return status;
}

Coroutine Quoting::AddRates(Context& ctx, const QuoteOrder& request, uint64_t grams, Quote* quote) const {
  ShippingQuery parcel;
  *parcel.mutable_address() = quote->address();
  parcel.set_grams(grams);
  auto [options] = co_await WhenAll(ctx, Ask(shipping_, Shipping::kOptions, std::move(parcel)));
  if (!options.ok()) co_return options.status();
  quote->set_shipping_option(request.shipping().empty() ? "standard" : request.shipping());
  for (const ShippingOption& option : options->options())
    if (option.name() == quote->shipping_option()) quote->set_shipping_cents(option.cents());
  if (quote->shipping_cents() == 0) co_return absl::NotFoundError("there is no such shipping option");
  if (request.code().empty()) co_return absl::OkStatus();
  DiscountQuery code;
  code.set_owner(request.owner());
  code.set_code(request.code());
  code.set_goods_cents(quote->goods_cents());
  auto [discount] = co_await WhenAll(ctx, Ask(discounts_, Discounts::kApply, std::move(code)));
  if (!discount.ok()) co_return discount.status();
  if (discount->cents() < 0 || discount->cents() > quote->goods_cents())
    co_return absl::InternalError("a discount is above the goods' price");
  quote->set_discount_code(request.code());
  quote->set_discount_cents(discount->cents());
  co_return absl::OkStatus();
}

QuoteOrder Quoting::Again(uint64_t owner, const Quote& quote) {
  QuoteOrder request;
  request.set_owner(owner);
  for (const QuotedLine& quoted : quote.lines()) {
    Line& line = *request.add_lines();
    line.set_product(quoted.product());
    line.set_count(quoted.count());
  }
  request.set_address(quote.address().id());
  request.set_card(quote.card().id());
  request.set_shipping(quote.shipping_option());
  request.set_code(quote.discount_code());
  return request;
}

}  // namespace curtail::shop
