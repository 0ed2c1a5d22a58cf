// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/internal/waiting_tasks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <memory>

#include "curtail/base/rng.h"
#include "curtail/exec/internal/fifo_order.h"

namespace curtail {
namespace {

constexpr Nanos kMs = std::chrono::milliseconds(1);
constexpr QueueOptions kCodel{.shed = ShedMode::kCodel};
constexpr QueueOptions kLifo{.mode = QueueMode::kLifo};

class QueuedTask final : public Task {
 public:
  void Run(const WaitHint&) override {}

  int came_out = 0;
};

// One thread that takes tasks from an order, in time that the test counts.
class QueueScaffold {
 public:
  explicit QueueScaffold(const QueueOptions& options) : order_(MakeFifoOrder(options)) {}

  void Arrive(int count) {
    TaskList list;
    for (int i = 0; i < count; ++i) list.Push(&tasks_.emplace_back());
    list.Stamp(now);
    order_->Append(list);
  }
  Order::Next Take() {
    const Order::Next next = order_->Pop(now);
    EXPECT_EQ(++static_cast<QueuedTask*>(next.task)->came_out, 1) << "O2";
    EXPECT_EQ(next.shed, next.shed && next.task->shed_reason() == ShedReason::kOverdue);
    return next;
  }
  Nanos WaitOf(const Order::Next& next) const { return now - next.task->queued_at(); }
  size_t ready() const { return order_->ready(); }
  void ExpectAllCameOutOnce() const {
    EXPECT_TRUE(std::all_of(tasks_.begin(), tasks_.end(), [](auto& t) { return t.came_out == 1; }));
  }

  TimePoint now = TimePoint() + std::chrono::hours(1);

 private:
  std::unique_ptr<Order> order_;
  std::deque<QueuedTask> tasks_;
};

// Twice as much work as the thread can do, so that the queue stands: 2 tasks each ms.
void Overload(QueueScaffold& s, int ms, int* shed) {
  for (int i = 0; i < ms; ++i) {
    s.Arrive(2);
    while (s.ready() > 0) {
      const bool given_up = s.Take().shed;
      *shed += given_up;
      if (!given_up) break;
    }
    s.now += kMs;
  }
}

TEST(WaitingTasks, ABurstIsWorkedOffWithoutASheddedTask) {
  QueueScaffold s(kCodel);
  for (int burst = 0; burst < 5; ++burst) {
    s.Arrive(90);
    for (int i = 0; i < 90; ++i) {
      EXPECT_FALSE(s.Take().shed);
      s.now += kMs;
    }
    s.now += 30 * kMs;
  }
}

TEST(WaitingTasks, AQueueThatStandsShedsWhatIsOverdue) {
  QueueScaffold s(kCodel);
  int shed = 0;
  Overload(s, 100, &shed);
  EXPECT_EQ(shed, 0) << "the first interval began with a wait of zero";
  Overload(s, 1000, &shed);
  EXPECT_GT(shed, 900);
  EXPECT_LE(s.ready(), 30u) << "those of the last 10 ms";
  const size_t left = s.ready();
  for (size_t i = 0; i < left; ++i) s.Take();
  s.now += 200 * kMs;
  s.Arrive(1);
  s.Take();
  s.Arrive(1);
  s.now += 50 * kMs;
  EXPECT_FALSE(s.Take().shed) << "it stands no more: it was emptied";
  s.ExpectAllCameOutOnce();
}

TEST(WaitingTasks, TheNewestGoesFirstWhileTheQueueStands) {
  QueueScaffold s(kLifo);
  int shed = 0;
  s.Arrive(2);
  s.now += kMs;
  s.Arrive(1);
  EXPECT_EQ(s.WaitOf(s.Take()), kMs) << "the oldest";
  Overload(s, 210, &shed);
  s.Arrive(1);
  EXPECT_EQ(s.WaitOf(s.Take()), Nanos::zero()) << "the newest";
  EXPECT_EQ(shed, 0);
  while (s.ready() > 0) s.Take();
  s.now += 200 * kMs;
  s.Arrive(1);
  s.Take();
  s.Arrive(1);
  s.now += kMs;
  s.Arrive(1);
  EXPECT_EQ(s.WaitOf(s.Take()), kMs) << "the oldest again";
}

TEST(WaitingTasks, ChecksItsOptions) {
  EXPECT_TRUE(QueueOptions().Check().ok());
  EXPECT_EQ((QueueOptions{.target = Nanos(0)}).Check().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ((QueueOptions{.target = 51 * kMs}).Check().message(),
            "the interval of a queue's wait, 100 ms, must be at least twice its target, 51 ms");
  EXPECT_FALSE(QueueOptions().any());
  EXPECT_TRUE(kCodel.any() && kLifo.any());
  EXPECT_EQ(ParseShedMode("codel"), ShedMode::kCodel);
  EXPECT_EQ(ParseQueueMode("lifo"), QueueMode::kLifo);
  EXPECT_FALSE(ParseShedMode("Codel") || ParseQueueMode(""));
}

// The rules C1 to C3 by a second account of them, over random arrivals and times of service: what is shed, and which
// task comes out.
void LiveByTheRules(uint64_t seed) {
  Rng rng(seed);
  const Nanos target = kMs * static_cast<int64_t>(1 + rng.Below(10));
  const Nanos interval = target * static_cast<int64_t>(2 + rng.Below(30));
  const bool sheds = rng.Below(3) > 0, lifo = !sheds || rng.Below(2) == 0;
  QueueScaffold s({.shed = sheds ? ShedMode::kCodel : ShedMode::kOff,
                   .mode = lifo ? QueueMode::kLifo : QueueMode::kFifo,
                   .target = target,
                   .interval = interval});
  std::deque<TimePoint> waiting;
  TimePoint began;
  Nanos least{0};
  bool stands = false;
  uint64_t load = 1;
  for (int i = 0; i < 3000 && !testing::Test::HasFailure(); ++i) {
    if (rng.Below(200) == 0) load = rng.Below(4);
    const int come = static_cast<int>(rng.Below(1 + load));
    s.Arrive(come);
    waiting.insert(waiting.end(), static_cast<size_t>(come), s.now);
    for (bool shed = true; shed && !waiting.empty();) {
      const Nanos oldest = s.now - waiting.front();
      if (s.now >= began + interval) stands = least > target, began = s.now, least = oldest;
      least = std::min(least, oldest);
      const Order::Next next = s.Take();
      shed = next.shed;
      ASSERT_EQ(shed, sheds && stands && oldest > 2 * target) << "C3";
      const bool newest = !shed && lifo && stands;
      ASSERT_EQ(next.task->queued_at(), newest ? waiting.back() : waiting.front());
      newest ? waiting.pop_back() : waiting.pop_front();
      if (!shed && waiting.empty()) least = Nanos::zero();
    }
    s.now += Nanos(static_cast<int64_t>(rng.Below(static_cast<uint64_t>(target.count()))));
  }
  while (s.ready() > 0) s.Take();
  s.ExpectAllCameOutOnce();
}

TEST(WaitingTasks, KeepTheRulesInARandomLife) {
  const char* const given = std::getenv("CURTAIL_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10)
                                         : static_cast<uint64_t>(Now().time_since_epoch().count());
  std::cout << "seed " << seed << "\n";
  for (uint64_t i = 0; i < 60; ++i) {
    SCOPED_TRACE(testing::Message() << "life " << i);
    LiveByTheRules(seed + i);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace curtail
