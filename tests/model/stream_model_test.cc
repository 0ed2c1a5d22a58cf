// SPDX-License-Identifier: Apache-2.0
//
// The protocol of streams (P1 to P7 of stream_pipe.cc, W1 to W7 of stream_end.cc) under all schedules: no reader waits
// beside a message and no writer beside room, each message arrives once and in order, each stream ends once, and no
// thread touches an end after its release. A lost wake-up is a deadlock here.
#include <gtest/gtest.h>

#include <coroutine>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "curtail/exec/executor.h"
#include "curtail/rpc/call/response_receiver.h"
#include "tests/model/moment.h"
#include "tests/model/scheduler.h"
#include "tests/model/stream_ends.h"
#include "tests/model/stream_world.h"

namespace curtail {
namespace {

using internal::StepAwaiter;
using internal::StreamStep;
using model::At;
using model::Check;
using model::ClientPipe;
using model::Fresh;
using model::kHuge;
using model::kLong;
using model::kSmall;
using model::Link;
using model::Numbered;
using model::Outcome;
using model::ServerPipe;
using model::World;
using wire::Role;

void Expect(const model::Options& options, const std::function<void()>& program) {
  const Outcome outcome = Explore(options, program);
  EXPECT_TRUE(outcome.ok) << outcome.report;
}

// Reads to the end, and checks the order. Returns how many messages there were.
int ReadAll(internal::MessageStream& pipe, int first = 0) {
  int n = first;
  for (std::string message; pipe.Read(&message); ++n) {
    Check(message[0] == '0' + n, "a message was lost, doubled or overtaken");
  }
  return n - first;
}

// Runs `handler` as a server's handler runs, on this thread.
void Handle(World& world, const std::function<void(ServerPipe&)>& handler) {
  auto* const pipe = new ServerPipe(world);
  handler(*pipe);
  pipe->End();
  pipe->Unref();
}

// P1: a reader takes messages that stop the peer's credit, and gives it back.
TEST(StreamModel, AReaderGetsEachMessageOnceInOrder) {
  Expect({.preemptions = 2, .random_schedules = 1000}, [] {
    World world(Role::kServer, /*window=*/2);
    std::thread handler([&] {
      Handle(world, [](ServerPipe& pipe) {
        Check(ReadAll(pipe) == 3, "not all messages came");
        Check(pipe.status().ok(), "a whole stream has an error");
      });
    });
    model::Block("wait for the handler", nullptr, [&] { return world.link->opened(); });
    world.link->Send(kHuge);
    for (int i = 1; i < 3; ++i) world.link->Send(kSmall);
    world.link->EndMessages();
    handler.join();
    Check(world.released == 1, "the stream was not released");
  });
}

// P4: the peer goes on when it has an answer, so each message alone wakes its reader.
TEST(StreamModel, EachMessageIsAnswered) {
  Expect({.preemptions = 2, .random_schedules = 1000}, [] {
    World world(Role::kServer, 1);
    std::thread handler([&] {
      Handle(world, [](ServerPipe& pipe) {
        int n = 0;
        for (std::string message; pipe.Read(&message); ++n) {
          Check(pipe.Write(Numbered(n, kSmall)), "a message was refused");
        }
        Check(n == 2, "not all messages came");
      });
    });
    model::Block("wait for the handler", nullptr, [&] { return world.link->opened(); });
    world.link->Take(2);
    for (int i = 0; i < 2; ++i) {
      world.link->Send(kSmall);
      world.link->WaitUntilTaken(i + 1);
    }
    world.link->EndMessages();
    handler.join();
    Check(world.released == 1, "the stream was not released");
  });
}

// P2 and P6: a writer waits for room, which the peer gives message by message, and its end comes last.
TEST(StreamModel, AWriterIsWokenByRoom) {
  Expect({.preemptions = 2, .random_schedules = 1000}, [] {
    World world(Role::kServer, 1);
    std::thread handler([&] {
      Handle(world, [](ServerPipe& pipe) {
        for (int i = 0; i < 3; ++i) Check(pipe.Write(Numbered(i, kLong)), "a message was refused");
      });
    });
    model::Block("wait for the handler", nullptr, [&] { return world.link->opened(); });
    for (int i = 0; i < 3; ++i) world.link->Take(1);
    world.link->WaitForEnd();
    Check(world.link->taken() == 3, "a message was lost");
    handler.join();
    Check(world.released == 1, "the stream was not released");
  });
}

// P5: a reset wakes a reader and a writer, wherever they are.
TEST(StreamModel, AResetEndsBothWaits) {
  Expect({.preemptions = 2, .random_schedules = 1000}, [] {
    World world(Role::kServer, 1);
    auto* const pipe = new ServerPipe(world);
    std::thread reader([&] {
      std::string message;
      Check(!pipe->Read(&message), "there was no message");
      Check(absl::IsCancelled(pipe->status()), "a reset is no end");
    });
    std::thread writer([&] {
      for (int i = 0; i < 9 && pipe->Write(Numbered(i, kLong)); ++i) Check(i < 3, "no limit");
    });
    world.link->Reset();
    reader.join(), writer.join();
    pipe->End();
    pipe->Unref();
    Check(world.released == 1, "the stream was not released");
  });
}

// One thread ends the stream while the other waits.
TEST(StreamModel, AFailureEndsTheOthersWait) {
  Expect({.preemptions = 2, .random_schedules = 1000}, [] {
    World world(Role::kServer, 1);
    auto* const pipe = new ServerPipe(world);
    std::thread reader([&] {
      std::string message;
      Check(!pipe->Read(&message), "there was no message");
      Check(absl::IsInternal(pipe->status()), "another end than the failure");
    });
    pipe->Fail(absl::InternalError("no such message"));
    reader.join();
    pipe->End();
    pipe->Unref();
    Check(world.released == 1, "the stream was not released");
  });
}

// P5: the deadline ends a wait; a message that comes about then is read, or not.
TEST(StreamModel, TheDeadlineEndsAWait) {
  int read = 0, late = 0;
  Expect({.preemptions = 2, .random_schedules = 1000}, [&] {
    World world(Role::kServer, 1, At(1000));
    auto* const pipe = new ServerPipe(world);
    std::thread handler([&] {
      std::string message;
      const bool came = pipe->Read(&message);
      ++(came ? read : late);
      if (!came) Check(absl::IsDeadlineExceeded(pipe->status()), "another end than the deadline's");
      pipe->End();
      pipe->Unref();
    });
    world.link->Send(kSmall);
    handler.join();
    Check(world.released == 1, "the stream was not released");
  });
  EXPECT_GT(read, 0);
  EXPECT_GT(late, 0);
}

// A client's end: half-close, and the peer's end behind its messages. Its thread drives the connection, or another one
// does.
TEST(StreamModel, AClientEndsItsMessagesAndReadsTheRest) {
  for (const bool drives : {false, true}) {
    Expect({.preemptions = 2, .random_schedules = 1000}, [&] {
      Lane lane;
      World world(Role::kClient, 1, Deadline::Infinite(), false, drives ? lane.poller() : nullptr);
      if (drives) Check(world.link->Register().ok(), "Add");
      std::thread caller([&] {
        Fresh<ClientPipe> pipe(world, drives ? &lane : nullptr);
        Check(pipe->Write(Numbered(0, kSmall)), "a message was refused");
        pipe->EndWrites();
        Check(ReadAll(*pipe) == 2 && pipe->status().ok(), "not all messages came");
      });
      model::Block("wait for the caller", nullptr, [&] { return world.link->opened(); });
      world.link->Take(1);
      world.link->WaitForEnd();
      world.link->Send(kHuge);
      world.link->Send(kSmall);
      world.link->EndMessages();
      caller.join();
      Check(world.link->taken() == 1, "a message was lost");
    });
  }
}

// The context's cancellation ends a client's waits, and its end waits for the connection's turn.
TEST(StreamModel, ACancellationEndsAClientsWait) {
  for (const bool drives : {false, true}) {
    Expect({.preemptions = 2, .random_schedules = 1000}, [&] {
      Lane lane;
      World world(Role::kClient, 1, Deadline::Infinite(), false, drives ? lane.poller() : nullptr);
      if (drives) Check(world.link->Register().ok(), "Add");
      std::thread caller([&] {
        Fresh<ClientPipe> pipe(world, drives ? &lane : nullptr);
        std::string message;
        if (pipe->Read(&message)) Check(!pipe->Read(&message), "there was one message");
        Check(absl::IsCancelled(pipe->status()), "another end than the cancellation's");
      });
      model::Block("wait for the caller", nullptr, [&] { return world.link->opened(); });
      std::thread canceller([&] { world.ctx.Cancel(); });
      world.link->Send(kSmall);
      caller.join(), canceller.join();
    });
  }
}

// P7 (d): a message that is held leaves, though its writer neither waits nor writes again.
TEST(StreamModel, AHeldMessageLeavesByItself) {
  Expect({.preemptions = 1, .horizon_ns = 1'000'000}, [] {
    World world(Role::kServer, 1, Deadline::Infinite(), /*holds=*/true);
    auto* const pipe = new ServerPipe(world);
    world.link->Take(2);
    std::thread handler([&] {
      for (int i = 0; i < 2; ++i) Check(pipe->Write(Numbered(i, kSmall)), "a message was refused");
      world.link->WaitUntilTaken(2);
      pipe->End();
      pipe->Unref();
    });
    handler.join();
    world.held.Stop();
    Check(world.released == 1, "the stream was not released");
  });
}

// Coroutines ---------------------------------------------------------------------------------------------

// A coroutine handler, which destroys itself at its end.
struct Script {
  struct promise_type {
    Script get_return_object() { return {}; }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { model::Fail("an exception"); }
  };
};

// No requests come here.
class Quiet final : public Receiver {
 public:
  Poller& poller() override { return poller_; }
  void Await(Deadline deadline, SpinBudget* spin, std::vector<Poller::Ready>* events) override {
    poller_.Wait(deadline, spin, events);
  }
  void Handle(const std::vector<Poller::Ready>&, TaskList*) override {}
  void Wake() override { poller_.Wake(); }

