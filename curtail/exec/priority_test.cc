// SPDX-License-Identifier: Apache-2.0
//
// Priorities, and the rules P1 to P6 of priority_limit.h, in time that the test counts.
#include "curtail/exec/priority.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>

#include "curtail/base/rng.h"
#include "curtail/exec/internal/fifo_order.h"
#include "curtail/exec/internal/priority_gate.h"

namespace curtail {
namespace {

constexpr Nanos kMilli = std::chrono::milliseconds(1);

TEST(Priority, HasOneForm) {
  EXPECT_EQ(ParsePriority("3.17"), (Priority{3, 17}));
  EXPECT_EQ(ParsePriority("0.0"), (Priority{0, 0}));
  EXPECT_EQ(ParsePriority("127.127"), (Priority{127, 127}));
  EXPECT_EQ(ToString({3, 17}), "3.17");
  for (const char* text : {"", ".", "3", "3.", ".3", "3.17.1", "128.0", "0.128", "03.1", "1.00", "-1.0",
                           "+1.0", " 1.0", "1.0 ", "1,0", "0x1.0", "1000.1", "a.b"}) {
    EXPECT_FALSE(ParsePriority(text)) << text;
  }
  EXPECT_LT((Priority{3, 127}), (Priority{4, 0})) << "business counts first";
}

class PriorityTask final : public Task {
 public:
  explicit PriorityTask(Priority priority) : priority_(priority) {}
  void Run(const WaitHint&) override {}
  Priority priority() const override { return priority_; }

  int came_out = 0;

 private:
  const Priority priority_;
};

// A server of one thread, which takes a millisecond for each request that it does not refuse.
class PriorityScaffold {
 public:
  explicit PriorityScaffold(const QueueOptions& queue = {}, const PriorityOptions& options = {.on = true})
      : limit(options), order_(MakePriorityGate(&limit, MakeFifoOrder(queue))) {}

  void Arrive(Priority priority) {
    PriorityTask& task = tasks_.emplace_back(priority);
    TaskList list;
    list.Push(&task);
    list.Stamp(now);
    const size_t ready = order_->ready();
    order_->Append(list);
    EXPECT_EQ(order_->ready(), ready + 1);
    EXPECT_EQ(order_->size(), order_->ready());
  }
  void Serve() {
    for (bool served = false; order_->ready() > 0 && !served;) {
      const Order::Next next = order_->Pop(now);
      auto& task = *static_cast<PriorityTask*>(next.task);
      EXPECT_EQ(++task.came_out, 1) << "O2";
      served = !next.shed;
      ++counts[task.priority().business][served];
      if (served) last_wait = now - task.queued_at();
    }
    now += kMilli;
  }
  void Finish() {
    while (order_->ready() > 0) Serve();
    EXPECT_TRUE(std::all_of(tasks_.begin(), tasks_.end(), [](auto& t) { return t.came_out == 1; }));
  }

  PriorityLimit limit;
  TimePoint now = TimePoint() + std::chrono::hours(1);
  size_t counts[128][2] = {};  // of each business: refused, served
  Nanos last_wait{0};          // of what was served

