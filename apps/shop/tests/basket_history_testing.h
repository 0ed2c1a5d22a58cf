// SPDX-License-Identifier: Apache-2.0
//
// basket_history_testing.h - whether one basket's answers are explained by what its owner did.
//
//  1  A basket has a version, which ascends by one with each change. So its changes have one order, and a version is explained by one
//     change.
//  2  The answer to a change may have its version. Other changes, such as what an order takes out of the basket, explain any version
//     that their span allows: a version that was seen before a change began is not later, and so on.
//  3  A certain change explains exactly one version, any other at most one.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "apps/kit/testing/history.h"
#include "customers.curtail.h"

namespace curtail::shop {

// Counts by product.
using Counts = std::map<uint64_t, uint32_t>;
Counts CountsOf(const google::protobuf::RepeatedPtrField<Line>& lines);

// A change of a basket. Its span is open if it may come at any later time.
struct Edit {
  enum class Kind : uint8_t { kAdd, kSet, kRemove, kClear, kTake, kMerge, kNothing };
  Kind kind = Kind::kNothing;
  Counts lines = {};
  apps::Span span = {};
  uint64_t version = 0;  // 0: not known
  bool certain = true;   // false: it may never happen
  // Of changes whose first number is the same and not 0, the ones with lower second numbers come first. These have one span.
  std::pair<uint64_t, uint64_t> turn = {0, 0};
  int64_t after_ms = 0;  // the time before which it was not made, in milliseconds since 1970
};

// A BasketHistory has all changes and answers of one owner's basket. Thread-safe, but for Judge().
class BasketHistory {
 public:
  void Did(Edit edit);
  void Saw(uint64_t version, Counts lines, apps::Span span);
  void Saw(const Basket& basket, apps::Span span) { Saw(basket.version(), CountsOf(basket.lines()), span); }
  // Fails the test if no order of the changes explains all answers. REQUIRES: nobody changes the basket, and somebody saw it since.
  // `may_give_up`: says so, in place of failing, if there are too many orders to try.
  void Judge(const std::string& whose, bool may_give_up) const;

 private:
  struct Sight {
    uint64_t version = 0;
    Counts lines;
    apps::Span span;
    int64_t ended_ms = 0;
  };

  mutable std::mutex mu_;
  std::vector<Edit> edits_;    // guarded by mu_ while users act
  std::vector<Sight> sights_;  // guarded by mu_ while users act
};

}  // namespace curtail::shop
