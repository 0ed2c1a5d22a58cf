// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/call/lane.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "curtail/base/testing.h"
#include "curtail/rpc/transport/socket.h"

namespace curtail {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Completes a waiter for every byte that arrives on a pipe: the byte says which.
class PipeHandler final : public PollHandler {
 public:
  PipeHandler(int fd, std::vector<std::atomic<Waiter*>>* waiters) : fd_(fd), waiters_(waiters) {}
  void OnEvents(uint32_t events, TaskList*) override {
    if (!(events & EPOLLIN)) return;
    unsigned char bytes[64];
    ssize_t n;
    while ((n = read(fd_.get(), bytes, sizeof bytes)) > 0) {
      for (ssize_t i = 0; i < n; ++i) (*waiters_)[bytes[i]].exchange(nullptr)->Notify(Waiter::kDone);
    }
  }

 private:
  internal::UniqueFd fd_;
  std::vector<std::atomic<Waiter*>>* const waiters_;
};

class LaneTest : public testing::Test {
 protected:
  LaneTest() : waiters_(256) {
    int fds[2];
    EXPECT_EQ(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
    write_end_.Reset(fds[1]);
    EXPECT_TRUE(lane_.poller()->Add(fds[0], std::make_shared<PipeHandler>(fds[0], &waiters_)).ok());
  }
  void Send(unsigned char byte) { ASSERT_EQ(write(write_end_.get(), &byte, 1), 1); }

  std::vector<std::atomic<Waiter*>> waiters_;
  internal::UniqueFd write_end_;
  Lane lane_;
};

TEST_F(LaneTest, AWaiterLeadsAlone) {
  Waiter waiter(&lane_);
  waiters_[0] = &waiter;
  Send(0);
  lane_.Wait(waiter, Deadline::In(kMaxTestWait), nullptr);
  EXPECT_TRUE(waiter.Has(Waiter::kDone));
}

TEST_F(LaneTest, ReturnsAtItsDeadlineAndWhenInterrupted) {
  Waiter waiter(&lane_);
  lane_.Wait(waiter, Deadline::In(milliseconds(1)), nullptr);
  EXPECT_FALSE(waiter.Has(Waiter::kDone | Waiter::kInterrupted));
  std::thread other([&] { waiter.Notify(Waiter::kInterrupted); });
  lane_.Wait(waiter, Deadline::In(kMaxTestWait), nullptr);
  other.join();
  EXPECT_TRUE(waiter.Has(Waiter::kInterrupted));
}

TEST_F(LaneTest, PollingWaitersEndToo) {
  SpinBudget budget(1);
  Waiter waiter(&lane_);
  waiters_[0] = &waiter;
  std::thread other([&] { Send(0); });
  lane_.Wait(waiter, Deadline::In(kMaxTestWait), &budget);
  other.join();
  EXPECT_TRUE(waiter.Has(Waiter::kDone));
}

// Property: whichever thread leads, each waiter returns once its own byte has come, no matter who reads it,
// and a leader that leaves never leaves the lane without one while others wait.
void ManyWaiters(Lane& lane, std::vector<std::atomic<Waiter*>>& waiters, int threads, int rounds,
                 const std::function<void(unsigned char)>& send) {
  std::atomic<int> done{0};
  std::vector<std::thread> pool;
  for (int t = 0; t < threads; ++t) {
    pool.emplace_back([&, t] {
      for (int i = 0; i < rounds; ++i) {
        Waiter waiter(&lane);
        waiters[t] = &waiter;
        send(static_cast<unsigned char>(t));
        // Every third wait is cut short first, so that leaders and followers come and go.
        if (i % 3 == 0) lane.Wait(waiter, Deadline::In(Nanos(1000)), nullptr);
        lane.Wait(waiter, Deadline::In(kMaxTestWait), nullptr);
        if (!waiter.Has(Waiter::kDone)) return;
        ++done;
      }
    });
  }
  for (std::thread& thread : pool) thread.join();
  EXPECT_EQ(done, threads * rounds);
}

TEST_F(LaneTest, LeadershipIsHandedOn) {
  ManyWaiters(lane_, waiters_, 1, 50, [this](unsigned char byte) { Send(byte); });
}

TEST_F(LaneTest, LeadershipIsHandedOnStress) {
  ManyWaiters(lane_, waiters_, 8, 1000, [this](unsigned char byte) { Send(byte); });
}

}  // namespace
}  // namespace curtail