 private:
  std::unique_ptr<Order> order_;
  std::deque<PriorityTask> tasks_;
};

Priority OfUser(uint8_t business, Rng& rng) { return {business, static_cast<uint8_t>(rng.Below(128))}; }

// Half of the load is too much: what is important is served, and of the rest as many users as there is room for.
void Overload(const QueueOptions& queue, uint64_t seed) {
  Rng rng(seed);
  PriorityScaffold s(queue);
  for (int i = 0; i < 30'000; ++i) {
    for (int k = 0; k < 2; ++k) s.Arrive(OfUser(rng.Below(10) == 0 ? 3 : 64, rng));
    s.Serve();
    if (i == 10'000) std::fill(&s.counts[0][0], &s.counts[0][0] + 256, size_t{0});
  }
  EXPECT_EQ(s.limit.limit().business, 64);
  const double important =
      static_cast<double>(s.counts[3][1]) / static_cast<double>(s.counts[3][0] + s.counts[3][1]);
  EXPECT_GT(important, queue.any() ? 0.8 : 0.9999) << "only an overdue one was refused";
  EXPECT_GT(s.counts[64][1], 12'000u);
  EXPECT_GT(s.counts[64][0], 14'000u);
  for (int i = 0; i < 200'000 && s.limit.limit() != Priority{127, 127}; ++i) {
    if (i % 2 == 0) s.Arrive(OfUser(64, rng));
    s.Serve();
  }
  EXPECT_EQ(s.limit.limit(), (Priority{127, 127})) << "all are admitted again";
  s.Finish();
}

uint64_t PrintedSeed() {
  const char* const given = std::getenv("CURTAIL_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10)
                                         : static_cast<uint64_t>(Now().time_since_epoch().count());
  std::cout << "seed " << seed << "\n";
  return seed;
}

TEST(PriorityLimit, ServesTheImportantAndAsManyOfTheRestAsItCan) { Overload({}, PrintedSeed()); }
TEST(PriorityLimit, ActsBeforeAQueueThatSheds) { Overload({.shed = ShedMode::kCodel}, PrintedSeed()); }

// P4, P5: five times what it can do. It finds its capacity at once, and wastes little of it.
TEST(PriorityLimit, FindsWhatTheThreadsCanDo) {
  const PriorityOptions options = {.on = true, .target = 20 * kMilli, .window = 50 * kMilli};
  Rng rng(PrintedSeed());
  PriorityScaffold s({}, options);
  size_t late = 0;
  for (int i = 0; i < 10'000; ++i) {
    if (i == 1000) std::fill(&s.counts[0][0], &s.counts[0][0] + 256, size_t{0});
    for (int k = 0; k < 5; ++k) s.Arrive(OfUser(64, rng));
    s.Serve();
    late += i >= 1000 && s.last_wait > 100 * kMilli;
  }
  EXPECT_GT(s.counts[64][1], 8500u) << "of 9000 that there was time for";
  EXPECT_LT(late, 90u);
  s.Finish();
}

// P4: its threads stand still for a while, at a load that they can bear.
TEST(PriorityLimit, RefusesFewAfterAStall) {
  const PriorityOptions options = {.on = true, .target = 20 * kMilli, .window = 50 * kMilli};
  Rng rng(PrintedSeed());
  PriorityScaffold s({}, options);
  for (int i = 0; i < 10'000; ++i) {
    if (i % 10 < 7) s.Arrive(OfUser(64, rng));
    if (i >= 5000 && i < 5100) {
      s.now += kMilli;
    } else {
      s.Serve();
    }
  }
  s.Finish();
  EXPECT_LT(s.counts[64][0], 70u) << "no more than came in the stall";
}

TEST(PriorityLimit, RefusesNothingWithoutOverload) {
  Rng rng(1);
  PriorityScaffold s;
  for (int i = 0; i < 5000; ++i) {
    if (i % 4 != 0) s.Arrive({static_cast<uint8_t>(rng.Below(128)), static_cast<uint8_t>(rng.Below(128))});
    s.Serve();
  }
  EXPECT_EQ(s.limit.limit(), (Priority{127, 127}));
  s.Finish();
  for (const auto& count : s.counts) EXPECT_EQ(count[0], 0u);
}

// P5: where all are alike there is nothing to choose. A queue that sheds is for that.
TEST(PriorityLimit, NeverRefusesTheMostImportant) {
  PriorityScaffold s;
  for (int i = 0; i < 5000; ++i) {
    s.Arrive({}), s.Arrive({});
    s.Serve();
  }
  EXPECT_EQ(s.limit.limit(), Priority());
  s.Finish();
  EXPECT_EQ(s.counts[64][0], 0u);
}

// A limit that admits nothing but the most important, once a window of both kinds was too much.
class StrictLimit {
 public:
  StrictLimit() {
    for (int i = 0; i < 10; ++i) {
      limit.Admit(kFirst, now, 0), limit.Admit(kLast, now, 0);
      limit.Taken(std::chrono::seconds(1), false);
    }
    now += std::chrono::seconds(2);
    limit.Admit(kFirst, now, 0);
    EXPECT_EQ(limit.limit(), kFirst);
  }

  static constexpr Priority kFirst{0, 0}, kLast{100, 0};
  PriorityLimit limit{{.on = true}};
  TimePoint now = TimePoint() + std::chrono::hours(1);
};

// Refusals and tasks take turns while there are both, each in the order in which they came.
TEST(PriorityGate, RefusalsAndTasksTakeTurns) {
  StrictLimit strict;
  const auto order = MakePriorityGate(&strict.limit, MakeFifoOrder({}));
  std::deque<PriorityTask> tasks;
  const auto append = [&](std::string_view kinds) {
    TaskList list;
    for (const char kind : kinds)
      list.Push(&tasks.emplace_back(kind == 't' ? StrictLimit::kFirst : StrictLimit::kLast));
    list.Stamp(strict.now);
    order->Append(list);
  };
  // "r2 ": the third task of all, refused.
  std::string came;
  const auto pop = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const Order::Next next = order->Pop(strict.now);
      EXPECT_EQ(next.shed, next.task->priority() == StrictLimit::kLast);
      size_t number = 0;
      while (&tasks[number] != next.task) ++number;
      came += (next.shed ? "r" : "t") + std::to_string(number) + " ";
    }
  };
  append("rrtt"), pop(2);
  append("rt");
  EXPECT_EQ(order->ready(), 4u);
  pop(4);
  append("t"), pop(1);
  append("tr"), pop(2);
  EXPECT_EQ(came, "r0 t2 r1 t3 r4 t5 t6 r8 t7 ");
  EXPECT_EQ(order->ready(), 0u);
  append("trtr");
  TaskList left_over;
  order->TakeAll(&left_over);
  EXPECT_EQ(order->ready(), 0u);
  for (const size_t number : {10, 12, 9, 11}) EXPECT_EQ(left_over.Pop(), &tasks[number]);
}

// P4: capacity is a rate, and a window is as long as its requests stay away.
TEST(PriorityLimit, AdmitsAllAfterAnIdleMonth) {
  PriorityLimit limit({.on = true});
  TimePoint now = TimePoint() + std::chrono::hours(1);
  for (int i = 0; i < 5000; ++i) {
    limit.Admit({}, now += kMilli / 100, 0);
    limit.Taken(Nanos::zero(), false);
  }
  EXPECT_TRUE(limit.Admit({127, 127}, now + std::chrono::hours(24 * 30), 0));
  EXPECT_EQ(limit.limit(), (Priority{127, 127}));
}

// P1, at random loads: whatever is refused, nothing less important would have been admitted.
TEST(PriorityLimit, RefusesNoRequestAheadOfALessImportantOne) {
  Rng rng(PrintedSeed());
  PriorityLimit limit;
  TimePoint now = TimePoint() + std::chrono::hours(1);
  for (int i = 0; i < 50'000; ++i) {
    now += Nanos(static_cast<int64_t>(rng.Below(2'000'000)));
    const Priority priority{static_cast<uint8_t>(rng.Below(128)), static_cast<uint8_t>(rng.Below(128))};
    const bool admitted = limit.Admit(priority, now, rng.Below(100));
    ASSERT_EQ(admitted, priority <= limit.limit());
    if (admitted) limit.Taken(rng.Below(40) * kMilli, rng.Below(5000) == 0);
  }
}

}  // namespace
}  // namespace curtail
