// SPDX-License-Identifier: Apache-2.0
//
// The executor under all schedules: each request runs once and is answered, whatever the model, and whatever
// it is switched to meanwhile.
#include "curtail/exec/executor.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/model/kernel.h"
#include "tests/model/scheduler.h"

namespace curtail {
namespace {

using model::Check;
using model::Explore;
using model::Outcome;

Config Parsed(const char* text) { return *Config::Parse(text); }

// A Source of tasks: what arrives is found on its descriptor by whoever receives.
class Source final : public Receiver {
 public:
  Source() : fd_(model::EventFd()), handler_(std::make_shared<Handler>(this)) {
    Check(poller_.Add(fd_, handler_).ok(), "Add");
  }
  void Arrive(Task* task) {
    arrived_.Push(task);
    model::Write(fd_);
  }

  Poller& poller() override { return poller_; }
  void Await(Deadline deadline, SpinBudget* spin, std::vector<Poller::Ready>* events) override {
    poller_.Wait(deadline, spin, events);
  }
  void Handle(const std::vector<Poller::Ready>& events, TaskList* ready) override {
    for (const Poller::Ready& event : events) event.handler->OnEvents(event.events, ready);
  }
  void Wake() override { poller_.Wake(); }

 private:
  class Handler final : public PollHandler {
   public:
    explicit Handler(Source* source) : source_(source) {}
    void OnEvents(uint32_t, TaskList* ready) override {
      model::Read(source_->fd_);
      ready->Append(source_->arrived_);
    }

   private:
    Source* const source_;
  };

  const int fd_;
  TaskList arrived_;
  const std::shared_ptr<Handler> handler_;
  Poller poller_;
};

// A Gate is where a handler waits for another, as the present model waits.
class Gate {
 public:
  void Wait() {
    while (true) {
      const uint32_t ticket = parker_.Ticket();
      if (ticket & kOpen) return;
      parker_.Wait(ticket, Deadline::Infinite());
    }
  }
  void Open() { parker_.Notify(kOpen); }

 private:
  static constexpr uint32_t kOpen = Parker::Signal(0);
  Parker parker_;
};

// A Server has requests 0, 1 and 2, whose handlers a test may replace, and counts their answers. An answer
// that is held back counts when it is flushed.
class Server final : public Outbox {
 public:
  static constexpr int kRequests = 3;

  Server(const char* config, uint32_t max_threads) {
    for (int i = 0; i < kRequests; ++i) requests_.push_back(std::make_unique<Request>(this));
    executor_ = std::make_unique<Executor>(
        Parsed(config), ExecutorOptions{.max_threads = max_threads, .fiber = {.stack_bytes = 64 << 10}},
        &reception_, this, &response_);
    Check(executor_->status().ok(), "start");
  }

  Executor& executor() { return *executor_; }
  // The work of request `i` before it answers.
  void Handle(int i, std::function<void()> handler) { requests_[i]->handler = std::move(handler); }
  // Request `i` comes over the network; or by Submit().
  void Arrive(int i) { reception_.Arrive(requests_[i].get()); }
  void Submit(int i) {
    TaskList tasks;
    tasks.Push(requests_[i].get());
    executor_->Submit(tasks);
  }
  int answers() const { return answers_; }
  bool TryRunAside(int i) { return executor_->TryRunAside(requests_[i].get()); }
  bool began(int i) const { return requests_[i]->began; }
  void WaitUntilBegan(int i) {
    model::Block("wait for a request to begin", nullptr, [&] { return began(i); });
  }
  // Request `i` ends when its Reply() has come, without a thread that waits for it.
  void MakeAsynchronous(int i) { requests_[i]->asynchronous = true; }
  void Reply(int i) {
    WaitUntilBegan(i);
    response_.Arrive(&requests_[i]->continuation);
  }
  void Switch(const char* config) { Check(executor_->SwitchTo(Parsed(config)).ok(), "switch"); }
  void WaitForAnswers(int count) {
    model::Block("wait for answers", nullptr, [&] { return answers_ >= count; });
  }
  // All is quiet: stops, and nothing is left.
  void Finish(int answers) {
    WaitForAnswers(answers);
    TaskList left;
    Check(executor_->Stop(Deadline::Infinite(), &left), "stop");
    Check(left.empty(), "a request was left over");
    Check(answers_ == answers, "a request was answered twice");
  }

 private:
  struct Request;
  struct Continuation final : Task {
    explicit Continuation(Request* r) : request(r) {}
    void Run(const WaitHint& hint) override {
      Check(!std::exchange(ran, true), "a reply was taken twice");
      request->server->Answer(hint);
      request->server->executor_->AsyncEnded();
    }
    Request* const request;
    bool ran = false;
  };
  struct Request final : Task {
    explicit Request(Server* s) : server(s) {}
    void Run(const WaitHint& hint) override {
      Check(!began, "a request ran twice");
      if (asynchronous) server->executor_->AsyncBegun();
      began = true;
      if (handler) handler();
      if (!asynchronous) server->Answer(hint);
    }
    Server* const server;
    std::function<void()> handler;
    bool asynchronous = false;
    bool began = false;
    Continuation continuation{this};
  };

  void Answer(const WaitHint& hint) { ++(hint.more_ready ? held_[hint.thread_index] : answers_); }
  void Hold(uint32_t, std::shared_ptr<PollHandler>) override {}
  void FlushIfDue(uint32_t) override {}
  void Flush(uint32_t thread_index) override { answers_ += std::exchange(held_[thread_index], 0); }

  Source reception_, response_;
  std::vector<std::unique_ptr<Request>> requests_;
  int held_[8] = {};
  int answers_ = 0;
  std::unique_ptr<Executor> executor_;
};

void Expect(const model::Options& options, const std::function<void()>& program) {
  const Outcome outcome = Explore(options, program);
  EXPECT_TRUE(outcome.ok) << outcome.report;
}

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

// S1: threads that a handler keeps busy in their old role hold nothing up, if there are sleeping threads.
TEST(ExecutorModel, ASwitchDoesNotWaitForBusyThreads) {
  const std::pair<const char*, const char*> switches[] = {
      {"SIB1", "SDB1-1"}, {"SDB1-1", "SIB1"}, {"SIB1", "FIB1"}, {"FIB1", "SIB1"}, {"FDB1-1", "SIB1"}};
  for (const auto& [from, to] : switches) {
    SCOPED_TRACE(std::string(from) + " to " + to);
    Expect({.preemptions = 1, .random_schedules = 1000}, [&, from = from, to = to] {
      Server server(from, 3);
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

}  // namespace
}  // namespace curtail
