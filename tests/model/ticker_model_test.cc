// SPDX-License-Identifier: Apache-2.0
//
// A ticker under all schedules: a wake-up leads to a call that begins after it, and Stop() to none.
#include "curtail/exec/internal/ticker.h"

#include <gtest/gtest.h>

#include "tests/model/scheduler.h"

namespace curtail {
namespace {

using model::Check;
using model::Explore;
using model::Outcome;

// Property: what was there before a wake-up is seen, though the wake-up comes while a call looks elsewhere already.
TEST(TickerModel, AWakeUpDuringACallLeadsToAnother) {
  const Outcome outcome =
      Explore({.preemptions = 3, .random_schedules = 1000, .horizon_ns = 1'000'000'000}, [] {
        int news = 0, seen = 0;
        Ticker ticker;
        const absl::Status started = ticker.Start("tick", [&](TimePoint) -> Nanos {
          seen = news;
          model::Point("the rest of the call", nullptr);
          return std::chrono::hours(1);
        });
        Check(started.ok(), "start");
        for (int n = 1; n <= 2; ++n) {
          news = n;
          ticker.Wake();
          model::Block("wait for a call", nullptr, [&] { return seen == n; });
        }
      });
  EXPECT_TRUE(outcome.ok) << outcome.report;
}

// Property: Stop() returns though it comes during a call, and no call begins once it has.
TEST(TickerModel, StopEndsTheCalls) {
  const Outcome outcome =
      Explore({.preemptions = 3, .random_schedules = 1000, .horizon_ns = 1'000'000'000}, [] {
        bool stopped = false;
        Ticker ticker;
        const absl::Status started = ticker.Start("tick", [&](TimePoint) -> Nanos {
          Check(!stopped, "a call after Stop()");
          model::Point("the rest of the call", nullptr);
          return std::chrono::hours(1);
        });
        Check(started.ok(), "start");
        ticker.Wake();
        ticker.Stop();
        stopped = true;
        ticker.Wake();
      });
  EXPECT_TRUE(outcome.ok) << outcome.report;
}

}  // namespace
}  // namespace curtail
