// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/transport/strand.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace curtail::internal {
namespace {

TEST(Strand, FirstToEnterHoldsAndSeesItsBits) {
  Strand strand;
  const auto enter = [&strand](uint32_t bits) { return strand.Enter(&bits); };
  uint32_t bits = 1;
  ASSERT_TRUE(strand.Enter(&bits));
  EXPECT_EQ(bits, 1u);
  EXPECT_FALSE(enter(2));
  EXPECT_FALSE(enter(4));
  EXPECT_FALSE(strand.Leave(&bits));
  EXPECT_EQ(bits, 6u);
  EXPECT_TRUE(strand.Leave(&bits));
  EXPECT_TRUE(enter(8));
}

// Property: work on the strand is mutually exclusive, and everything posted before an Enter() is done by some
// holder. `posted` counts what was asked for, `done` is a plain variable that only holders touch.
void Hammer(int threads, int rounds) {
  Strand strand;
  std::atomic<int> posted{0};
  int done = 0;
  std::vector<std::thread> pool;
  for (int t = 0; t < threads; ++t) {
    pool.emplace_back([&] {
      for (int i = 0; i < rounds; ++i) {
        posted.fetch_add(1, std::memory_order_release);
        uint32_t bits = 1;
        if (!strand.Enter(&bits)) continue;
        do {
          EXPECT_EQ(bits, 1u);
          done += posted.exchange(0, std::memory_order_acquire);
        } while (!strand.Leave(&bits));
      }
    });
  }
  for (std::thread& thread : pool) thread.join();
  EXPECT_EQ(done, threads * rounds);
  EXPECT_EQ(posted, 0);
}

TEST(Strand, NothingIsLeftBehind) { Hammer(1, 1000); }
TEST(Strand, NothingIsLeftBehindStress) { Hammer(8, 20000); }

}  // namespace
}  // namespace curtail::internal
