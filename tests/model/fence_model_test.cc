// SPDX-License-Identifier: Apache-2.0
//
// The permits of a fence under all schedules: no request waits beside a permit that it may have, no class has more
// than its part, and each request comes out once. Requests hold no thread, as under fiber models; the rules are those
// of fenced_order.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <thread>
#include <vector>

#include "curtail/base/mutex.h"
#include "curtail/fence/fenced_order.h"
#include "curtail/fence/lending.h"
#include "curtail/fence/shares.h"
#include "tests/model/fence_end.h"
#include "tests/model/scheduler.h"

namespace curtail {
namespace {

using model::Check;
using model::Outcome;

constexpr uint8_t kUsers = Fence::kFirst, kPosts = Fence::kFirst + 1, kMedia = Fence::kFirst + 2;
constexpr uint64_t Classes(std::initializer_list<uint8_t> classes) {
  uint64_t bits = 0;
  for (const uint8_t path_class : classes) bits |= uint64_t{1} << path_class;
  return bits;
}

class Request final : public Task {
 public:
  explicit Request(uint8_t path_class) : path_class(path_class) { kind_.set_path_class(path_class); }
  void Run(const WaitHint&) override {}
  TaskKind* kind() override { return &kind_; }
  bool abandoned() const override { return gone; }

  const uint8_t path_class;
  bool gone = false;   // its caller has left
  bool out = false;    // of the order
  bool begun = false;  // with a permit, or without need of one

 private:
  TaskKind kind_;
};

// Does with an order and its mutex as an executor does, without the threads: a request that may begin begins.
class Pool {
 public:
  Pool(const FenceOptions& options, uint32_t permits, uint64_t present)
      : fence_(options, TimePoint(), time_), lends_(options.mode == FenceMode::kOn) {
    fence_.SetPresent(present);
    order_ = MakeFencedOrder(&fence_);
    SetPermits(permits);
  }

  Fence& fence() { return fence_; }
  void Submit(std::initializer_list<Request*> requests) {
    TaskList list;
    for (Request* request : requests) list.Push(request);
    MutexLock lock(mu_);
    order_->Append(list);
    Take();
  }
  void SetPermits(uint32_t permits) {
    MutexLock lock(mu_);
    permits_ = permits;
    order_->SetThreads(lends_ ? permits + FenceLending::Beside(permits) : permits + 1);
    TaskList none;
    order_->Append(none);
    ReadLimits();
    Take();
  }
  // The next Append() of any thread brings the limit into force.
  void SetLimit(uint8_t path_class, uint32_t limit) {
    limits_change_ = true;
    fence_.SetLimit(path_class, limit);
    Submit({});
  }
  void End(const Request& request) {
    --running_[request.path_class];
    if (EndRequest(&fence_, request.path_class)) Submit({});
  }
  // One that waits beside a permit waits for ever: the schedule is a deadlock.
  void AwaitBegin(const Request& request) {
    model::Block("wait for a permit", nullptr, [&] { return request.begun; });
  }
  void AwaitOut(const Request& request) {
    model::Block("wait in a queue", nullptr, [&] { return request.out; });
  }
  ~Pool() {
    TaskList left;
    order_->TakeAll(&left);
    Check(left.empty(), "a request was left over");
  }

 private:
  void Take() CURTAIL_REQUIRES(mu_) {
    if (limits_change_) ReadLimits();
    while (order_->ready() > 0) {
      const Order::Next next = order_->Pop(TimePoint());
      auto* const request = static_cast<Request*>(next.task);
      Check(request != nullptr && !request->out, "a request came out twice, or none did");
      request->out = true;
      request->begun = !next.shed;
      if (next.shed || request->path_class == Fence::kLocal) continue;
      ++running_[request->path_class];
      CheckBounds(request->path_class);
    }
  }
  // F3, F4, L1, L3, L8: requests that are about to end have left running_, so it never counts more than the fence.
  void CheckBounds(uint8_t begun) CURTAIL_REQUIRES(mu_) {
    uint32_t all = 0;
    for (size_t i = 1; i < kClasses; ++i) all += running_[i];
    Check(running_[begun] <= limits_[begun], "more requests than permits");
    Check(!lends_ || all < permits_ + FenceLending::Beside(permits_), "more requests than permits");
  }
  void ReadLimits() CURTAIL_REQUIRES(mu_) {
    for (size_t i = 1; i < kClasses; ++i) limits_[i] = fence_.Sample(static_cast<uint8_t>(i)).limit;
  }

  static constexpr size_t kClasses = kMedia + 1;
  const ManualTime time_;
  Fence fence_;
  const bool lends_;
  // Plain, so that it adds no scheduling points: requests that have begun and are not about to end.
  uint32_t running_[kClasses] = {};
  bool limits_change_ = false;

