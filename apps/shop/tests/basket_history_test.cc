// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "apps/shop/tests/basket_history_testing.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "curtail/base/testing.h"

namespace curtail::shop {
namespace {

using Kind = Edit::Kind;
using Lines = std::vector<std::pair<uint64_t, uint32_t>>;

constexpr apps::Span kLong = {1, 100}, kEnd = {101, 102};

// Notes that an order put its lines into the basket, one after the other.
void Bought(BasketHistory& basket, uint64_t purchase, const Lines& lines, apps::Span span,
            bool certain = true) {
  uint64_t number = 0;
  for (const auto& line : lines)
    basket.Did({.kind = Kind::kAdd,
                .lines = {line},
                .span = span,
                .certain = certain,
                .turn = {purchase, ++number}});
}

TEST(BasketHistory, ExplainsWhatIsSeen) {
  BasketHistory basket;
  basket.Did({.kind = Kind::kAdd, .lines = {{1, 2}}, .span = {1, 2}, .version = 1});
  basket.Saw(1, {{1, 2}}, {1, 2});
  Bought(basket, 3, {{2, 1}, {3, 1}}, {3, 6});
  basket.Did({.kind = Kind::kTake, .lines = {{2, 1}, {3, 1}}, .span = {3, apps::Span::kOpen}});
  basket.Saw(3, {{1, 2}, {2, 1}, {3, 1}}, {6, 7});
  basket.Saw(4, {{1, 2}}, {8, 9});
  basket.Judge("a basket", /*may_give_up=*/false);
}

TEST(BasketHistory, FindsAChangeThatWasMadeTwice) {
  BasketHistory basket;
  basket.Did({.kind = Kind::kAdd, .lines = {{1, 2}}, .span = {1, 2}});
  basket.Saw(2, {{1, 4}}, {3, 4});
  EXPECT_NONFATAL_FAILURE(basket.Judge("a basket", /*may_give_up=*/false),
                          "no change explains version 2 of 2");
}

TEST(BasketHistory, FindsAChangeThatIsLost) {
  BasketHistory basket;
  for (int i = 0; i < 2; ++i) basket.Did({.kind = Kind::kAdd, .lines = {{1, 2}}, .span = {1, 2}});
  basket.Saw(1, {{1, 2}}, {3, 4});
  EXPECT_NONFATAL_FAILURE(basket.Judge("a basket", /*may_give_up=*/false), "1 versions are 1 too few");
}

TEST(BasketHistory, FindsLinesOfAnOrderThatCameOutOfTurn) {
  BasketHistory basket;
  Bought(basket, 1, {{1, 1}, {2, 1}}, kLong);
  basket.Saw(1, {{2, 1}}, {10, 11});
  basket.Saw(2, {{1, 1}, {2, 1}}, kEnd);
  EXPECT_NONFATAL_FAILURE(basket.Judge("a basket", /*may_give_up=*/false),
                          "no change explains version 1 of 2");
}

// Two changes add the same, and only one of them has a line that follows. The one that was noted later came first.
TEST(BasketHistory, TellsChangesApartByWhatFollowsThem) {
  BasketHistory basket;
  basket.Did({.kind = Kind::kAdd, .lines = {{1, 2}}, .span = kLong});
  Bought(basket, 2, {{1, 2}, {2, 1}}, kLong);
  Bought(basket, 3, {{1, 2}, {3, 1}}, kLong);
  basket.Saw(2, {{1, 2}, {3, 1}}, {10, 11});
  basket.Saw(4, {{1, 4}, {2, 1}, {3, 1}}, {12, 13});
  basket.Saw(5, {{1, 6}, {2, 1}, {3, 1}}, kEnd);
  basket.Judge("a basket", /*may_give_up=*/false);
}

// Two orders of the same, of which one was refused at a line. The first has ended before the second line is seen.
TEST(BasketHistory, TellsOrdersApartWhoseLinesMayBeMissing) {
  BasketHistory basket;
  Bought(basket, 1, {{1, 2}, {2, 1}}, {1, 12}, /*certain=*/false);
  Bought(basket, 2, {{1, 2}, {2, 1}}, {1, 30}, /*certain=*/false);
  basket.Saw(1, {{1, 2}}, {10, 11});
  basket.Saw(1, {{1, 2}}, {20, 21});
  basket.Saw(2, {{1, 2}, {2, 1}}, {31, 32});
  basket.Judge("a basket", /*may_give_up=*/false);
}

// A basket, the requests that change it, and what their sender is told. Some replies come in the end only.
class Shopper {
 public:
  explicit Shopper(uint64_t seed) : rng_(seed) {}

