// SPDX-License-Identifier: Apache-2.0
//
// history.h - the operations of a test's users, and which answers each operation may get.
//
//  1  An operation is a call, or the calls for one list. It takes a step of one counter before and another
//     after: its span. An operation that ends before another begins came first. If their spans overlap, either
//     may have come first.
//  2  An operation is acknowledged, refused without effect, or of unknown outcome. One of unknown outcome may
//     take effect at any time or never: its span is open until the application is quiet, Facts::Settle().
//  3  A fact, such as that a user follows another, changes by operations. Nothing holds at first. A value is
//     possible in a span if the change to it may be the last one at a moment of the span.
//  4  An answer is right if all that it says was possible in its span, its own change apart. An answer that
//     concurrent operations may explain is judged once none is in progress, as all changes are known then.
//
// These are the rules of linearizable histories (Herlihy and Wing, 1990), applied to one fact at a time.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace curtail::apps {

struct Span {
  static constexpr uint64_t kOpen = std::numeric_limits<uint64_t>::max();
  uint64_t began = 0, ended = 0;
};

enum class Outcome : uint8_t { kAcknowledged, kRefused, kUnknown };

struct Operation {
  bool ok() const { return status.ok(); }
  absl::StatusCode code() const { return status.code(); }
  absl::Status status;
  Outcome outcome;
  Span span;
};

// The values that a statement may have in a span. One of several facts takes each at a moment of its own.
struct Possible {
  constexpr Possible(bool value) : no(!value), yes(value) {}  // NOLINT(google-explicit-constructor)
  constexpr Possible(bool n, bool y) : no(n), yes(y) {}
  constexpr bool Is(bool value) const { return value ? yes : no; }
  constexpr bool Certain() const { return no != yes; }
  constexpr Possible operator!() const { return {yes, no}; }
  friend constexpr Possible operator&&(Possible a, Possible b) { return {a.no || b.no, a.yes && b.yes}; }
  friend constexpr Possible operator||(Possible a, Possible b) { return !(!a && !b); }

  bool no, yes;
};

// How many of several statements may hold at once.
struct PossibleCount {
  void Add(Possible one) {
    least += one.no ? 0 : 1;
    most += one.yes ? 1 : 0;
  }
  bool MayBe(uint64_t count) const { return least <= count && count <= most; }
  uint64_t least = 0, most = 0;
};

// A History runs the operations of users, and keeps what is to be judged of their answers. Thread-safe.
// Failures are those of the test.
class History {
 public:
  // `is_fault(status)`: an operation that ends so has an unknown outcome. Thread-safe; null: none has.
  explicit History(std::function<bool(const absl::Status&)> is_fault = nullptr)
      : is_fault_(std::move(is_fault)) {}

  uint64_t Step() { return steps_.fetch_add(1) + 1; }
  // A span of its own, in which no operation begins or ends.
  Span Now() {
    const uint64_t step = Step();
    return {step, step};
  }
  // Fails the test if `call` ends in an error that is neither a fault nor one of `refusals`.
  Operation Do(absl::FunctionRef<absl::Status()> call, const std::set<absl::StatusCode>& refusals = {});
  // Repeats it until its outcome is known; fails the test if that takes longer than kMaxTestWait.
  Operation Insist(absl::FunctionRef<absl::Status()> call, const std::set<absl::StatusCode>& refusals = {});
  // Has an answer judged by Judge().
  void Later(std::function<void()> judge);
  // REQUIRES: no operation is in progress.
  void Judge();

 private:
  const std::function<bool(const absl::Status&)> is_fault_;
  std::atomic<uint64_t> steps_{0};  // sequentially consistent: a step orders the calls around it
  std::mutex mu_;
  std::vector<std::function<void()>> judges_;  // guarded by mu_
};

std::string StepsOf(Span span);
void Expect(bool said, Possible possible, const std::string& what, Span span);
void ExpectCount(PossibleCount possible, uint64_t count, const std::string& what, Span span);

// A list is newest first, has nothing twice, and has those of `all` for which `formula(id, entry)` holds.
template <class All, class Formula>
void ExpectList(const std::vector<uint64_t>& ids, const All& all, Formula formula, const std::string& what,
                Span span) {
  EXPECT_EQ(std::ranges::adjacent_find(ids, std::less_equal<>()), ids.end()) << what << StepsOf(span);
  for (const uint64_t id : ids) EXPECT_TRUE(all.contains(id)) << what << " has " << id << StepsOf(span);
  for (const auto& [id, entry] : all) {
    const bool there = std::ranges::binary_search(ids, id, std::greater<>());
    EXPECT_TRUE(formula(id, entry).Is(there)) << what << (there ? " has " : " lacks ") << id << StepsOf(span);
  }
}

}  // namespace curtail::apps
