// SPDX-License-Identifier: Apache-2.0
//
// What customers, guests and the clerk do.
#include "apps/shop/tests/model_testing.h"

#include <algorithm>

#include "apps/shop/load/fill.h"
#include "curtail/base/strings.h"
#include "goods.curtail.h"

namespace curtail::shop {
namespace {

using absl::StatusCode;
using apps::Operation;
using Result = apps::Outcome;

constexpr int64_t kPlenty = 100'000;

void AddLines(const Counts& counts, google::protobuf::RepeatedPtrField<Line>* lines) {
  for (const auto& [product, count] : counts) {
    Line& line = *lines->Add();
    line.set_product(product), line.set_count(count);
  }
}

}  // namespace

void ShopModelTest::SetUp() {
  Start(/*config=*/{}, /*monolith=*/false, {Join("card_limit=", kLimit)});
  clerk_ = Clerk();
  catalogue_ = Connect("catalogue"), inventory_ = Connect("inventory");
  const auto discounts = Connect("discounts");
  apps::Nothing nothing;
  for (size_t i = 0; i < kProducts; ++i) {
    delivered_.push_back({products_[i].id, kStock, {0, 0}});
    if (i < kScarce) continue;
    Delivery delivery;
    delivery.set_name(Join("plenty ", i)), delivery.set_product(products_[i].id), delivery.set_count(kPlenty);
    Context ctx(kMaxTestWait);
    ASSERT_TRUE(Inventory::Stub(inventory_.get()).Deliver(ctx, delivery, &nothing).ok());
    delivered_.push_back({products_[i].id, kPlenty, {0, 0}});
  }
  Discount few;
  few.set_code(kFewCode), few.set_percent(20), few.set_limit(kFewUses);
  Context putting(kMaxTestWait), reading(kMaxTestWait);
  ASSERT_TRUE(Discounts::Stub(discounts.get()).Put(putting, few, &nothing).ok());
  apps::Ids id;
  id.add_ids(products_[kPriced].id);
  ProductList found;
  ASSERT_TRUE(Catalogue::Stub(catalogue_.get()).Get(reading, id, &found).ok());
  priced_ = found.products(0);
  prices_.Set(Price(priced_.id(), priced_.cents()), true, history_.Now());
}

std::string ShopModelTest::NewName(const char* what) {
  const std::lock_guard lock(mu_);
  return Join(what, " ", ++last_);
}

ShopModelTest::Did ShopModelTest::Repeat(std::function<absl::Status()> call,
                                         const std::set<StatusCode>& refusals,
                                         std::function<void(const Operation&)> record) {
  const Operation told = history_.Do(
      [&] {
        absl::Status status = call();
        return IsOfFault(status) || history_.Step() % 5 == 0 ? call() : status;
      },
      refusals);
  if (told.outcome == Result::kUnknown) {
    const std::lock_guard lock(mu_);
    unanswered_.push_back([=, this, call = std::move(call), record = std::move(record)] {
      Operation last = history_.Insist(call, refusals);
      last.span.began = told.span.began;
      record(last);
    });
    return Did::kFailedToWrite;
  }
  record(told);
  return told.ok() ? Did::kWrote : Did::kOther;
}

ShopModelTest::Did ShopModelTest::Act(Rng& rng) {
  const size_t user = rng.Below(kUsers);
  const uint64_t what = rng.Below(100);
  if (what < 22) return ChangeBasket(rng, user);
  if (what < 44) return BuyByQuote(rng, user);
  if (what < 54) return BuyAtOnce(rng, user);
  if (what < 59) return AdoptGuest(rng, user);
  if (what < 62) return Restock(rng);
  if (what < 65) return Reprice(rng);
  if (what < 71) return ChangeWishes(rng, user);
  if (what < 76) LookAtOrders(user);
  else if (what < 83) LookAtBasket(user);
  else if (what < 88) LookAtProduct(products_[rng.Below(kScarce)].id);
  else if (what < 90) Trespass(rng, user);
  else if (Purchase* const purchase = AnyPurchase(rng))
    what < 92 ? Cancel(*purchase) : what < 97 ? Refund(*purchase) : LookAtOrder(*purchase);
  return Did::kOther;
}

// ----- orders

Counts ShopModelTest::SomeLines(Rng& rng) const {
  const uint64_t what = rng.Below(10);
  const auto few = static_cast<uint32_t>(1 + rng.Below(3));
  if (what < 4) return {{products_[rng.Below(kScarce)].id, few}};
  if (what < 6) return {{products_[0].id, few}, {products_[1 + rng.Below(kScarce - 1)].id, 1}};
  if (what < 8) return {{products_[kPriced].id, few}, {products_[kPriced + 1].id, 2}};
  const auto many =
      static_cast<uint32_t>(30 + rng.Below(20));  // many of these are above the limit of the card
  return {{products_[kPriced + 1 + rng.Below(kProducts - kPriced - 1)].id, many}};
}

std::string ShopModelTest::SomeCode(Rng& rng) {
  const uint64_t what = rng.Below(10);
  if (what < 5) return {};
  return what < 7 ? kLoadCode : kFewCode;
}

ShopModelTest::Purchase& ShopModelTest::New(Purchase purchase) {
  const std::lock_guard lock(mu_);
  purchase.began = history_.Step();
  return purchases_.emplace_back(std::move(purchase));
}

ShopModelTest::Purchase* ShopModelTest::AnyPurchase(Rng& rng) {
  const std::lock_guard lock(mu_);
  if (purchases_.empty()) return nullptr;
  Purchase& one = purchases_[rng.Below(purchases_.size())];
  return one.id == 0 ? nullptr : &one;
}

void ShopModelTest::Tell(Purchase& purchase, const Order& order, apps::Span span) {
  const std::lock_guard lock(mu_);
  EXPECT_TRUE(purchase.id == 0 || purchase.id == order.id());
  purchase.id = order.id();
  purchase.told.push_back({order.state(), order.number(), order.reason(), span});
  EXPECT_EQ(order.number() > 0, order.state() == Order::COMMITTED || order.state() == Order::REFUNDED)
      << order.ShortDebugString();
}

void ShopModelTest::TellRefused(Purchase& purchase, const absl::Status& why, apps::Span span) {
  const std::lock_guard lock(mu_);
  if (purchase.id == 0) purchase.refusal = std::string(why.message());
  purchase.told.push_back({Order::REJECTED, 0, std::string(why.message()), span});
}

ShopModelTest::Did ShopModelTest::BuyByQuote(Rng& rng, size_t user) {
  const Counts lines = SomeLines(rng);
  const std::string code = SomeCode(rng);
  QuoteRequest request = QuoteOf(user, {}, code);
  AddLines(lines, request.mutable_lines());
  Quote quote;
  const Operation told =
      history_.Do([&] { return Send(&Shop::Stub::QuoteOrder, TokenOf(user), request, &quote); },
                  {StatusCode::kFailedPrecondition});
  if (told.outcome == Result::kRefused)
    history_.Later(
        [=, this] { JudgeRefusal(nullptr, lines, code, std::string(told.status.message()), told.span); });
  if (!told.ok()) return Did::kOther;
  history_.Later([=, this] { JudgeQuote(quote, lines, code, told.span); });
  Purchase& purchase = New({.user = user, .lines = lines, .code = code, .id = quote.id(), .quote = quote});
  const std::string key = rng.Below(2) == 0 ? NewName("order") : "";
  Did did = Did::kOther;
  apps::AllAtOnce(1 + rng.Below(8) / 6, rng.Next(), [&](Rng& other, size_t thread) {
    if (thread == 0) did = PlaceOne(purchase, key);
    else if (other.Below(2) == 0) Cancel(purchase);
    else PlaceOne(purchase, key);
  });
  return did;
}

ShopModelTest::Did ShopModelTest::PlaceOne(Purchase& purchase, const std::string& key) {
  PlaceRequest request;
  request.set_quote(purchase.quote.id());
  const auto order = std::make_shared<Order>();
  return Repeat(
      [=, this, &purchase] {
        return Send(&Shop::Stub::PlaceOrder, TokenOf(purchase.user), request, order.get(), key);
      },
      {StatusCode::kFailedPrecondition},
      [=, this, &purchase](const Operation& told) {
        if (told.ok()) Tell(purchase, *order, told.span);
        else TellRefused(purchase, told.status, told.span);
      });
}

// The products are put into the basket first.
ShopModelTest::Did ShopModelTest::BuyAtOnce(Rng& rng, size_t user) {
  const Counts lines = SomeLines(rng);
  const std::string code = SomeCode(rng), key = NewName("purchase");
  BuyRequest request = ShopTest::PurchaseOf(user, {}, code);
  AddLines(lines, request.mutable_lines());
  Purchase& purchase = New({.user = user, .lines = lines, .code = code});
  const auto order = std::make_shared<Order>();
  return Repeat([=, this] { return Send(&Shop::Stub::Buy, TokenOf(user), request, order.get(), key); },
                {StatusCode::kFailedPrecondition, StatusCode::kInvalidArgument},
                [=, this, &purchase](const Operation& told) {
                  // INVALID_ARGUMENT: the basket would have had more than 99 of one of them.
                  const bool added = told.code() != StatusCode::kInvalidArgument;
                  {
                    const std::lock_guard lock(mu_);
                    purchase.answered = told.span.ended, purchase.added = added;
                  }
                  if (told.ok()) Tell(purchase, *order, told.span);
                  else if (added) TellRefused(purchase, told.status, told.span);
                });
}

void ShopModelTest::Cancel(Purchase& purchase) {
  OrderRequest request;
  {
    const std::lock_guard lock(mu_);
    request.set_order(purchase.id);
    purchase.cancelled = true;
  }
  Order order;
  const Operation told =
      history_.Do([&] { return Send(&Shop::Stub::CancelOrder, TokenOf(purchase.user), request, &order); },
                  {StatusCode::kFailedPrecondition, StatusCode::kNotFound});
  if (told.ok()) {
    EXPECT_EQ(order.state(), Order::REJECTED) << order.ShortDebugString();
    Tell(purchase, order, told.span);
  } else if (told.code() == StatusCode::kFailedPrecondition) {
    const std::lock_guard lock(mu_);
    purchase.told.push_back({Order::COMMITTED, 0, "", told.span});
  } else if (told.code() == StatusCode::kNotFound) {
    history_.Later([=, this, &purchase] { EXPECT_FALSE(WasTold(purchase, told.span.began)) << told.status; });
  }
}

// Two clerks may refund an order at once.
void ShopModelTest::Refund(Purchase& purchase) {
  OrderRequest request;
  {
    const std::lock_guard lock(mu_);
    request.set_order(purchase.id);
    purchase.refunded = true;
  }
  apps::AllAtOnce(2, history_.Step(), [&](Rng&, size_t) {
    Order order;
    const Operation told =
        history_.Do([&] { return Send(&Shop::Stub::RefundOrder, clerk_, request, &order); },
                    {StatusCode::kFailedPrecondition, StatusCode::kNotFound, StatusCode::kAborted});
    if (told.ok()) {
      EXPECT_EQ(order.state(), Order::REFUNDED) << order.ShortDebugString();
      Tell(purchase, order, told.span);
    } else if (told.outcome == Result::kRefused) {
      const bool committed = told.code() == StatusCode::kAborted;
      if (committed) {
        const std::lock_guard lock(mu_);
        purchase.told.push_back({Order::COMMITTED, 0, "", told.span});
      }
      history_.Later([=, this, &purchase] {
        EXPECT_FALSE(WasTold(purchase, Order::REFUNDED, told.span.began)) << told.status;
        EXPECT_TRUE(committed || !WasTold(purchase, Order::COMMITTED, told.span.began)) << told.status;
      });
    }
  });
}

void ShopModelTest::LookAtOrder(Purchase& purchase) {
  OrderRequest request;
  {
    const std::lock_guard lock(mu_);
    request.set_order(purchase.id);
  }
  Order order;
  const std::string& token = TokenOf(purchase.user);
  const Operation told = history_.Do([&] { return Send(&Shop::Stub::GetOrder, token, request, &order); },
                                     {StatusCode::kNotFound});
  if (told.ok()) Tell(purchase, order, told.span);
  if (told.outcome == Result::kRefused)
    history_.Later([=, this, &purchase] { EXPECT_FALSE(WasTold(purchase, told.span.began)) << told.status; });
  Invoice invoice;
  const Operation issued = history_.Do(
      [&] { return Send(&Shop::Stub::GetInvoice, token, request, &invoice); }, {StatusCode::kNotFound});
  if (issued.ok()) history_.Later([=, &purchase] { EXPECT_EQ(invoice.number(), purchase.last.number()); });
}

// A page of the newest.
void ShopModelTest::LookAtOrders(size_t user) {
  OrderPage request;
  request.set_limit(100);
  OrderList list;
  const Operation told =
      history_.Do([&] { return Send(&Shop::Stub::ListOrders, TokenOf(user), request, &list); });
  if (!told.ok()) return;
  std::set<uint64_t> listed;
  for (const Order& order : list.orders()) {
    EXPECT_TRUE(listed.insert(order.id()).second) << order.id() << " twice";
    const std::lock_guard lock(mu_);
    const auto known = std::ranges::find(purchases_, order.id(), &Purchase::id);
    if (known != purchases_.end())
      known->told.push_back({order.state(), order.number(), order.reason(), told.span});
  }
  history_.Later([=, this] {
    for (const Order& order : list.orders()) {
      const Purchase* const purchase = PurchaseOf(user, order);
      ASSERT_NE(purchase, nullptr) << "nobody has ordered " << order.ShortDebugString();
      EXPECT_EQ(order.quote().SerializeAsString(), purchase->last.quote().SerializeAsString());
    }
    for (const Purchase& purchase : purchases_) {
      const bool there = purchase.id != 0 && purchase.user == user && WasTold(purchase, told.span.began);
      EXPECT_TRUE(!there || list.next() != 0 || listed.contains(purchase.id))
          << "the list lacks " << purchase.id << apps::StepsOf(told.span);
    }
  });
}

// ----- products and the rest

void ShopModelTest::LookAtProduct(uint64_t product) {
  ProductRequest request;
  request.set_product(product);
  ProductPage page;
  const Operation told = history_.Do([&] { return Send(&Shop::Stub::GetProduct, "", request, &page); });
  if (!told.ok() || std::ranges::count(page.missing(), "inventory") > 0) return;
  history_.Later([=, this, available = page.available()] {
    const auto [held, sold] = HeldIn(product, told.span);
    const auto [least, most] = DeliveredIn(product, told.span);
    EXPECT_TRUE(std::max<int64_t>(0, least - held) <= available && available <= most - sold)
        << available << " of product " << product << ", of " << least - held << " to " << most - sold
        << apps::StepsOf(told.span);
  });
}

ShopModelTest::Did ShopModelTest::Restock(Rng& rng) {
  Delivery delivery;
  delivery.set_name(NewName("delivery"));
  delivery.set_product(products_[rng.Below(kScarce)].id);
  delivery.set_count(1 + static_cast<uint32_t>(rng.Below(6)));
  return Repeat(
      [=, this] {
        apps::Nothing nothing;
        Context ctx(faults_ ? kPatience : kMaxTestWait);
        return Inventory::Stub(inventory_.get()).Deliver(ctx, delivery, &nothing);
      },
      {},
      [=, this](const Operation& told) {
        const std::lock_guard lock(mu_);
        delivered_.push_back({delivery.product(), delivery.count(), told.span});
      });
}

// While services fail, a change that comes late could take a newer price back.
ShopModelTest::Did ShopModelTest::Reprice(Rng& rng) {
  if (faults_) return Did::kOther;
  const std::lock_guard lock(pricing_);
  const int64_t old = priced_.cents();
  priced_.set_cents(old + 1 + static_cast<int64_t>(rng.Below(100)));
  Product entered;
  const Operation told = history_.Do([&] {
    Context ctx(kMaxTestWait);
    return Catalogue::Stub(catalogue_.get()).Put(ctx, priced_, &entered);
  });
  prices_.Set(Price(priced_.id(), priced_.cents()), true, told);
  prices_.Set(Price(priced_.id(), old), false, told);
  return Did::kWrote;
}

ShopModelTest::Did ShopModelTest::ChangeWishes(Rng& rng, size_t user) {
  ProductOfCaller request;
  request.set_product(products_[rng.Below(kProducts)].id);
  const bool adds = rng.Below(3) > 0;
  Wishlist list;
  const Operation told = history_.Do([&] {
    return Send(adds ? &Shop::Stub::AddToWishlist : &Shop::Stub::RemoveFromWishlist, TokenOf(user), request,
                &list);
  });
  wishes_.Set(UserProduct(user, request.product()), adds, told);
  LookAtWishes(user);
  return told.ok() ? Did::kWrote : Did::kFailedToWrite;
}

void ShopModelTest::LookAtWishes(size_t user) {
  Wishlist list;
  const Operation told =
      history_.Do([&] { return Send(&Shop::Stub::GetWishlist, TokenOf(user), apps::TokenRequest(), &list); });
  if (!told.ok()) return;
  std::multiset<uint64_t> wished;
  for (const Wish& wish : list.wishes()) wished.insert(wish.product());
  history_.Later([=, this] {
    for (const KnownProduct& product : products_) {
      EXPECT_LE(wished.count(product.id), 1u);
      Expect(wished.contains(product.id), wishes_.In(UserProduct(user, product.id), told.span),
             Join("user ", user, " wishes for ", product.id), told.span);
    }
  });
}

// Another's order, invoice, shipment, quote, address and card.
void ShopModelTest::Trespass(Rng& rng, size_t user) {
  Purchase* const purchase = AnyPurchase(rng);
  const size_t other = (user + 1) % kUsers;
  const auto refused = [&](const auto& method, auto request, auto reply) {
    const Operation told =
        history_.Do([&] { return Send(method, TokenOf(user), request, &reply); }, {StatusCode::kNotFound});
    EXPECT_FALSE(told.ok()) << reply.ShortDebugString();
  };
  if (purchase != nullptr && purchase->user != user) {
    OrderRequest request;
    {
      const std::lock_guard lock(mu_);
      request.set_order(purchase->id);
    }
    refused(&Shop::Stub::GetOrder, request, Order());
    refused(&Shop::Stub::CancelOrder, request, Order());
    refused(&Shop::Stub::GetInvoice, request, Invoice());
    refused(&Shop::Stub::TrackOrder, request, Shipment());
    PlaceRequest place;
    place.set_quote(request.order());
    refused(&Shop::Stub::PlaceOrder, place, Order());
  }
  QuoteRequest quote = QuoteOf(user, {LineOf(products_[0].id, 1)});
  const QuoteRequest theirs = QuoteOf(other, {});
  if (rng.Below(2) == 0) quote.set_address(theirs.address());
  else quote.set_card(theirs.card());
  refused(&Shop::Stub::QuoteOrder, quote, Quote());
  IdRequest id;
  id.set_id(rng.Below(2) == 0 ? theirs.address() : theirs.card());
  const bool is_card = id.id() == theirs.card();
  refused(is_card ? &Shop::Stub::RemoveCard : &Shop::Stub::RemoveAddress, id, apps::Changed());
}

}  // namespace curtail::shop
