// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/internal/recycler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace curtail {
namespace {

std::atomic<int> alive{0};

// Each test has a type of its own, so that it finds an empty depot.
template <int test>
struct Counted {
  Counted() { ++alive; }
  ~Counted() { --alive; }
  bool Recycle() { return keep; }
  bool keep = true;
  int value = 0;
};

TEST(Recycler, GivesAnObjectOutAgain) {
  using Pool = Recycler<Counted<0>>;
  Counted<0>* const first = Pool::Take();
  first->value = 7;
  Pool::Give(first);
  Counted<0>* const second = Pool::Take();
#if CURTAIL_RECYCLES
  EXPECT_EQ(second, first);
  EXPECT_EQ(second->value, 7);
#endif
  Pool::Give(second);
}

TEST(Recycler, DeletesWhatHoldsTooMuch) {
  using Pool = Recycler<Counted<1>>;
  const int before = alive;
  Counted<1>* const big = Pool::Take();
  big->keep = false;
  Pool::Give(big);
  EXPECT_EQ(alive, before);
}

TEST(Recycler, KeepsABoundedNumber) {
  using Pool = Recycler<Counted<2>>;
  const int before = alive;
  std::vector<Counted<2>*> burst(5000);
  for (auto& object : burst) object = Pool::Take();
  EXPECT_EQ(std::set(burst.begin(), burst.end()).size(), burst.size());
  for (auto* object : burst) Pool::Give(object);
  EXPECT_LE(alive - before, 600);
}

TEST(Recycler, AThreadThatEndsLeavesItsObjectsToTheOthers) {
  using Pool = Recycler<Counted<3>>;
  Counted<3>* const object = Pool::Take();
  std::thread([object] { Pool::Give(object); }).join();
  const int before = alive;
  Counted<3>* const again = Pool::Take();
#if CURTAIL_RECYCLES
  EXPECT_EQ(again, object);
#endif
  EXPECT_LE(alive - before, CURTAIL_RECYCLES ? 0 : 1);
  Pool::Give(again);
}

// Property: no thread is given an object that another has, and the writes of its last owner are there. A pipeline:
// one thread takes, the next gives back, so that every object goes through the depot.
TEST(Recycler, OneThreadTakesAnotherGivesStress) {
  using Pool = Recycler<Counted<4>>;
  constexpr int kRounds = 20'000;
  std::atomic<Counted<4>*> hand{nullptr};
  const auto give = [&hand] {
    for (int i = 0; i < kRounds; ++i) {
      Counted<4>* object = nullptr;
      while ((object = hand.exchange(nullptr, std::memory_order_acquire)) == nullptr)
        std::this_thread::yield();
      EXPECT_EQ(object->value++ % 2, 1);
      Pool::Give(object);
    }
  };
  const int before = alive;
  std::thread giver(give);
  for (int i = 0; i < kRounds; ++i) {
    Counted<4>* const object = Pool::Take();
    EXPECT_EQ(object->value++ % 2, 0);
    while (hand.load(std::memory_order_relaxed) != nullptr) std::this_thread::yield();
    hand.store(object, std::memory_order_release);
  }
  giver.join();
  EXPECT_LE(alive - before, 100);
}

TEST(Recycler, BlocksOfAllSizesAreAligned) {
  for (size_t bytes = 1; bytes < 10'000; bytes = bytes * 3 / 2 + 1) {
    void* const block = AllocateBlock(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % alignof(std::max_align_t), 0u);
    std::fill_n(static_cast<char*>(block), bytes, 'x');
    FreeBlock(block, bytes);
  }
}

TEST(Recycler, BuffersThatGrewTooLargeAreFreed) {
  std::string small(1000, 'x');
  std::string large(2 * kKeptBytes, 'x');
  EmptyForReuse(small);
  EmptyForReuse(large);
  EXPECT_TRUE(small.empty() && large.empty());
  EXPECT_GE(small.capacity(), 1000u);
  EXPECT_LE(large.capacity(), kKeptBytes);
}

}  // namespace
}  // namespace curtail
