// SPDX-License-Identifier: Apache-2.0
//
// What customers and guests do with baskets, and whether that explains what they see in them.
#include <algorithm>
#include <atomic>

#include "apps/shop/tests/model_testing.h"
#include "curtail/base/strings.h"

namespace curtail::shop {

using absl::StatusCode;
using apps::Operation;
using Result = apps::Outcome;
using Kind = Edit::Kind;

ShopModelTest::Did ShopModelTest::AddToBasket(size_t user, uint64_t product, uint32_t count) {
  LineRequest request;
  request.set_product(product), request.set_count(count);
  const auto basket = std::make_shared<Basket>();
  const std::string key = NewName("add");
  return Repeat(
      [=, this] { return Send(&Shop::Stub::AddToBasket, TokenOf(user), request, basket.get(), key); },
      {StatusCode::kInvalidArgument},  // more than 99 of it
      [=, this](const Operation& told) {
        if (!told.ok()) return;
        baskets_[user].Did({.kind = Kind::kAdd,
                            .lines = {{product, count}},
                            .span = told.span,
                            .version = basket->version()});
        baskets_[user].Saw(*basket, told.span);
      });
}

ShopModelTest::Did ShopModelTest::ChangeBasket(Rng& rng, size_t user) {
  const uint64_t product = products_[rng.Below(kProducts)].id, what = rng.Below(10);
  const auto count = 1 + static_cast<uint32_t>(rng.Below(5));
  if (what < 6) return AddToBasket(user, product, count);
  LineRequest line;
  line.set_product(product), line.set_count(count);
  Basket basket;
  const Kind kind = what < 8 ? Kind::kSet : what < 9 ? Kind::kRemove : Kind::kClear;
  const Operation told = history_.Do(
      [&] {
        if (kind == Kind::kSet) return Send(&Shop::Stub::UpdateBasket, TokenOf(user), line, &basket);
        if (kind == Kind::kRemove) return Send(&Shop::Stub::RemoveFromBasket, TokenOf(user), line, &basket);
        return Send(&Shop::Stub::ClearBasket, TokenOf(user), apps::TokenRequest(), &basket);
      },
      {StatusCode::kNotFound});
  if (told.outcome == Result::kRefused) {
    EXPECT_EQ(kind, Kind::kSet) << told.status;
    return Did::kOther;
  }
  baskets_[user].Did({.kind = kind,
                      .lines = {{product, count}},
                      .span = told.span,
                      .version = told.ok() ? basket.version() : 0,
                      .certain = told.ok()});
  if (told.ok()) baskets_[user].Saw(basket, told.span);
  return told.ok() ? Did::kWrote : Did::kFailedToWrite;
}

// A guest fills a basket, and adds to it once more while a user adopts it. What was acknowledged is the user's.
ShopModelTest::Did ShopModelTest::AdoptGuest(Rng& rng, size_t user) {
  apps::Session guest;
  if (!history_.Do([&] { return Send(&Shop::Stub::OpenGuestSession, "", apps::Nothing(), &guest); }).ok())
    return Did::kOther;
  LineRequest line;
  line.set_product(products_[rng.Below(kProducts)].id), line.set_count(2);
  Basket basket;
  const auto add = [&](const std::string& key) {
    return history_.Do([&] { return Send(&Shop::Stub::AddToBasket, guest.token(), line, &basket, key); },
                       {StatusCode::kFailedPrecondition, StatusCode::kUnauthenticated});
  };
  if (!add("first").ok()) return Did::kOther;
  AdoptRequest request;
  request.set_guest_token(guest.token());
  // One whose outcome is unknown could be in the basket, or not.
  if (faults_) return Adopt(user, request, line);
  bool added = false;
  Did did = Did::kOther;
  const apps::Span span = history_.Now();
  apps::AllAtOnce(2, rng.Next(), [&](Rng&, size_t thread) {
    if (thread == 0) added = add("late").ok();
    else did = Adopt(user, request, {});
  });
  if (added) line.set_count(2 * line.count());
  baskets_[user].Did({.kind = Kind::kMerge,
                      .lines = {{line.product(), line.count()}},
                      .span = {span.began, history_.Step()}});
  return did;
}

// Without a line the caller notes the change.
ShopModelTest::Did ShopModelTest::Adopt(size_t user, const AdoptRequest& request, const LineRequest& line) {
  const auto tries = std::make_shared<std::atomic<int>>(0);
  const auto basket = std::make_shared<Basket>();
  return Repeat(
      [=, this] {
        tries->fetch_add(1);
        return Send(&Shop::Stub::AdoptBasket, TokenOf(user), request, basket.get());
      },
      {},
      [=, this](const Operation& told) {
        // Each further try is a change, too.
        for (int i = 1; i < *tries; ++i) baskets_[user].Did({.span = told.span, .certain = false});
        baskets_[user].Saw(*basket, told.span);
        if (line.product() == 0) return;
        baskets_[user].Did(
            {.kind = Kind::kMerge, .lines = {{line.product(), line.count()}}, .span = told.span});
      });
}

void ShopModelTest::LookAtBasket(size_t user) {
  BasketPage page;
  const Operation told =
      history_.Do([&] { return Send(&Shop::Stub::GetBasket, TokenOf(user), apps::TokenRequest(), &page); });
  if (!told.ok()) return;
  Counts counts;
  int64_t cents = 0;
  for (const BasketLine& line : page.lines()) {
    counts[line.product().id()] = line.count();
    cents += line.cents();
    EXPECT_EQ(line.cents(), line.product().cents() * line.count());
  }
  EXPECT_EQ(page.goods_cents(), cents);
  baskets_[user].Saw(page.version(), counts, told.span);
}

// An order exists once Buy() has put its lines into the basket, one after the other, and takes them out once it is decided.
void ShopModelTest::JudgeBaskets(bool may_give_up) {
  for (const Purchase& one : purchases_) {
    BasketHistory& basket = baskets_[one.user];
    apps::Span adding = {one.began, one.answered};
    for (const Told& told : one.told) adding.ended = std::min(adding.ended, told.span.ended);
    if (one.answered > 0) {
      uint64_t number = 0;
      for (const auto& line : one.lines)
        basket.Did({.kind = Edit::Kind::kAdd,
                    .lines = {line},
                    .span = adding,
                    .certain = one.added,
                    .turn = {one.began, ++number}});
    }
    if (one.last.number() > 0)
      basket.Did({.kind = Edit::Kind::kTake,
                  .lines = one.lines,
                  .span = {one.began, apps::Span::kOpen},
                  .after_ms = one.last.decided_ms()});
  }
  for (size_t user = 0; user < kUsers; ++user)
    baskets_[user].Judge(Join("the basket of user ", user), may_give_up);
}

}  // namespace curtail::shop
