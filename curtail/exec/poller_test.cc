// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/poller.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "curtail/base/cpus.h"
#include "curtail/base/testing.h"

namespace curtail {
namespace {

using std::chrono::milliseconds;
class Nothing final : public PollHandler {
  void OnEvents(uint32_t, TaskList*) override {}
};

class PollerTest : public testing::Test {
 protected:
  PollerTest() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds_), 0); }
  ~PollerTest() override { close(fds_[0]), close(fds_[1]); }
  int fds_[2];
  Poller poller_;
  std::vector<Poller::Ready> ready_;
};

TEST_F(PollerTest, ReportsInput) {
  const auto handler = std::make_shared<Nothing>();
  ASSERT_TRUE(poller_.Add(fds_[0], handler).ok());
  ASSERT_EQ(write(fds_[1], "x", 1), 1);
  poller_.Wait(Deadline::In(kMaxTestWait), nullptr, &ready_);
  ASSERT_EQ(ready_.size(), 1u);
  EXPECT_EQ(ready_[0].handler, handler);
  EXPECT_TRUE(ready_[0].events & EPOLLIN);
}

TEST_F(PollerTest, AnExceptionIsItsHandlersAlone) {
  struct Thrower final : PollHandler {
    void OnEvents(uint32_t, TaskList*) override { throw 7; }
    void OnException() override { told = true; }
    bool told = false;
  };
  const auto handler = std::make_shared<Thrower>();
  Poller::Ready{handler, EPOLLIN}.Handle(nullptr);
  EXPECT_TRUE(handler->told);
}

TEST_F(PollerTest, KeepsARemovedHandlerAliveForEventsUnderWay) {
  auto handler = std::make_shared<Nothing>();
  const std::weak_ptr<Nothing> watch = handler;
  ASSERT_TRUE(poller_.Add(fds_[0], std::move(handler)).ok());
  ASSERT_EQ(write(fds_[1], "x", 1), 1);
  poller_.Wait(Deadline::In(kMaxTestWait), nullptr, &ready_);
  poller_.Remove(fds_[0]);
  EXPECT_FALSE(watch.expired());
  ready_.clear();
  EXPECT_TRUE(watch.expired());
}

TEST_F(PollerTest, WaitsShorterThanAMillisecond) {
  // A busy machine may be late often, not always.
  Nanos least = Nanos::max();
  for (const Deadline end = Deadline::In(kMaxTestWait); least >= milliseconds(1) && !end.Expired();) {
    const TimePoint begin = Now();
    poller_.Wait(Deadline::In(std::chrono::microseconds(50)), nullptr, &ready_);
    least = std::min(least, Now() - begin);
  }
  EXPECT_LT(least, milliseconds(1));
}

TEST_F(PollerTest, WakeEndsTheNextWait) {
  poller_.Wake();
  poller_.Wait(Deadline::Infinite(), nullptr, &ready_);
  EXPECT_TRUE(ready_.empty());
  SpinBudget budget(1);
  std::thread waker([&] { poller_.Wake(); });
  poller_.Wait(Deadline::Infinite(), &budget, &ready_);
  waker.join();
}

TEST_F(PollerTest, WithoutASlotASpinnerBlocks) {
  SpinBudget budget(0);
  ASSERT_TRUE(poller_.Add(fds_[0], std::make_shared<Nothing>()).ok());
  poller_.Wait(Deadline::In(milliseconds(1)), &budget, &ready_);  // the first edge: writable
  std::thread writer([&] { EXPECT_EQ(write(fds_[1], "x", 1), 1); });
  do {
    poller_.Wait(Deadline::In(kMaxTestWait), &budget, &ready_);
  } while (ready_.empty() || !(ready_[0].events & EPOLLIN));
  writer.join();
}

TEST(SpinBudget, GivesOutItsSlots) {
  SpinBudget budget(2);
  EXPECT_TRUE(budget.TryAcquire());
  EXPECT_TRUE(budget.TryAcquire());
  EXPECT_FALSE(budget.TryAcquire());
  budget.Release();
  EXPECT_TRUE(budget.TryAcquire());
  EXPECT_GE(UsableCpus(), 1);
}

}  // namespace
}  // namespace curtail