 private:
  Poller poller_;
};

class NoOutbox final : public Outbox {
 public:
  void Hold(uint32_t, std::shared_ptr<PollHandler>) override {}
  void FlushIfDue(uint32_t) override {}
  void Flush(uint32_t) override {}
};

// A Server runs one coroutine on a stream, under an asynchronous model.
class Server final : public Task {
 public:
  using Handler = std::function<Script(Server&)>;

  explicit Server(World& world, Handler handler)
      : handler_(std::move(handler)),
        pipe_(new ServerPipe(world)),
        executor_(*Config::Parse("AIB1-1"), ExecutorOptions{.max_threads = 1}, &reception_, &outbox_,
                  &response_) {
    Check(executor_.status().ok(), "start");
    TaskList tasks;
    tasks.Push(this);
    executor_.Submit(tasks);
  }
  // Waits for the handler's end.
  void Stop() {
    model::Block("wait for the handler to begin", nullptr, [this] { return began_; });
    TaskList left;
    Check(executor_.Stop(Deadline::Infinite(), &left), "stop");
    Check(left.empty() && ended_, "a handler that had begun did not end");
  }

  ServerPipe& pipe() { return *pipe_; }
  // The handler's last act.
  void End() {
    Check(!std::exchange(ended_, true), "a handler ended twice");
    ServerPipe* const pipe = std::exchange(pipe_, nullptr);
    pipe->End();
    pipe->StopSuspending();
    pipe->Unref();
  }