  void Act(int acts, BasketHistory* history) {
    for (int i = 0; i < acts; ++i) {
      const uint64_t what = rng_.Below(8);
      if (what == 0) Look(history);
      else if (what < 4) Send();
      else if (!sent_.empty()) GoOn(rng_.Below(sent_.size()), history);
    }
    ended_ = true;
    while (!sent_.empty()) GoOn(rng_.Below(sent_.size()), history);
    Look(history);
  }

 private:
  struct Request {
    Kind kind = Kind::kAdd;
    Lines lines;
    uint64_t began = 0;
    bool lost = false;     // its reply, until the end
    bool ordered = false;  // what was added is taken
    size_t done = 0;       // of the lines
    uint64_t version = 0;
    Counts after = {};
  };

  void Look(BasketHistory* history) {
    const uint64_t began = ++step_;
    history->Saw(version_, basket_, {began, ++step_});
  }

  void Send() {
    const uint64_t what = rng_.Below(12);
    Request request = {.lines = {{1 + rng_.Below(4), 1}}, .began = ++step_, .lost = rng_.Below(4) == 0};
    request.ordered = what < 7;
    if (what < 6) request.lines = {{1 + rng_.Below(2), 1}, {3 + rng_.Below(2), 1}};
    if (what == 10) request.kind = Kind::kRemove;
    if (what == 11) request.kind = Kind::kClear;
    sent_.push_back(std::move(request));
  }

  // Makes the next change of a request, or tells its sender that all were made.
  void GoOn(size_t which, BasketHistory* history) {
    Request& request = sent_[which];
    if (request.done < request.lines.size()) return Change(request);
    if (request.lost && !ended_) return;
    const apps::Span span = {request.began, request.kind == Kind::kTake ? apps::Span::kOpen : ++step_};
    if (request.ordered) {
      Bought(*history, request.began, request.lines, span);
    } else {
      const Counts lines(request.lines.begin(), request.lines.end());
      history->Did({.kind = request.kind, .lines = lines, .span = span, .version = request.version});
      if (request.version != 0) history->Saw(request.version, request.after, span);
    }
    sent_.erase(sent_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  void Change(Request& request) {
    ++version_;
    const bool takes = request.kind == Kind::kTake;
    if (request.kind == Kind::kClear) basket_.clear();
    do {
      const auto [product, count] = request.lines[request.done++];
      if (request.kind == Kind::kAdd) basket_[product] += count;
      if (request.kind == Kind::kRemove || (takes && basket_[product] <= count)) basket_.erase(product);
      else if (takes) basket_[product] -= count;
    } while (takes && request.done < request.lines.size());
    if (!takes) request.version = version_, request.after = basket_;
    if (request.ordered && request.done == request.lines.size())
      sent_.push_back({.kind = Kind::kTake, .lines = request.lines, .began = request.began});
  }

  Rng rng_;
  std::deque<Request> sent_;
  uint64_t step_ = 0, version_ = 0;
  Counts basket_;
  bool ended_ = false;
};

// Some have too many orders of their changes.
TEST(BasketHistory, ExplainsWhatHasHappenedStress) {
  const uint64_t seed = TestSeed();
  for (int i = 0; i < Repeats(20, 1000); ++i) {
    BasketHistory basket;
    Shopper(seed + static_cast<uint64_t>(i)).Act(20, &basket);
    basket.Judge(Join("the basket of seed ", seed + static_cast<uint64_t>(i)), /*may_give_up=*/true);
  }
}

}  // namespace
}  // namespace curtail::shop
