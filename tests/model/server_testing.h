// SPDX-License-Identifier: Apache-2.0
//
// server_testing.h - an executor with requests that come and are answered, for its programs.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "curtail/exec/executor.h"
#include "tests/model/kernel.h"
#include "tests/model/scheduler.h"

namespace curtail::model {

inline Config Parsed(const char* text) { return *Config::Parse(text); }

// A Source of tasks: what arrives is found on its descriptor by whoever receives.
class Source final : public Receiver {
 public:
  Source() : fd_(EventFd()), handler_(std::make_shared<Handler>(this)) {
    Check(poller_.Add(fd_, handler_).ok(), "Add");
  }
  void Arrive(Task* task) {
    arrived_.Push(task);
    Write(fd_);
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
      Read(source_->fd_);
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

// A Server has requests 0 to 3, whose handlers a test may replace, and counts their answers. An answer
// that is held back counts when it is flushed.
class Server final : public Outbox {
 public:
  static constexpr int kRequests = 4;

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
  void Submit(int i) { Submit({i}); }
  void Submit(std::initializer_list<int> all) {
    TaskList tasks;
    for (const int i : all) tasks.Push(requests_[i].get());
    executor_->Submit(tasks);
  }
  int answers() const { return answers_; }
  bool TryRunAside(int i) { return executor_->TryRunAside(requests_[i].get()); }
  bool began(int i) const { return requests_[i]->began; }
  void WaitUntilBegan(int i) {
    Block("wait for a request to begin", nullptr, [&] { return began(i); });
  }
  // Request `i` ends when its Reply() has come, without a thread that waits for it.
  void MakeAsynchronous(int i) { requests_[i]->asynchronous = true; }
  void Reply(int i) {
    WaitUntilBegan(i);
    response_.Arrive(&requests_[i]->continuation);
  }
  void Switch(const char* config) { Check(executor_->SwitchTo(Parsed(config)).ok(), "switch"); }
  void WaitForAnswers(int count) {
    Block("wait for answers", nullptr, [&] { return answers_ >= count; });
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

inline void Expect(const Options& options, const std::function<void()>& program) {
  const Outcome outcome = Explore(options, program);
  EXPECT_TRUE(outcome.ok) << outcome.report;
}

}  // namespace curtail::model