  Mutex mu_;
  std::unique_ptr<Order> order_ CURTAIL_GUARDED_BY(mu_);
  uint32_t permits_ CURTAIL_GUARDED_BY(mu_) = 0;
  uint32_t limits_[kClasses] CURTAIL_GUARDED_BY(mu_) = {};
};

void Expect(const std::function<void()>& program, int preemptions = 2) {
  const Outcome outcome =
      model::Explore({.preemptions = preemptions, .random_schedules = 2000, .stale_reads = 1}, program);
  EXPECT_TRUE(outcome.ok) << outcome.report;
}

class FenceModel : public testing::TestWithParam<FenceMode> {
 protected:
  FenceOptions options(uint32_t max_waiting = 8) const {
    return {.mode = GetParam(), .max_waiting = max_waiting};
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, FenceModel, testing::Values(FenceMode::kStrict, FenceMode::kOn),
                         [](const auto& info) { return std::string(FenceModeName(info.param)); });

// F5: the request has the permit of the one that ends, whichever comes first.
TEST_P(FenceModel, AnEndAndASubmitSeeEachOther) {
  Expect([&] {
    Pool pool(options(), 2, Classes({kUsers}));
    Request stalled(kUsers), first(kUsers), second(kUsers);
    pool.Submit({&stalled, &first});
    std::thread ender([&] { pool.End(first); });
    pool.Submit({&second});
    pool.AwaitBegin(second);
    ender.join();
  });
}

TEST_P(FenceModel, TwoEndsLetTwoBegin) {
  Expect([&] {
    Pool pool(options(), 2, Classes({kUsers}));
    Request r[] = {Request(kUsers), Request(kUsers), Request(kUsers), Request(kUsers)};
    pool.Submit({&r[0], &r[1]});
    std::thread ender([&] { pool.End(r[0]); });
    std::thread other([&] { pool.End(r[1]); });
    pool.Submit({&r[2], &r[3]});
    pool.AwaitBegin(r[2]);
    pool.AwaitBegin(r[3]);
    ender.join(), other.join();
  });
}

// L3: what one class does not use another has as soon as it is free.
TEST(FenceModel, AnEndOfAnotherClassLendsItsPermit) {
  Expect([] {
    Pool pool({.mode = FenceMode::kOn}, 4, Classes({kUsers, kPosts}));
    Request users[] = {Request(kUsers), Request(kUsers), Request(kUsers)};
    Request posts[] = {Request(kPosts), Request(kPosts)};
    pool.Submit({&users[0], &users[1], &posts[0], &posts[1]});
    std::thread ender([&] { pool.End(posts[1]); });
    pool.Submit({&users[2]});
    pool.AwaitBegin(users[2]);
    ender.join();
  });
}

// L3, L4: a lender begins at once, though the borrowers have stalled, and its next request has the next permit. The
// borrowers have no more than all.
TEST(FenceModel, ALenderHasItsPermitsBack) {
  Expect([] {
    Pool pool({.mode = FenceMode::kOn}, 3, Classes({kUsers, kPosts}));
    Request users[] = {Request(kUsers), Request(kUsers), Request(kUsers), Request(kUsers)};
    Request posts[] = {Request(kPosts), Request(kPosts)};
    pool.Submit({&users[0], &users[1], &users[2]});
    Check(users[2].begun, "an idle permit is not lent");
    std::thread ender([&] { pool.End(users[0]), pool.End(users[1]), pool.End(users[2]); });
    std::thread owner([&] {
      pool.Submit({&posts[0]});
      Check(posts[0].begun, "a lender waits for a borrower");
      pool.Submit({&posts[1]});
    });
    pool.Submit({&users[3]});
    pool.AwaitBegin(users[3]);
    pool.AwaitBegin(posts[1]);
    ender.join(), owner.join();
  });
}

// L4: a permit that comes back is the lender's, though a borrower has waited for longer. One thread is left.
TEST(FenceModel, AnEndOfABorrowerIsForTheLender) {
  Expect([] {
    Pool pool({.mode = FenceMode::kOn}, 4, Classes({kUsers, kPosts}));
    Request users[] = {Request(kUsers), Request(kUsers), Request(kUsers), Request(kUsers), Request(kUsers)};
    Request posts[] = {Request(kPosts), Request(kPosts), Request(kPosts), Request(kPosts)};
    pool.Submit({&posts[0], &posts[1]});  // it needs two
    pool.End(posts[0]), pool.End(posts[1]);
    pool.Submit({&users[0], &users[1], &users[2], &users[3]});
    pool.Submit({&users[4]});
    std::thread owner([&] { pool.Submit({&posts[2], &posts[3]}); });
    pool.AwaitBegin(posts[2]);
    owner.join();
    pool.End(users[0]);
    Check(posts[3].begun && !users[4].begun, "a lender waits for a borrower");
    pool.End(users[1]);
    Check(!users[4].begun, "more requests than permits");
    pool.End(users[2]);
    Check(users[4].begun, "an idle permit is not lent");
  });
}

// F8: limits and threads shrink and grow while requests end and come.
TEST_P(FenceModel, LimitsChangeMeanwhile) {
  Expect(
      [&] {
        Pool pool(options(), 3, Classes({kUsers, kPosts}));
        Request r[] = {Request(kUsers), Request(kUsers), Request(kUsers), Request(kPosts)};
        pool.SetLimit(kUsers, 1);
        pool.Submit({&r[0], &r[1]});
        Check(!r[1].begun, "a limit does not hold");
        std::thread admin([&] {
          pool.SetLimit(kUsers, 2);
          pool.SetLimit(kPosts, 1);
        });
        std::thread ender([&] { pool.End(r[0]); });
        pool.Submit({&r[2], &r[3]});
        for (const Request& request : r) pool.AwaitBegin(request);
        admin.join(), ender.join();
      },
      1);
}

TEST_P(FenceModel, ThreadsChangeMeanwhile) {
  Expect([&] {
    Pool pool(options(), 3, Classes({kUsers}));
    Request r[] = {Request(kUsers), Request(kUsers), Request(kUsers), Request(kUsers)};
    pool.Submit({&r[0], &r[1], &r[2]});
    std::thread admin([&] { pool.SetPermits(1), pool.SetPermits(2); });
    std::thread ender([&] { pool.End(r[0]), pool.End(r[1]); });
    pool.Submit({&r[3]});
    pool.AwaitBegin(r[3]);
    admin.join(), ender.join();
  });
}

// F6, F9: a full queue refuses, and an abandoned request leaves it; each comes out once.
TEST_P(FenceModel, RefusedAndAbandonedOnesComeOutOnce) {
  Expect([&] {
    Pool pool(options(1), 1, Classes({kUsers}));
    Request first(kUsers), held(kUsers), late(kUsers), last(kUsers), local(Fence::kLocal);
    pool.Submit({&first});
    std::thread ender([&] { pool.End(first); });
    std::thread caller([&] {
      held.gone = true;
      pool.Submit({&local});
    });
    pool.Submit({&held});
    pool.Submit({&late, &last});
    pool.AwaitOut(held);
    if (held.begun) pool.End(held);
    pool.AwaitOut(late);
    if (late.begun) pool.End(late);
    pool.AwaitOut(last);
    ender.join(), caller.join();
    Check(local.begun, "a local request waits");
  });
}

// F7, without threads: the order in which requests come out.
class Turns {
 public:
  Turns(const FenceOptions& options, uint32_t threads, uint64_t present) : fence(options) {
    fence.SetPresent(present);
    order = MakeFencedOrder(&fence);
    order->SetThreads(threads);
  }
  ~Turns() {
    TaskList left;
    order->TakeAll(&left);
  }
  void Submit(uint8_t path_class, int count) {
    TaskList list;
    for (int i = 0; i < count; ++i) {
      list.Push(requests.emplace_back(std::make_unique<Request>(path_class)).get());
    }
    order->Append(list);
  }
  uint8_t Pop() { return static_cast<Request*>(order->Pop(TimePoint()).task)->path_class; }
  void End(uint8_t path_class) {
    TaskList none;
    if (EndRequest(&fence, path_class)) order->Append(none);
  }

