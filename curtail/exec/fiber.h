// SPDX-License-Identifier: Apache-2.0
//
// fiber.h - tasks that wait without blocking their thread, and the loop that runs them.
//
// A FiberLoop belongs to one thread. Each of its fibers runs one task on a stack of its own. When
// the task waits, the fiber steps aside and the thread runs another. When none can run, the thread
// waits for the events of the loop's poller. The connections of its fibers are registered there. So
// requests, their handlers and the replies they wait for share a thread without a hop or a lock.
//
// Fibers stay on the thread where they began. The protocol of suspending and waking is at the top
// of fiber.cc.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/base/timer_heap.h"
#include "curtail/exec/parker.h"
#include "curtail/exec/poller.h"
#include "curtail/exec/task.h"

namespace curtail {

class FiberLoop;

struct FiberOptions {
  // Size of a fiber's stack. Untouched pages cost address space only.
  size_t stack_bytes = 256u << 10;
  // Fibers that a thread may have begun and not ended. Beyond it requests wait in the queue.
  size_t max_live = 1024;
};

// A Fiber is a stack and the task that runs on it. Any thread may call Wake(); only the fiber
// itself calls the rest.
class Fiber : private Timer {
 public:
  // The fiber that this code runs on; null on a plain thread.
  static Fiber* Current();

  // For loops that may never wait: steps aside if this fiber has run for so long that other fibers,
  // new requests and events are to have a turn. Cheap; does nothing on a plain thread.
  static void YieldIfLong() {
    if (Fiber* const fiber = Current(); fiber != nullptr && ++fiber->passes_ % kPassesALook == 0)
      fiber->LookAtTime();
  }
  // Steps aside until Wake() or `deadline`. May return early: test the condition again.
  void Suspend(Deadline deadline);
  // Makes it run again; if it is not suspended, its next Suspend() may return early. Never blocks.
  // Allowed after the task has ended, as long as the loop exists.
  void Wake();
  // Begins, or ends, to add up the time spent suspended.
  void TimeSuspensions(bool on) { timed_ = on, suspended_ = Nanos::zero(); }
  Nanos suspended() const { return suspended_; }

  // For signal handlers: the guard below the stack, and the name of the task.
  bool InGuard(const void* address) const;
  std::string_view task_name() const { return task_ == nullptr ? "?" : task_->name(); }

 private:
  friend class FiberLoop;
  static constexpr uint32_t kPassesALook = 8;
  struct Context;
  explicit Fiber(FiberLoop* loop);
  ~Fiber();
  void LookAtTime();
  [[noreturn]] void Main();
  void SwitchOut();

  FiberLoop* const loop_;
  std::unique_ptr<Context> context_;
  // Owned by the loop's thread.
  Task* task_ = nullptr;
  TaskKind* kind_ = nullptr;  // of the task
  WaitHint hint_;
  Nanos suspended_{0};
  bool timed_ = false;
  bool waiting_ = false;  // suspended, and not resumed since
  uint32_t passes_ = 0;   // of YieldIfLong()
  TimePoint seen_at_;     // the first look at the time since it was resumed; zero: none
  // Atomic: in one of the loop's two ready lists. The thread that sets it (acq_rel) puts the fiber
  // there. The loop clears it (acq_rel) before it resumes the fiber.
  std::atomic<bool> ready_{false};
  Fiber* next_ = nullptr;  // in that list, guarded by ready_
};

// Only its thread uses a FiberLoop; any thread may call Rouse() and run().
class FiberLoop {
 public:
  explicit FiberLoop(const FiberOptions& options);
  // REQUIRES: no live fiber.
  ~FiberLoop();
  FiberLoop(const FiberLoop&) = delete;
  FiberLoop& operator=(const FiberLoop&) = delete;
  // The reason why there is no poller, or OK.
  const absl::Status& status() const { return poller_->status(); }

  // The poller on which the connections of this loop's fibers are registered.
  const std::shared_ptr<Poller>& poller() const { return poller_; }
  size_t live() const { return live_; }
  bool full() const { return live_ >= options_.max_live; }
  // How many times fibers stepped aside because they had run for long.
  uint64_t yields() const { return yields_; }

  // Runs `task` on a fiber until it first waits, or ends. False if it did not begin: the loop is
  // full, or no memory is left for a stack.
  bool Start(Task* task, const WaitHint& hint);
  // Lets `task` begin when the thread next runs fibers. Returns as Start() does.
  bool Spawn(Task* task, const WaitHint& hint);
  // True if RunReady() would run one.
  bool HasReady();
  // Resumes the fibers that were ready at the call.
  void RunReady();

  // Handles the events that have come. Without any, waits for an event, a ready fiber or a due
  // timer, unless the epoch of `seat` is no longer `ticket`. Polls if there is a `spin` budget.
  void Wait(const Parker& seat, uint32_t ticket, SpinBudget* spin);
  // Handles the events that have come, without waiting.
  void Poll();
  // The present run of a fiber: its number, odd while the fiber runs and never the same again, and
  // the kind of its task; null if it has none, or if the fiber has just been exchanged. Any thread.
  struct Run {
    uint64_t number = 0;
    TaskKind* kind = nullptr;
    bool running() const { return number % 2 == 1; }
  };
  Run run() const;

  // Ends the Wait() in progress. A waker advances the epoch of the seat first.
  void Rouse();

 private:
  friend class Fiber;
  struct List {
    Fiber* head = nullptr;
    Fiber* tail = nullptr;
    void Push(Fiber* fiber);
    Fiber* Pop();
  };

  Fiber* Take();
  void Resume(Fiber* fiber);
  void TakeRemote();
  // `late`: timers may be due.
  void HandleEvents(bool late);
  void ExpireTimers();

  const FiberOptions options_;
  const std::shared_ptr<Poller> poller_;

  // Owned by the loop's thread.
  std::vector<std::unique_ptr<Fiber, void (*)(Fiber*)>> fibers_;
  std::vector<Fiber*> free_;  // last-in first-out: the stack used last is warm
  List ready_;
  TimerHeap timers_;
  std::vector<Poller::Ready> events_;
  size_t live_ = 0;
  uint64_t yields_ = 0;
  struct Main;
  const std::unique_ptr<Main> main_;

  // Atomic: a stack of fibers that other threads made ready. They push, the loop takes all.
  std::atomic<Fiber*> remote_{nullptr};
  // Atomic: run(). The loop's thread writes the kind, then the number (release, each). A reader
  // takes the number, the kind and the number (acquire): the same twice, and they belong together.
  std::atomic<uint64_t> run_number_{0};
  std::atomic<TaskKind*> run_kind_{nullptr};
  // Atomic: the thread is in its poller, or about to go there. See F3.
  std::atomic<bool> sleeping_{false};
};

// Sleeps without blocking the thread if the model allows it. For handlers.
void SleepUntil(Deadline deadline);

}  // namespace curtail
