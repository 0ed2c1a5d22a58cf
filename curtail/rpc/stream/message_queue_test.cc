// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/stream/message_queue.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>

#include "curtail/base/rng.h"

namespace curtail::internal {
namespace {

TEST(MessageQueue, GivesBackWhatItTookInOrder) {
  constexpr uint64_t kSeed = 1712;
  std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
  Rng rng(kSeed);
  MessageQueue queue;
  std::deque<std::string> model;
  size_t bytes = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (model.empty() || rng.Uniform01() < (i / 1000 % 2 == 0 ? 0.6 : 0.3)) {
      const double kind = rng.Uniform01();
      const size_t size =
          kind < 0.1 ? 0 : static_cast<size_t>(rng.Uniform01() * (kind < 0.6 ? 1000 : 30'000));
      model.emplace_back(size, static_cast<char>('a' + i % 26));
      bytes += size + 4;
      queue.Push(std::string(model.back()));
    } else {
      std::string message;
      queue.Pop(&message);
      ASSERT_EQ(message, model.front()) << i;
      bytes -= message.size() + 4;
      model.pop_front();
    }
    ASSERT_EQ(queue.bytes(), bytes);
    ASSERT_EQ(queue.empty(), model.empty());
  }
  queue.Clear();
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace curtail::internal