 private:
  void Run(const WaitHint& hint) override {
    Check(ServerPipe::CanSuspend(hint), "not an asynchronous model");
    pipe_->Suspend(hint);
    began_ = true;
    handler_(*this);
  }

  const Handler handler_;
  ServerPipe* pipe_;
  bool began_ = false;
  bool ended_ = false;
  Quiet reception_;
  internal::ResponseReceiver response_;
  NoOutbox outbox_;
  Executor executor_;
};

Script ReadSome(Server& server, int messages, absl::StatusCode end) {
  std::string message;
  int n = 0;
  while (co_await StepAwaiter(server.pipe(), StreamStep::Kind::kRead, &message)) {
    Check(message[0] == '0' + n++, "a message was lost, doubled or overtaken");
  }
  Check(messages < 0 || n == messages, "not all messages came");
  Check(server.pipe().status().code() == end, "another end than expected");
  server.End();
}

Script WriteSome(Server& server, int messages) {
  for (int i = 0; i < messages; ++i) {
    std::string message = Numbered(i, kLong);
    Check(co_await StepAwaiter(server.pipe(), StreamStep::Kind::kWrite, &message), "a message was refused");
  }
  server.End();
}

// W1 to W4, W6.
TEST(StreamModel, ACoroutineIsResumedForEachMessage) {
  Expect({.preemptions = 1, .random_schedules = 500}, [] {
    World world(Role::kServer, 1);
    Server server(world, [](Server& s) { return ReadSome(s, 2, absl::StatusCode::kOk); });
    world.link->Send(kHuge);
    world.link->Send(kSmall);
    world.link->EndMessages();
    server.Stop();
    Check(world.released == 1, "the stream was not released");
  });
}

TEST(StreamModel, ACoroutineIsResumedForRoom) {
  Expect({.preemptions = 1, .random_schedules = 500}, [] {
    World world(Role::kServer, 1);
    Server server(world, [](Server& s) { return WriteSome(s, 3); });
    for (int i = 0; i < 3; ++i) world.link->Take(1);
    server.Stop();
    world.link->WaitForEnd();
    Check(world.link->taken() == 3 && world.released == 1, "the stream did not end");
  });
}

// W5: the timer ends a coroutine's wait, and is gone with the stream.
TEST(StreamModel, TheDeadlineEndsACoroutinesWait) {
  Expect({.preemptions = 1, .random_schedules = 500}, [] {
    World world(Role::kServer, 1, At(1000));
    Server server(world, [](Server& s) { return ReadSome(s, 0, absl::StatusCode::kDeadlineExceeded); });
    server.Stop();
    world.link->WaitForEnd();
    Check(world.released == 1, "the stream was not released");
  });
}

TEST(StreamModel, AResetEndsACoroutinesWait) {
  Expect({.preemptions = 1, .random_schedules = 500}, [] {
    World world(Role::kServer, 1, At(1000));
    Server server(world, [](Server& s) -> Script {
      std::string message;
      while (co_await StepAwaiter(s.pipe(), StreamStep::Kind::kRead, &message)) {
      }
      s.End();
    });
    world.link->Reset();
    server.Stop();
    Check(world.released == 1, "the stream was not released");
  });
}

// P3: what one thread changes while the other's turn is on its way is not missed.
TEST(StreamModel, OneThreadReadsWhileAnotherWrites) {
  Expect({.preemptions = 2, .random_schedules = 1000}, [] {
    World world(Role::kServer, 1);
    auto* const pipe = new ServerPipe(world);
    std::thread reader([&] { Check(ReadAll(*pipe) == 2, "not all messages came"); });
    std::thread writer([&] {
      for (int i = 0; i < 2; ++i) Check(pipe->Write(Numbered(i, kLong)), "a message was refused");
    });
    world.link->Take(2);
    world.link->Send(kHuge);
    world.link->Send(kSmall);
    world.link->EndMessages();
    reader.join(), writer.join();
    pipe->End();
    pipe->Unref();
    Check(world.link->taken() == 2 && world.released == 1, "the stream did not end");
  });
}

}  // namespace
}  // namespace curtail
