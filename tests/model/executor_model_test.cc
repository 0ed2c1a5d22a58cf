// SPDX-License-Identifier: Apache-2.0
//
// The executor under all schedules: each request runs once and is answered, whatever the model, and whatever
// it is switched to meanwhile.
#include "curtail/exec/executor.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>

#include "tests/model/scheduler.h"
#include "tests/model/server_testing.h"

namespace curtail {
namespace {

using model::Check;
using model::Expect;
using model::Gate;
using model::Server;

// One request over the network and one from outside of the pools, in each model.
TEST(ExecutorModel, EachRequestRunsOnceAndIsAnswered) {
  for (const char* config :
       {"SIB1", "SIB2", "SIP2", "SDB1-1", "SDB1-2", "SDB2-1", "FIB1", "FIB2", "FDB1-1"}) {
    SCOPED_TRACE(config);
    Expect({.preemptions = 1, .random_schedules = 1000}, [&] {
      Server server(config, 1);
      server.Arrive(0);
      server.Submit(1);
      server.Finish(2);
    });
  }
}

// R2, R3: while a handler waits, a free thread, or on fibers the same thread, receives and runs others,
// whether they came together with its request or later.
TEST(ExecutorModel, AWaitingHandlerDoesNotStopReception) {
  for (const char* config : {"SIB2", "SIP2", "SDB1-2", "FIB1", "FIP1", "FIB2", "FDB1-1"}) {
    for (const bool together : {true, false}) {
      SCOPED_TRACE(config);
      Expect({.preemptions = 1, .random_schedules = 1000}, [&] {
        Server server(config, 1);
        Gate gate;
        server.Handle(0, [&] { gate.Wait(); });
        server.Handle(1, [&] { gate.Open(); });
        server.Arrive(0);
        if (!together) server.WaitUntilBegan(0);
        server.Arrive(1);
        server.Finish(2);
      });
    }
  }
}

// The same for requests that are submitted together: one parked thread, or none, does not suffice for them.
TEST(ExecutorModel, RequestsSubmittedTogetherHaveAThreadEach) {
  for (const char* config : {"SIB2", "SIB3", "SIP2", "SDB1-2", "FIB2"}) {
    SCOPED_TRACE(config);
    Expect({.preemptions = 1, .random_schedules = 1000}, [&] {
      Server server(config, 1);
      Gate gate;
      server.Handle(0, [&] { gate.Wait(); });
      server.Handle(1, [&] { gate.Open(); });
      server.Submit({0, 1});
      server.Finish(2);
    });
  }
}

// A handler waits for its gate, as for another service, and looks for requests before, as R6 has it.
void LookAndWait(Gate& gate) {
  const WaitHint hint = CurrentWait();
  hint.executor->ReceiveMeanwhile(hint.thread_index);
  gate.Wait();
}

// R6: what a look receives is not lost.
TEST(ExecutorModel, ARequestThatAWaitingHandlerReceivesIsRun) {
  Expect({.preemptions = 2, .random_schedules = 1000}, [] {
    Server server("SIB1", 1);
    Gate open;
    open.Open();
    server.Handle(0, [&] { LookAndWait(open); });
    server.Arrive(0);
    server.Arrive(1);
    server.Finish(2);
  });
}

// R6: a thread that comes back during a look, and finds a leader, leads after it.
TEST(ExecutorModel, AThreadThatComesBackDuringALookReceivesAfterIt) {
  Expect({.preemptions = 2, .random_schedules = 1000}, [] {
    Server server("SIB2", 2);
    model::Settle();
    Gate gate;
    server.Handle(0, [&] { LookAndWait(gate); });
    server.Handle(1, [&] { gate.Open(); });
    server.Submit(0);
    server.Submit(2);
    server.WaitUntilBegan(0);
    server.Arrive(1);
    server.Finish(3);
  });
}

// R6: so does a thread of a config that came during the look.
TEST(ExecutorModel, AReceiverOfANewConfigReceivesAfterALook) {
  Expect({.preemptions = 1, .random_schedules = 1000}, [] {
    Server server("SIB1", 3);
    model::Settle();
    Gate gate;
    server.Handle(0, [&] { LookAndWait(gate); });
    server.Handle(1, [&] { gate.Open(); });
    server.Submit(0);
    server.WaitUntilBegan(0);
    server.Switch("SDB1-1");
    server.Arrive(1);
    server.Finish(2);
  });
}

// S1 to S5: requests come before, during and after a switch.
TEST(ExecutorModel, ASwitchLosesNoRequest) {
  const std::pair<const char*, const char*> switches[] = {
      {"SIB1", "SDB1-1"}, {"SDB1-1", "SIB1"}, {"SIB2", "SIB1"},   {"SIB1", "SIB2"},   {"SIB1", "SIP1"},
      {"SIB1", "FIB1"},   {"FIB1", "SIB1"},   {"FIB1", "FDB1-1"}, {"FDB1-1", "FIB1"}, {"SIP1", "SDP1-1"}};
  for (const auto& [from, to] : switches) {
    SCOPED_TRACE(std::string(from) + " to " + to);
    Expect({.preemptions = 1, .random_schedules = 1000}, [&, from = from, to = to] {
      Server server(from, 2);
      model::Settle();
      server.Arrive(0);
      std::thread client([&] { server.Arrive(1), server.Submit(2); });
      server.Switch(to);
      client.join();
      server.Finish(3);
    });
  }
}

// S1: threads that a handler keeps busy in their old role hold nothing up, if others are free.
TEST(ExecutorModel, ASwitchDoesNotWaitForBusyThreads) {
  const struct {
    const char* from;
    const char* to;
    uint32_t threads = 3;
  } switches[] = {{"SIB1", "SDB1-1"}, {"SDB1-1", "SIB1"},   {"SIB1", "FIB1"}, {"FIB1", "SIB1"},
                  {"FDB1-1", "SIB1"}, {"SDB1-1", "SDP1-1"}, {"SIB2", "SIB1"}, {"SIB2", "SIB1", 2}};
  for (const auto& [from, to, threads] : switches) {
    SCOPED_TRACE(std::string(from) + " to " + to);
    Expect({.preemptions = 1, .random_schedules = 1000}, [&, from = from, to = to, threads = threads] {
      Server server(from, threads);
      model::Settle();
      Gate gate;
      server.Handle(0, [&] { gate.Wait(); });
      server.Handle(1, [&] { gate.Open(); });
      server.Arrive(0);
      server.WaitUntilBegan(0);
      server.Switch(to);
      server.Arrive(1);
      server.Finish(2);
    });
  }
}

TEST(ExecutorModel, TwoSwitchesAtOnce) {
  Expect({.preemptions = 1, .random_schedules = 1000}, [] {
    Server server("SDB1-1", 2);
    model::Settle();
    server.Arrive(0);
    std::thread other([&] { server.Switch("SIB1"); });
    server.Switch("FIB1");
    server.Arrive(1);
    other.join();
    server.Finish(2);
  });
}

// A task that a sleeping thread took on runs once, though a switch wakes the same threads.
TEST(ExecutorModel, ATaskRunsAsideDuringASwitch) {
  Expect({.preemptions = 1, .random_schedules = 1000}, [] {
    Server server("SIB1", 2);
    model::Settle();
    std::thread other([&] { server.Switch("SDB1-1"); });
    const bool aside = server.TryRunAside(1);
    server.Arrive(0);
    other.join();
    server.Finish(aside ? 2 : 1);
  });
}

// The same, while the executor stops: what was taken on still runs.
TEST(ExecutorModel, ATaskRunsAsideDuringStop) {
  Expect({.preemptions = 3, .random_schedules = 1000}, [] {
    Server server("SIB1", 2);
    bool aside = false;
    std::thread other([&] { aside = server.TryRunAside(0); });
    TaskList left;
    Check(server.executor().Stop(Deadline::Infinite(), &left), "stop");
    other.join();
    Check(left.empty() && server.began(0) == aside, "a task that was taken on did not run");
  });
}

// S6: a reply to an asynchronous request is taken, and its request answered, whatever the config is by then,
// and though there are no threads to spare.
TEST(ExecutorModel, AsynchronousRequestsEndInAnyConfig) {
  for (const char* to : {"AIP1-1", "SIB1", "SDB1-1", "FIB1"}) {
    SCOPED_TRACE(to);
    Expect({.preemptions = 1, .random_schedules = 1000}, [to] {
      Server server("AIB1-1", 2);
      model::Settle();
      server.MakeAsynchronous(0);
      server.Arrive(0);
      server.Switch(to);
      server.Reply(0);
      server.Finish(1);
    });
  }
}

// Stop() returns once no thread runs; each request that was submitted before has run or is handed back.
TEST(ExecutorModel, StopHandsBackWhatDidNotRun) {
  for (const char* config : {"SIB2", "SDB1-1", "FIB1"}) {
    SCOPED_TRACE(config);
    Expect({.preemptions = 2, .random_schedules = 1000}, [&] {
      Server server(config, 1);
      server.Submit(0);
      server.Submit(1);
      TaskList left;
      Check(server.executor().Stop(Deadline::Infinite(), &left), "stop");
      Check(server.began(0) + server.began(1) + left.size() == 2, "a request was lost or doubled");
    });
  }
}

// S6: a request that waits without a thread has begun, so Stop() lets it end.
TEST(ExecutorModel, StopWaitsForAsynchronousRequests) {
  for (const char* config : {"AIB1-1", "ADB1-1-1"}) {
    SCOPED_TRACE(config);
    Expect({.preemptions = 1, .random_schedules = 1000}, [&] {
      Server server(config, 1);
      model::Settle();
      server.MakeAsynchronous(0);
      server.Arrive(0);
      std::thread peer([&] { server.Reply(0); });
      server.WaitUntilBegan(0);
      TaskList left;
      Check(server.executor().Stop(Deadline::Infinite(), &left), "stop");
      Check(left.empty() && server.answers() == 1, "a request that had begun was not answered");
      peer.join();
    });
  }
}

// The same for one whose wait begins while Stop() waits for the threads: its reply is taken, although the response threads
// have ended.
TEST(ExecutorModel, StopWaitsForAsynchronousRequestsThatBeginMeanwhile) {
  for (const char* config : {"AIB1-1", "ADB1-1-1"}) {
    SCOPED_TRACE(config);
    Expect({.preemptions = 1, .random_schedules = 10'000}, [&] {
      Server server(config, 1);
      server.MakeAsynchronous(0);
      server.Submit(0);
      bool stopped = false;
      std::thread peer([&] {
        model::Block("wait for a request to begin, or for the stop", nullptr,
                     [&] { return stopped || server.began(0); });
        if (server.began(0)) server.Reply(0);
      });
      TaskList left;
      Check(server.executor().Stop(Deadline::Infinite(), &left), "stop");
      stopped = true;
      Check(server.began(0) ? left.empty() && server.answers() == 1 : left.size() == 1, "a request was lost");
      peer.join();
    });
  }
}

// R4: a thread that wakes by itself runs a task whose submitter has yet to wake it. That late wake-up leaves the thread in its
// seat once, so that the next two tasks have a thread each.
TEST(ExecutorModel, ALateWakeUpTakesNoThreadFromOthers) {
  Expect({.preemptions = 1, .random_schedules = 10'000}, [] {
    Server server("FDB1-2", 3);
    Gate gate;
    server.Handle(0, [&] { gate.Wait(); });
    server.Handle(2, [&] { server.WaitUntilBegan(3); });
    server.Submit(0);
    model::Settle();
    std::thread late([&] { server.Submit(1); });
    gate.Open();
    late.join();
    server.WaitForAnswers(2);
    model::Settle();
    server.Submit(2);
    server.WaitUntilBegan(2);
    server.Submit(3);
    server.Finish(4);
  });
}

}  // namespace
}  // namespace curtail
