// SPDX-License-Identifier: Apache-2.0
//
// The promises of lending.h over random loads: where nothing stalls, no request waits beside an idle permit, and a
// lender waits for one answer at most; a class that stops takes from the others nothing that they needed.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <queue>
#include <tuple>
#include <vector>

#include "curtail/base/rng.h"
#include "curtail/fence/fenced_order_testing.h"
#include "curtail/fence/lending.h"

namespace curtail {
namespace {

// A server under a load of its own: one class whose requests come at random, up to more than the threads can do, and
// others that come in bursts. A service takes between half its mean and one and a half.
class RandomLoad {
 public:
  explicit RandomLoad(uint64_t seed)
      : rng_(seed),
        threads_(4 + static_cast<uint32_t>(rng_.Below(20))),
        others_(1 + static_cast<uint32_t>(rng_.Below(3))),
        s_({.mode = FenceMode::kOn, .max_waiting = 1 + static_cast<uint32_t>(rng_.Below(20))}, threads_,
           kAll) {
    for (uint32_t i = 0; i <= others_; ++i) {
      Class& c = classes_.emplace_back();
      c.mean = kMeans[rng_.Below(3)];
      c.burst = i == 0 ? 1 : 1 + static_cast<int>(rng_.Below(std::max<uint32_t>(1, threads_ / 2 / others_)));
      const double random = rng_.Uniform01();
      const double share = 0.02 + 1.2 * random * random * random;
      c.every = i == 0 ? FromSeconds(InSeconds(c.mean) / threads_ / share) : 2 * c.mean + kMs;
      Schedule(kCome, static_cast<uint8_t>(i), Nanos(0));
    }
  }

  // Where nothing stalls.
  void LiveWell(Nanos time) {
    checks_work_ = true;
    RunFor(time);
  }
  // The first class stops to answer. Returns true if it had left room for the others when its silence was evident.
  bool LiveWithAStall(Nanos time) {
    checks_work_ = false;
    stopped_ = true;
    const Nanos evident = 2 * FenceLending::kSlowdown * classes_[0].mean + 2 * FenceLending::kLeastStall;
    do {
      RunFor(evident);
    } while ((s_.running[kA] == 0 || s_.now - silent_from_ < evident) && !testing::Test::HasFailure());
    int needed = 0;
    for (uint32_t i = 1; i <= others_; ++i) needed += classes_[i].burst;
    const size_t held = s_.running[kA];
    const bool left_room = held + static_cast<size_t>(needed) < threads_ + FenceLending::Beside(threads_);
    // Requests that waited before may begin late.
    RunFor(50 * kMs);
    begin_at_once_ = left_room;
    RunFor(time);
    if (left_room) {
      EXPECT_LT(s_.running[kA] + static_cast<size_t>(needed), threads_ + FenceLending::Beside(threads_));
    }
    return left_room;
  }

 private:
  static constexpr uint64_t kAll = 0xff << kA;
  static constexpr Nanos kMeans[] = {kMs * 3 / 10, kMs, kMs * 6};
  enum Kind { kCome, kEnd };
  struct Class {
    Nanos mean{0};
    Nanos every{0};
    int burst = 0;
    size_t running = 0;
    std::deque<TimePoint> came;  // that have not begun
  };
  using Event = std::tuple<TimePoint, uint64_t, Kind, uint8_t>;

  void Schedule(Kind kind, uint8_t i, Nanos after) { events_.push({s_.now + after, ++made_, kind, i}); }

  void RunFor(Nanos time) {
    const TimePoint until = s_.now + time;
    while (std::get<0>(events_.top()) <= until && !testing::Test::HasFailure()) {
      const auto [when, id, kind, i] = events_.top();
      events_.pop();
      s_.now = when;
      if (kind == kCome) {
        Come(i);
      } else {
        --classes_[i].running;
        if (i == 0) silent_from_ = s_.now;
        s_.End(static_cast<uint8_t>(kA + i));
      }
      s_.Run();
      ASSERT_EQ(s_.order->ready(), 0u) << "a thread is left for each that has a permit, and for local ones";
      for (uint8_t each = 0; each <= others_; ++each) Begin(each);
      Check();
    }
  }
  void Come(uint8_t i) {
    Class& c = classes_[i];
    for (int n = 0; n < c.burst; ++n) c.came.push_back(s_.now);
    s_.Append(static_cast<uint8_t>(kA + i), c.burst);
    if (rng_.Below(10) == 0) s_.Append(Fence::kLocal, 1);
    Schedule(kCome, i, i == 0 ? FromSeconds(rng_.Exponential(InSeconds(c.every))) : c.every);
  }
  // Notes which requests have begun, in turn.
  void Begin(uint8_t i) {
    Class& c = classes_[i];
    if (i == 0 && c.running == 0) silent_from_ = s_.now;
    for (; c.running < s_.running[kA + i]; ++c.running) {
      const Nanos waited = s_.now - c.came.front();
      c.came.pop_front();
      if (i > 0) CheckWait(waited);
      if (i > 0 || !stopped_) Schedule(kEnd, i, FromSeconds(InSeconds(c.mean) * (0.5 + rng_.Uniform01())));
    }
    if (i == 0 && stopped_) {  // the requests that were refused
      while (c.came.size() > s_.Stats(kA).waiting) c.came.pop_front();
    }
  }
  void CheckWait(Nanos waited) {
    Nanos longest(0);
    for (const Class& c : classes_) longest = std::max(longest, c.mean * 3 / 2);
    if (checks_work_) {
      ASSERT_LE(waited, longest) << "a lender waits for more than one answer";
    } else if (begin_at_once_) {
      ASSERT_EQ(waited, Nanos(0)) << "a class that stalls has what others need";
    }
  }
  void Check() {
    size_t in_use = 0, waiting = 0;  // of classes that do not stall
    for (uint32_t i = 0; i <= others_; ++i) {
      const FenceClassStats stats = s_.Stats(static_cast<uint8_t>(kA + i));
      in_use += stats.in_use;
      if (i > 0 || !stopped_) waiting += stats.waiting;
      if (checks_work_) {
        ASSERT_EQ(stats.refused, 0u) << "refused although nothing stands";
      }
    }
    ASSERT_LT(in_use, threads_ + FenceLending::Beside(threads_)) << "no thread for local tasks";
    if (waiting > 0) {
      ASSERT_GE(in_use, threads_) << "waits beside an idle permit";
    }
  }

  Rng rng_;
  const uint32_t threads_;
  const uint32_t others_;
  FenceScaffold s_;
  std::vector<Class> classes_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  uint64_t made_ = 0;
  bool checks_work_ = false;
  bool stopped_ = false;
  TimePoint silent_from_;  // the first class has ended no request since, or had none
  bool begin_at_once_ = false;
};

TEST(FenceLending, KeepsItsPromisesUnderRandomLoads) {
  const uint64_t seed = SeedOfRun();
  int left_room = 0;
  for (uint64_t i = 0; i < 80 && !HasFailure(); ++i) {
    SCOPED_TRACE(testing::Message() << "load " << i);
    RandomLoad load(seed + i);
    load.LiveWell(600 * kMs);
    left_room += load.LiveWithAStall(400 * kMs);
  }
  std::cout << left_room << " classes that stalled left room\n";
  EXPECT_GT(left_room, 3) << "the promise was hardly tried";
}

}  // namespace
}  // namespace curtail
