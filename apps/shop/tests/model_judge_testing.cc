// SPDX-License-Identifier: Apache-2.0
//
// What is judged while no customer acts.
#include <algorithm>
#include <cstdio>
#include <ranges>
#include <utility>

#include "apps/shop/load/fill.h"
#include "apps/shop/tests/model_testing.h"
#include "curtail/base/strings.h"

namespace curtail::shop {
namespace {

constexpr char kTooFew[] = "there are too few";

bool Says(const std::string& why, const char* words) { return why.find(words) != std::string::npos; }

}  // namespace

void ShopModelTest::JudgeAll() {
  for (const auto& finish : unanswered_) finish();
  unanswered_.clear();
  const absl::Status quiet = app_->AwaitQuiet(Deadline::In(kMaxTestWait));
  EXPECT_TRUE(quiet.ok()) << quiet;
  ExpectAuditedWhenIdle();
  wishes_.Settle(history_.Step());
  const bool faults = std::exchange(faults_, false);
  for (size_t user = 0; user < kUsers; ++user) {
    FindOrders(user);
    LookAtBasket(user);
    LookAtWishes(user);
  }
  for (size_t i = 0; i < kScarce; ++i) LookAtProduct(products_[i].id);
  if (HasFatalFailure()) return;
  history_.Judge();
  for (const Purchase& purchase : purchases_) {
    JudgeTold(purchase);
    JudgePapers(purchase);
  }
  JudgeNumbers();
  JudgeStock();
  JudgeBaskets(/*may_give_up=*/faults);
}

// Of a purchase that was refused the order is not known: it is a rejected one that has its lines.
ShopModelTest::Purchase* ShopModelTest::PurchaseOf(size_t user, const Order& order) {
  const auto known = std::ranges::find(purchases_, order.id(), &Purchase::id);
  if (known != purchases_.end()) return known->user == user ? &*known : nullptr;
  Counts lines;
  for (const QuotedLine& line : order.quote().lines()) lines[line.product()] = line.count();
  const auto found = std::ranges::find_if(purchases_, [&](const Purchase& one) {
    return one.id == 0 && one.user == user && one.lines == lines && !one.refusal.empty() &&
           one.refusal == order.reason() && one.code == order.quote().discount_code();
  });
  if (found == purchases_.end() || order.state() != Order::REJECTED) return nullptr;
  found->id = order.id();
  return &*found;
}

void ShopModelTest::FindOrders(size_t user) {
  const std::vector<Order> orders = OrdersOf(user);
  // The oldest first, as PurchaseOf() takes the oldest of several purchases that were refused alike.
  for (const Order& order : orders | std::views::reverse) {
    EXPECT_NE(order.state(), Order::PLACED) << order.ShortDebugString();
    Purchase* const purchase = PurchaseOf(user, order);
    ASSERT_NE(purchase, nullptr) << "nobody has ordered " << order.ShortDebugString();
    purchase->last = order;
    if (purchase->quote.id() == 0)
      JudgeQuote(order.quote(), purchase->lines, purchase->code,
                 {purchase->began, purchase->told.empty() ? history_.Step() : purchase->told[0].span.ended});
    else
      EXPECT_EQ(order.quote().SerializeAsString(), purchase->quote.SerializeAsString())
          << "another quote than was shown";
    EXPECT_EQ(order.ShortDebugString(), OrderOf(user, order.id()).ShortDebugString());
  }
}

void ShopModelTest::JudgeQuote(const Quote& quote, const Counts& lines, const std::string& code,
                               apps::Span span) const {
  const testing::ScopedTrace trace(__FILE__, __LINE__, quote.ShortDebugString());
  Counts quoted;
  int64_t goods = 0;
  for (const QuotedLine& line : quote.lines()) {
    quoted[line.product()] = line.count();
    goods += line.cents() * line.count();
    const auto known = std::ranges::find(products_, line.product(), &KnownProduct::id);
    ASSERT_NE(known, products_.end());
    if (line.product() == products_[kPriced].id)
      Expect(true, prices_.In(Price(line.product(), line.cents()), span), Join("a price of ", line.cents()),
             span);
    else EXPECT_EQ(line.cents(), known->cents);
  }
  const int64_t percent = code == kFewCode ? 20 : code == kLoadCode ? 10 : 0;
  EXPECT_EQ(quoted, lines);
  EXPECT_EQ(quote.goods_cents(), goods);
  EXPECT_EQ(quote.discount_code(), code);
  EXPECT_EQ(quote.discount_cents(), goods * percent / 100);
  EXPECT_GT(quote.shipping_cents(), 0);
  EXPECT_EQ(quote.total_cents(), goods - quote.discount_cents() + quote.shipping_cents());
}

bool ShopModelTest::WasTold(const Purchase& purchase, uint64_t before) const {
  return std::ranges::any_of(purchase.told, [&](const Told& one) { return one.span.ended < before; });
}

bool ShopModelTest::WasTold(const Purchase& purchase, Order::State state, uint64_t before) const {
  return std::ranges::any_of(purchase.told,
                             [&](const Told& one) { return one.state == state && one.span.ended < before; });
}

void ShopModelTest::JudgeTold(const Purchase& purchase) const {
  const Order& last = purchase.last;
  if (last.id() == 0) {  // refused before an order was made
    EXPECT_EQ(purchase.id, 0u) << "an order is lost: " << purchase.quote.ShortDebugString();
    for (const Told& one : purchase.told)
      JudgeRefusal(nullptr, purchase.lines, purchase.code, one.reason, {purchase.began, one.span.ended});
    return;
  }
  const testing::ScopedTrace trace(__FILE__, __LINE__, last.ShortDebugString());
  uint64_t known = apps::Span::kOpen;  // the step at which somebody was told how it ended
  for (const Told& one : purchase.told) {
    if (one.state == Order::PLACED) continue;
    known = std::min(known, one.span.ended);
    const bool before = last.state() == Order::REFUNDED && one.state == Order::COMMITTED;
    EXPECT_TRUE(before || one.state == last.state()) << one.state << apps::StepsOf(one.span);
    EXPECT_FALSE(before && one.number > 0 && WasTold(purchase, Order::REFUNDED, one.span.began))
        << "it was refunded" << apps::StepsOf(one.span);
    EXPECT_TRUE(one.number == 0 || one.number == last.number()) << one.number << apps::StepsOf(one.span);
    EXPECT_TRUE(one.reason.empty() || one.reason == last.reason()) << one.reason << apps::StepsOf(one.span);
  }
  for (const Told& one : purchase.told)
    EXPECT_TRUE(one.state != Order::PLACED || one.span.began < known)
        << "it had ended" << apps::StepsOf(one.span);
  EXPECT_TRUE(last.state() != Order::REFUNDED || purchase.refunded) << "nobody has refunded it";
  if (last.state() == Order::REJECTED)
    JudgeRefusal(&purchase, purchase.lines, purchase.code, last.reason(), {purchase.began, known});
  else EXPECT_LE(last.quote().total_cents(), kLimit) << "above the limit of the card";
}

void ShopModelTest::JudgeRefusal(const Purchase* of, const Counts& lines, const std::string& code,
                                 const std::string& why, apps::Span span) const {
  const testing::ScopedTrace trace(__FILE__, __LINE__, Join(why, apps::StepsOf(span)));
  if (Says(why, "the code is used up")) {
    const auto users = std::ranges::count_if(purchases_, [&](const Purchase& one) {
      return &one != of && one.code == code && one.last.id() != 0 && one.began < span.ended;
    });
    EXPECT_EQ(code, kFewCode);
    EXPECT_GE(static_cast<uint64_t>(users), kFewUses) << "it was not used up";
    return;
  }
  ASSERT_NE(of, nullptr) << "refused although no order was made";
  if (Says(why, kTooFew)) {
    EXPECT_TRUE(std::ranges::any_of(lines, [&](const auto& line) {
      return DeliveredIn(line.first, span).first - HeldIn(line.first, span, of).first < line.second;
    })) << "there were enough";
  } else if (Says(why, "declined")) {
    EXPECT_GT(of->last.quote().total_cents(), kLimit);
  } else if (Says(why, "cancelled")) {
    EXPECT_TRUE(of->cancelled);
  } else {
    ADD_FAILURE() << "not a reason";
  }
}

std::pair<int64_t, int64_t> ShopModelTest::HeldIn(uint64_t product, apps::Span span,
                                                  const Purchase* but) const {
  std::pair<int64_t, int64_t> held(0, 0);
  for (const Purchase& one : purchases_) {
    const auto line = one.lines.find(product);
    const bool holds = one.last.id() != 0 && !Says(one.last.reason(), kTooFew);
    if (&one == but || line == one.lines.end() || !holds || one.began > span.ended) continue;
    held.first += line->second;
    if (one.last.state() == Order::COMMITTED && WasTold(one, Order::COMMITTED, span.began))
      held.second += line->second;
  }
  return held;
}

std::pair<int64_t, int64_t> ShopModelTest::DeliveredIn(uint64_t product, apps::Span span) const {
  std::pair<int64_t, int64_t> delivered(0, 0);
  for (const DeliveredStock& one : delivered_) {
    if (one.product != product) continue;
    if (one.span.ended < span.began) delivered.first += one.count;
    if (one.span.began < span.ended) delivered.second += one.count;
  }
  return delivered;
}

void ShopModelTest::JudgeNumbers() const {
  std::map<uint64_t, const Purchase*> numbered;
  std::map<std::string, int> endings;
  uint64_t few = 0, last = 0;
  for (const Purchase& one : purchases_) {
    const std::string& reason = one.last.reason();
    const std::string state = one.last.id() == 0 ? "no order" : Order::State_Name(one.last.state());
    ++endings[Join(state, " ", reason.substr(0, reason.find_first_of("0123456789(")))];
    if (one.last.number() == 0) continue;
    EXPECT_TRUE(numbered.emplace(one.last.number(), &one).second) << one.last.number() << " twice";
    few += one.code == kFewCode ? 1 : 0;
  }
  EXPECT_LE(few, kFewUses) << "a code was used too often";
  uint64_t latest = 0;  // the last step at which one of a lower number was placed
  for (const auto& [number, one] : numbered) {
    EXPECT_EQ(number, ++last) << "numbers have a gap";
    const auto told = std::ranges::min(one->told | std::views::transform([](const Told& of) {
                                         const bool bought =
                                             of.state == Order::COMMITTED || of.state == Order::REFUNDED;
                                         return bought ? of.span.ended : apps::Span::kOpen;
                                       }));
    EXPECT_GT(told, latest) << "order " << number << " was told before one of a lower number was placed";
    latest = std::max(latest, one->began);
  }
  for (const auto& [ending, count] : endings) std::printf("%d purchases: %s\n", count, ending.c_str());
}

void ShopModelTest::JudgeStock() const {
  for (const KnownProduct& product : products_) {
    int64_t left = 0;
    for (const DeliveredStock& one : delivered_) left += one.product == product.id ? one.count : 0;
    for (const Purchase& one : purchases_) {
      const auto line = one.lines.find(product.id);
      if (one.last.state() == Order::COMMITTED && line != one.lines.end()) left -= line->second;
    }
    EXPECT_EQ(AvailableOf(product.id), left) << "of product " << product.id;
  }
}

void ShopModelTest::JudgePapers(const Purchase& purchase) const {
  if (purchase.id == 0) return;
  OrderRequest request;
  request.set_order(purchase.id);
  Invoice invoice;
  Shipment shipment;
  const std::string& token = TokenOf(purchase.user);
  const absl::Status issued = Send(&Shop::Stub::GetInvoice, token, request, &invoice);
  const absl::Status sent = Send(&Shop::Stub::TrackOrder, token, request, &shipment);
  if (purchase.last.number() == 0) {
    EXPECT_TRUE(absl::IsNotFound(issued)) << issued << invoice.ShortDebugString();
    EXPECT_TRUE(absl::IsNotFound(sent)) << sent << shipment.ShortDebugString();
    return;
  }
  EXPECT_TRUE(issued.ok() && sent.ok()) << issued << sent;
  EXPECT_EQ(invoice.number(), purchase.last.number());
  EXPECT_EQ(invoice.quote().SerializeAsString(), purchase.last.quote().SerializeAsString());
  EXPECT_EQ(shipment.option(), purchase.last.quote().shipping_option());
}

}  // namespace curtail::shop
