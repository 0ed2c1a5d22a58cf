// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/transport/strand.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace curtail::internal {
namespace {

TEST(Strand, FirstToEnterHoldsAndSeesItsBits) {
  Strand strand;
  ASSERT_TRUE(strand.Enter(1));
  EXPECT_FALSE(strand.Enter(2));
  EXPECT_EQ(strand.Take(), 3u);
  EXPECT_FALSE(strand.Enter(4));
  EXPECT_FALSE(strand.Leave());
  EXPECT_EQ(strand.Take(), 4u);
  EXPECT_TRUE(strand.Leave());
  EXPECT_TRUE(strand.Enter(8));
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
        if (!strand.Enter(1)) continue;
        do {
          strand.Take();
          done += posted.exchange(0, std::memory_order_acquire);
        } while (!strand.Leave());
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