  Fence fence;
  std::unique_ptr<Order> order;
  std::vector<std::unique_ptr<Request>> requests;
};

TEST_P(FenceModel, NoClassStarves) {
  Expect([&] {
    Turns turns(options(), 9, Classes({kUsers, kPosts}));
    turns.Submit(kUsers, 3);
    turns.Submit(kPosts, 3);
    turns.Submit(Fence::kLocal, 3 * kLocalInARow);
    int since_users = 0, since_posts = 0;
    for (int i = 0; i < 3 * kLocalInARow; ++i) {
      const uint8_t path_class = turns.Pop();
      since_users = path_class == kUsers ? 0 : since_users + 1;
      since_posts = path_class == kPosts ? 0 : since_posts + 1;
      Check(std::max(since_users, since_posts) <= 2 * kLocalInARow + 1, "a class starves");
    }
  });
}

TEST(FenceModel, ClassesBeyondTheirReservesTakeTurns) {
  Expect([] {
    Turns turns({.mode = FenceMode::kOn}, 6 + FenceLending::Beside(6), Classes({kUsers, kPosts, kMedia}));
    turns.Submit(kUsers, 2);
    turns.Submit(kPosts, 2);
    turns.Submit(kMedia, 2);
    turns.Submit(kUsers, 3);
    turns.Submit(kPosts, 3);
    while (turns.order->ready() > 0) turns.Pop();
    bool users = false, posts = false;
    for (int i = 0; i < 2; ++i) {
      turns.End(kMedia);
      while (turns.order->ready() > 0) (turns.Pop() == kUsers ? users : posts) = true;
    }
    Check(users && posts, "a class starves");
  });
}

}  // namespace
}  // namespace curtail
