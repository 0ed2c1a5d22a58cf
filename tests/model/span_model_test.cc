// SPDX-License-Identifier: Apache-2.0
//
// The rings of spans under all schedules: each span comes out once and in order or was refused by a full ring, and none
// stays behind while the exporter sleeps.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include "curtail/base/mutex.h"
#include "curtail/observe/trace/span_ring.h"
#include "tests/model/scheduler.h"

namespace curtail::observe {
namespace {

using model::Check;
using model::Explore;
using model::Outcome;

constexpr model::Options kOptions = {.preemptions = 3, .random_schedules = 5000, .stale_reads = 1};
constexpr size_t kRingSize = 2;  // half full with one item: each push rings
constexpr int kItems = 4;

using Ring = SpanRing<int, kRingSize>;

// The exporter's thread and those of the page /traces are consumers, one at a time (rule S1).
class Exporter {
 public:
  // Producer of ring `ring`.
  void Push(size_t ring, int* item) {
    const Ring::Pushed pushed = rings_[ring].Push(item);
    if (pushed == Ring::Pushed::kFull) ++refused_;
    if (pushed != Ring::Pushed::kFine && bell_.Ring()) woken_ = true;
  }
  void Drain() {
    MutexLock lock(mu_);
    bell_.Hear();
    for (size_t i = 0; i < rings_.size(); ++i) {
      while (int* const item = rings_[i].Pop()) {
        Check(*item > last_[i], "a span came out twice, or before an older one");
        last_[i] = *item;
        ++taken_;
      }
    }
  }
  // Sleeps until it is woken, and drains, until all `items` are accounted for.
  void Run(int items) {
    while (taken_ + refused_ < items) {
      model::Block("wait for the bell", this, [this] { return woken_; });
      woken_ = false;
      Drain();
    }
    Check(taken_ + refused_ == items, "a span was lost, or made up");
  }

 private:
  std::array<Ring, 2> rings_;
  SpanBell<> bell_;
  bool woken_ = false;  // the eventfd: the scheduler sees it at each wait
  int refused_ = 0;
  Mutex mu_;
  std::array<int, 2> last_ CURTAIL_GUARDED_BY(mu_){};
  int taken_ = 0;
};

std::array<int, kItems> Items() { return {1, 2, 3, 4}; }

TEST(SpanModel, ItemsComeOutOnceInOrderAndNoneStaysBehind) {
  const Outcome outcome = Explore(kOptions, [] {
    std::array<int, kItems> items = Items();
    Exporter exporter;
    std::thread producer([&] {
      for (int& item : items) exporter.Push(0, &item);
    });
    exporter.Run(kItems);
    producer.join();
  });
  EXPECT_TRUE(outcome.ok) << outcome.report;
}

TEST(SpanModel, TwoProducersShareABell) {
  const Outcome outcome = Explore({.preemptions = 2, .random_schedules = 5000, .stale_reads = 1}, [] {
    std::array<int, kItems> items = Items();
    Exporter exporter;
    std::thread one([&] { exporter.Push(0, &items[0]), exporter.Push(0, &items[1]); });
    std::thread other([&] { exporter.Push(1, &items[2]), exporter.Push(1, &items[3]); });
    exporter.Run(kItems);
    one.join(), other.join();
  });
  EXPECT_TRUE(outcome.ok) << outcome.report;
}

// Property: a reader of the recent spans may empty the rings instead, and the exporter is still woken for the rest.
TEST(SpanModel, AReaderIsAConsumerToo) {
  const Outcome outcome = Explore({.preemptions = 2, .random_schedules = 5000, .stale_reads = 1}, [] {
    std::array<int, kItems> items = Items();
    Exporter exporter;
    std::thread producer([&] {
      for (int i = 0; i < 3; ++i) exporter.Push(0, &items[static_cast<size_t>(i)]);
    });
    std::thread reader([&] { exporter.Drain(); });
    // All may have been read; whoever comes last then accounts for them.
    producer.join(), reader.join();
    exporter.Drain();
    exporter.Run(3);
  });
  EXPECT_TRUE(outcome.ok) << outcome.report;
}

}  // namespace
}  // namespace curtail::observe
