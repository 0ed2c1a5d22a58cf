// SPDX-License-Identifier: Apache-2.0
#include "curtail/deploy/link/link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "curtail/base/strings.h"
#include "curtail/base/testing.h"

namespace curtail::deploy {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr TimePoint kStart{std::chrono::hours(1)};

TEST(ParseLink, TakesEachPart) {
  const auto all = ParseLink("delay=20ms,jitter=5ms,loss=0.1%,rate=10mbit");
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->delay, milliseconds(20));
  EXPECT_EQ(all->jitter, milliseconds(5));
  EXPECT_DOUBLE_EQ(all->loss, 0.001);
  EXPECT_DOUBLE_EQ(all->bytes_per_s, 1'250'000);
  EXPECT_DOUBLE_EQ(ParseLink("rate=56kbit")->bytes_per_s, 7000);
  EXPECT_EQ(ParseLink("rate=1gbit")->delay, Nanos::zero());
}

TEST(ParseLink, SaysWhatToWrite) {
  const std::pair<const char*, const char*> kWrong[] = {
      {"", "write delay=20ms,jitter=5ms"},
      {"delay", "delay must be from 0 to 60s, as in delay=20ms, not ''"},
      {"delay=-1ms", "delay must be from 0 to 60s"},
      {"delay=2h", "delay must be from 0 to 60s"},
      {"delay=1ms ", "delay must be from 0 to 60s"},
      {"delay=20", "delay=20 has no unit; write 20ms"},
      {"loss=0.1", "loss=0.1 has no unit; write 0.1%"},
      {"loss=200%", "loss must be below 100%"},
      {"loss=nan%", "loss must be a percentage"},
      {"rate=0mbit", "rate must be above 0, as in rate=10mbit"},
      {"rate=10", "rate=10 has no unit; write 10mbit"},
      {"rate=1e30gbit", "rate must be above 0"},
      {"dely=20ms", "there is no 'dely'; did you mean \"delay\"?"},
      {"delay=1ms,,rate=1mbit", "write delay=20ms,jitter=5ms"}};
  for (const auto& [text, what] : kWrong) {
    const absl::StatusOr<LinkShape> link = ParseLink(text);
    ASSERT_FALSE(link.ok()) << text;
    EXPECT_THAT(std::string(Message(link.status())), HasSubstr(what)) << text;
  }
  EXPECT_THAT(std::string(Message(ParseLink("delay=1ms,jitter=2ms").status())),
              HasSubstr("longer than the delay"));
}

// All that has left by `now`.
std::string Take(LinkQueue& queue, TimePoint now) {
  std::string all;
  for (std::string_view ready; !(ready = queue.Ready(now)).empty(); queue.Take(ready.size())) all += ready;
  return all;
}

TEST(LinkQueue, DelaysEachByte) {
  LinkQueue queue({.delay = milliseconds(10)}, 1);
  queue.Put(kStart, "one");
  queue.Put(kStart + milliseconds(4), "two");
  EXPECT_EQ(queue.next(), kStart + milliseconds(10));
  EXPECT_EQ(Take(queue, kStart + milliseconds(10) - Nanos(1)), "");
  EXPECT_EQ(Take(queue, kStart + milliseconds(10)), "one");
  EXPECT_EQ(queue.size(), 3u);
  EXPECT_EQ(Take(queue, kStart + milliseconds(14)), "two");
  EXPECT_EQ(queue.next(), TimePoint::max());
}

TEST(LinkQueue, MayBeTakenInParts) {
  LinkQueue queue({}, 1);
  queue.Put(kStart, "abcd");
  EXPECT_EQ(queue.Ready(kStart), "abcd");
  queue.Take(1);
  EXPECT_EQ(queue.Ready(kStart), "bcd");
  queue.Take(3);
  EXPECT_EQ(queue.size(), 0u);
}

TEST(LinkQueue, HasARate) {
  LinkQueue queue({.bytes_per_s = 1'448'000}, 1);  // a packet a millisecond
  queue.Put(kStart, std::string(3 * LinkQueue::kPacketBytes, 'x'));
  for (size_t i = 1; i <= 3; ++i) {
    EXPECT_EQ(queue.next(), kStart + milliseconds(i));
    EXPECT_EQ(Take(queue, queue.next()).size(), LinkQueue::kPacketBytes);
  }
  queue.Put(kStart + milliseconds(9), "x");  // it was idle meanwhile
  EXPECT_LT(queue.next(), kStart + milliseconds(10));
}

TEST(LinkQueue, KeepsTheOrderWhateverIsLostOrLate) {
  const uint64_t seed = TestSeed();
  LinkQueue queue({.delay = milliseconds(10), .jitter = milliseconds(10), .loss = 0.3}, seed);
  std::string all;
  TimePoint now = kStart, earlier = kStart;
  for (int i = 0; i < 1000; ++i, now += milliseconds(1)) {
    const std::string bytes = Join(i, ",");
    all += bytes;
    queue.Put(now, bytes);
  }
  std::string got;
  for (; queue.size() > 0; earlier = now) {
    now = queue.next();
    EXPECT_GE(now, earlier);
    got += Take(queue, now);
  }
  EXPECT_EQ(got, all);
}

TEST(LinkQueue, LosesTheShareThatItShall) {
  LinkQueue queue({.loss = 0.1}, TestSeed());
  int lost = 0;
  for (int i = 0; i < 10'000; ++i) {
    const TimePoint now = kStart + std::chrono::seconds(i);
    queue.Put(now, "x");
    lost += queue.next() > now ? 1 : 0;
    queue.Take(1);
  }
  EXPECT_NEAR(lost, 1000, 200);
}

}  // namespace
}  // namespace curtail::deploy
