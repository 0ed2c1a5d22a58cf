// SPDX-License-Identifier: Apache-2.0
//
// Stand-ins under all schedules, on the scheduler's clock. Property: a request that sleeps where curtail does not see it,
// until another one runs, holds that up no longer than the guard takes to notice.
#include <gtest/gtest.h>

#include "curtail/exec/executor.h"
#include "curtail/exec/internal/guard_pace.h"
#include "tests/model/moment.h"
#include "tests/model/scheduler.h"
#include "tests/model/server_testing.h"

namespace curtail {
namespace {

using model::Check;
using model::Expect;
using model::Server;

// The look at which the guard of an idle server decides to sleep, after its start.
int64_t LastLookNs() {
  GuardPace pace;
  Nanos at{0};
  while (const auto next = pace.Next({})) at += *next;
  return at.count();
}

// Time enough for a guard that has fallen asleep to find a run.
model::Options Bounds(int preemptions) {
  return {.preemptions = preemptions,
          .random_schedules = 300,
          .horizon_ns = 2 * LastLookNs(),
          .patient_clock = true};
}

// Request 0 sleeps until request 1 has begun.
void MakeItSleep(Server& server) {
  server.Handle(0, [&server] { model::Block("sleep", nullptr, [&server] { return server.began(1); }); });
}

int Holders(Server& server) {
  int holders = 0;
  for (const auto& pool : server.executor().Sample().pools) holders += pool.threads;
  return holders;
}

// G1 to G3: a stand-in comes, and goes when the thread is back.
TEST(StandInsModel, AStandInComesForAThreadThatSleepsAndGoesAgain) {
  for (const bool together : {true, false}) {
    Expect(Bounds(1), [together] {
      Server server("auto", 2);
      MakeItSleep(server);
      server.Arrive(0);
      if (!together) server.WaitUntilBegan(0);
      server.Arrive(1);
      server.WaitForAnswers(2);
      model::Settle();
      Check(Holders(server) == 1, "the stand-in stays");
      server.Finish(2);
    });
  }
}

// G5: a run begins as the guard decides to sleep.
TEST(StandInsModel, TheGuardSleepsThroughNoRun) {
  Expect(Bounds(1), [] {
    Server server("auto", 2);
    MakeItSleep(server);
    model::Settle();
    model::Block("be idle", nullptr, [] { return false; }, model::Moment(LastLookNs()));
    server.Arrive(0);
    server.Arrive(1);
    server.Finish(2);
  });
}

// G5: runs of a config without stand-ins wake no guard; the switch to one that has them does.
TEST(StandInsModel, TheGuardHearsOfASwitch) {
  Expect(Bounds(1), [] {
    Server server("auto", 2);
    MakeItSleep(server);
    server.Switch("FIB1");
    model::Settle();
    server.Arrive(0);
    server.WaitUntilBegan(0);
    server.Switch("auto");
    server.Arrive(1);
    server.Finish(2);
  });
}

}  // namespace
}  // namespace curtail
