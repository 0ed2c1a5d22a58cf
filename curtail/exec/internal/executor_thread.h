// SPDX-License-Identifier: Apache-2.0
//
// executor_thread.h - one thread of an Executor, and the table of roles. Private to executor*.cc.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "curtail/exec/executor.h"

namespace curtail {

namespace internal {

// Sets of the values of an axis, one bit for each.
template <class Axis>
constexpr unsigned AxisBit(Axis value) {
  return 1u << static_cast<unsigned>(value);
}
inline constexpr unsigned kInlined = AxisBit(Execution::kInline);
inline constexpr unsigned kDispatched = AxisBit(Execution::kDispatch);
inline constexpr unsigned kOnThreads = AxisBit(Waiting::kSync) | AxisBit(Waiting::kAsync);
inline constexpr unsigned kOnFibers = AxisBit(Waiting::kFiber);
inline constexpr unsigned kAny = ~0u;

}  // namespace internal

// Tells a fiber loop that the reception has events: its poller is nested in the loop's.
struct Executor::ReceptionSignal final : PollHandler {
  void OnEvents(uint32_t, TaskList*) override { ready = true; }
  // Owned by the loop's thread. Events may be there.
  bool ready = false;
  // ... and are reported to it.
  bool armed = false;
  // The loop's poller holds the reception's.
  bool nested = false;
};

// A Part is what a thread does in a role: the parts that models are composed of, as a table.
struct Executor::Part {
  // The models that have the role.
  unsigned executions;
  unsigned waitings;
  int Config::* pool;           // how many threads have the role then
  Station Executor::* station;  // of the tasks it runs or receives
  Receiver* const Executor::* source;
  bool receives;
  bool runs;
  bool fibers;  // its tasks run on fibers
  Seat seat;    // where it parks

  bool In(const Model& model) const {
    return (executions & internal::AxisBit(model.execution)) != 0 &&
           (waitings & internal::AxisBit(model.waiting)) != 0;
  }
};

// clang-format off
inline constexpr Executor::Part Executor::kParts[kRoles] = {
    // executions             waitings              pool               station                source                        receives runs   fibers seat
    {0,                       0,                    nullptr,           nullptr,               nullptr,                      false,   false, false, kSleepers},    // kNone
    {internal::kAny,          internal::kAny,       &Config::response, &Executor::response_,  &Executor::response_source_,  true,    true,  false, kResponders},  // kResponse
    {internal::kDispatched,   internal::kAny,       &Config::network,  &Executor::reception_, &Executor::reception_source_, true,    false, false, kReceivers},   // kNetwork
    {internal::kInlined,      internal::kOnThreads, &Config::network,  &Executor::reception_, &Executor::reception_source_, true,    true,  false, kRunners},     // kInline
    {internal::kDispatched,   internal::kOnThreads, &Config::workers,  &Executor::reception_, nullptr,                      false,   true,  false, kRunners},     // kWorker
    {internal::kInlined,      internal::kOnFibers,  &Config::network,  &Executor::reception_, &Executor::reception_source_, true,    true,  true,  kRunners},     // kFiberInline
    {internal::kDispatched,   internal::kOnFibers,  &Config::workers,  &Executor::reception_, nullptr,                      false,   true,  true,  kRunners},     // kFiberWorker
};
// clang-format on

struct Executor::Thread {
  explicit Thread(uint32_t i) : index(i) {}
  // Fibers that began and have not ended. For the thread itself.
  size_t fibers() const {
    const FiberLoop* const own = loop.load(std::memory_order_relaxed);
    return own == nullptr ? 0 : own->live();
  }

  const uint32_t index;
  Parker parker;
  std::thread thread;
  // Set once, under mu_, before the first config with fibers; used by the thread itself.
  std::unique_ptr<FiberLoop> loop_owner;
  std::shared_ptr<ReceptionSignal> signal;
  // Atomic: the same loop (release), for threads that rouse this one (acquire). A thread that took this one from its
  // seat before there was a loop, and sees none, rouses it from its Parker.
  std::atomic<FiberLoop*> loop{nullptr};
  // Owned by the thread itself.
  std::vector<Poller::Ready> events;
  bool held = false;      // it ran tasks since it last flushed
  int steps = 0;          // on fibers, since it last looked for events
  TimePoint batch_began;  // when the first request since then began; zero: there was none
  TimePoint last_began;   // when the latest request began; zero: the thread has waited since
  Nanos batch_time{0};    // how long this batch may last before the thread looks again
  bool fair = false;      // one of its fibers has yielded: see F4
  TimePoint now;  // what the clock said at the end of the step before; zero: it was not read, or is stale
  // Atomic, relaxed: waits for events or replies; for the sensors.
  std::atomic<bool> waits{false};
  // Atomic, relaxed: the system's number of the thread, for the guard; zero before it runs.
  std::atomic<int> tid{0};
  // Owned by the guard: FiberLoop::Run::number at its last look, the look that saw it first, and the CPU time used by then.
  uint64_t run_seen = 0;
  TimePoint run_since;
  Nanos cpu_seen{0};
  // Guarded by mu_.
  Hold hold = Hold::kNone;
  Role role = kNone;
  bool busy = false;     // runs a task that may wait on the thread
  uint64_t settled = 0;  // Executor::role_changes_ when it last settled
  bool parked = false;
  bool seated = false;     // is in a seat, once
  size_t live_fibers = 0;  // for the sensors, for switches, and for F5 of executor_fiber.cc
};

// A thread in a run, as a look of the guard found it.
struct Executor::Suspect {
  Thread* thread;
  FiberLoop::Run run;
  bool lasts;  // the look before found the same run, and no look found it asleep
  bool known;  // that it computes, since an earlier look
  bool asleep = false;
  bool computes = false;
};

inline void Executor::UnparkLast(Seat seat) {
  if (!seats_[seat].empty()) Rouse(TakeLast(seat));
}

inline SpinBudget* Executor::spin() {
  return config_.model.reception == Reception::kPoll ? &spin_budget_ : nullptr;
}

}  // namespace curtail
