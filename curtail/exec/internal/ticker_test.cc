// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/internal/ticker.h"
#include "curtail/base/testing.h"

#include <gtest/gtest.h>

#include <atomic>

namespace curtail {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Ticker, CallsAtOnceAndAgainWithTheTimeUntilItIsStopped) {
  std::atomic<int> calls{0};
  Parker third;
  TimePoint last = TimePoint::min();
  bool ascending = true;
  Ticker ticker;
  const TimePoint begin = Now();
  const absl::Status started = ticker.Start("tick", [&](TimePoint now) -> Nanos {
    ascending = ascending && now > last;
    last = now;
    if (calls.fetch_add(1) + 1 == 3) third.Notify(Parker::Signal(0));
    return milliseconds(2);
  });
  ASSERT_TRUE(started.ok()) << started;
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (!deadline.Expired()) {
    const uint32_t ticket = third.Ticket();
    if (ticket & Parker::Signal(0)) break;
    third.Wait(ticket, deadline);
  }
  ticker.Stop();
  const int after = calls;
  EXPECT_GE(after, 3);
  EXPECT_TRUE(ascending);
  EXPECT_GE(last - begin, milliseconds(4));
  ticker.Stop();
  EXPECT_EQ(calls, after);
}

TEST(Ticker, StopDoesNotWaitForTheNextCall) {
  Ticker ticker;
  const TimePoint begin = Now();
  ASSERT_TRUE(ticker.Start("tick", [](TimePoint) -> Nanos { return std::chrono::hours(1); }).ok());
  ticker.Stop();
  EXPECT_LT(Now() - begin, kMaxTestWait);
}

TEST(Ticker, NeedNotBeStarted) {
  Ticker ticker;
  ticker.Stop();
}

}  // namespace
}  // namespace curtail
