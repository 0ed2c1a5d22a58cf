// SPDX-License-Identifier: Apache-2.0
//
// model_testing.h - random customers, guests and a clerk, and whether what each was told is right.
//
//  1  A purchase is the order of a quote, or a Buy() with a key. It is repeated until it has an answer, so it is one order, or it was
//     refused before there was one.
//  2  An order that ended one way is told so ever after, with one number or reason; a COMMITTED one until the clerk refunds it, and then
//     REFUNDED. Its quote is what its customer was shown.
//  3  An order is refused for its reason only: the stock may have lacked a product, the code may have been used up, the card is above
//     its limit, or the customer has cancelled it.
//  4  Each basket is explained by its owner's changes and by what its orders have taken (basket_history_testing.h).
//  5  Numbers of committed orders have no gaps, and ascend from one that was told to one that was placed later.
//  6  What belongs to another is NOT_FOUND.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apps/kit/testing/actors.h"
#include "apps/kit/testing/facts.h"
#include "apps/kit/testing/history.h"
#include "apps/shop/tests/basket_history_testing.h"
#include "apps/shop/tests/shop_testing.h"
#include "curtail/base/rng.h"

namespace curtail::shop {

class ShopModelTest : public ShopTest {
 protected:
  using Did = apps::Actors::Did;

  static bool IsOfFault(const absl::Status& status) {
    return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
           absl::IsResourceExhausted(status);
  }

  void SetUp() override;
  // An act of any customer. Thread-safe.
  Did Act(Rng& rng);
  // Repeats what has no answer, waits until nothing is on its way, and judges all that was told. REQUIRES: no user acts, and no fault
  // lasts.
  void JudgeAll();

  // Calls may fail, and end late. Set before users act.
  bool faults_ = false;
  const uint64_t seed_ = TestSeed();

 private:
  // Products of which there are few, and the one whose price changes. Of this and the others there is plenty.
  static constexpr size_t kScarce = 3, kPriced = 3;
  static constexpr int64_t kLimit = 100'000;  // of a card
  static constexpr char kFewCode[] = "FEW";
  static constexpr uint64_t kFewUses = 12;

  // An answer about an order. The number is 0 and the reason empty where the answer has none.
  struct Told {
    Order::State state = Order::PLACED;
    uint64_t number = 0;
    std::string reason;
    apps::Span span;
  };
  struct Purchase {
    size_t user = 0;
    Counts lines;
    std::string code;
    uint64_t id = 0;     // 0: not known
    Quote quote = {};    // as it was shown; by Buy(): none
    uint64_t began = 0;  // the step at which it was placed
    // Guarded by mu_ while users act.
    std::vector<Told> told = {};
    std::string refusal = {};                  // of one whose id is not known
    bool cancelled = false, refunded = false;  // somebody tried
    // By Buy(): the step of its answer, and whether all lines were put into the basket.
    uint64_t answered = 0;
    bool added = false;
    Order last = {};  // in the end; without an id: there is none
  };
  struct DeliveredStock {
    uint64_t product = 0;
    int64_t count = 0;
    apps::Span span;
  };
  using Price = std::pair<uint64_t, int64_t>;  // a product and its cents
  using UserProduct = std::pair<size_t, uint64_t>;

  template <class Method, class Request, class Reply>
  absl::Status Send(Method method, const std::string& token, const Request& request, Reply* reply,
                    const std::string& key = {}) const {
    Context ctx(faults_ ? kPatience : kMaxTestWait);
    if (!token.empty()) ctx.AddMetadata("authorization", "Bearer " + token);
    if (!key.empty()) ctx.AddMetadata("idempotency-key", key);
    reply->Clear();
    return (shop().*method)(ctx, request, reply, /*metadata=*/nullptr);
  }
  const std::string& TokenOf(size_t user) const { return users_[user].token; }
  std::string NewName(const char* what);
  // A call that may be repeated. It is, now and then, at once if it fails, and again in the end if its outcome is unknown. `record` gets the last
  // answer, once.
  Did Repeat(std::function<absl::Status()> call, const std::set<absl::StatusCode>& refusals,
             std::function<void(const apps::Operation&)> record);

  Counts SomeLines(Rng& rng) const;
  static std::string SomeCode(Rng& rng);
  Did AddToBasket(size_t user, uint64_t product, uint32_t count);
  Did ChangeBasket(Rng& rng, size_t user);
  Did BuyByQuote(Rng& rng, size_t user);
  Did PlaceOne(Purchase& purchase, const std::string& key);
  Did BuyAtOnce(Rng& rng, size_t user);
  Did AdoptGuest(Rng& rng, size_t user);
  Did Adopt(size_t user, const AdoptRequest& request, const LineRequest& line);
  Did Reprice(Rng& rng);
  Did Restock(Rng& rng);
  Did ChangeWishes(Rng& rng, size_t user);
  void Cancel(Purchase& purchase);
  void Refund(Purchase& purchase);
  void LookAtOrder(Purchase& purchase);
  void LookAtOrders(size_t user);
  void LookAtBasket(size_t user);
  void LookAtProduct(uint64_t product);
  void LookAtWishes(size_t user);
  void Trespass(Rng& rng, size_t user);

  Purchase& New(Purchase purchase);
  // One whose id is known; null: there is none.
  Purchase* AnyPurchase(Rng& rng);
  void Tell(Purchase& purchase, const Order& order, apps::Span span);
  void TellRefused(Purchase& purchase, const absl::Status& why, apps::Span span);

  // Of the application in the end.
  void FindOrders(size_t user);
  Purchase* PurchaseOf(size_t user, const Order& order);
  void JudgeQuote(const Quote& quote, const Counts& lines, const std::string& code, apps::Span span) const;
  void JudgeTold(const Purchase& purchase) const;
  // `of` is null if no order was made.
  void JudgeRefusal(const Purchase* of, const Counts& lines, const std::string& code, const std::string& why,
                    apps::Span span) const;
  void JudgeNumbers() const;
  void JudgeStock() const;
  void JudgePapers(const Purchase& purchase) const;
  void JudgeBaskets(bool may_give_up);
  bool WasTold(const Purchase& purchase, uint64_t before) const;
  // Somebody was told so before a step.
  bool WasTold(const Purchase& purchase, Order::State state, uint64_t before) const;
  // Of a product: what orders may hold in a span, and have bought for certain before it.
  std::pair<int64_t, int64_t> HeldIn(uint64_t product, apps::Span span, const Purchase* but = nullptr) const;
  // Of a product: what has come for certain before a span, and may have come by its end.
  std::pair<int64_t, int64_t> DeliveredIn(uint64_t product, apps::Span span) const;

  // Short, so that a service that stands still does not hold up the test.
  static constexpr Nanos kPatience = std::chrono::milliseconds(500);

  apps::History history_{IsOfFault};
  std::array<BasketHistory, kUsers> baskets_;
  apps::Facts<Price> prices_;
  apps::Facts<UserProduct> wishes_;
  std::unique_ptr<Channel> catalogue_, inventory_;
  std::string clerk_;  // its token
  std::mutex pricing_, mu_;
  Product priced_;  // guarded by pricing_ while users act
  // Guarded by mu_ while users act.
  uint64_t last_ = 0;
  std::deque<Purchase> purchases_;
  std::vector<DeliveredStock> delivered_;
  std::vector<std::function<void()>> unanswered_;
};

}  // namespace curtail::shop
