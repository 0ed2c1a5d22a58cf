// SPDX-License-Identifier: Apache-2.0
//
// executor_thread.h - one thread of an Executor. Private to executor.cc and executor_fiber.cc.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "curtail/exec/executor.h"

namespace curtail {

// Tells a fiber loop that the reception has events: its poller is nested in the loop's.
struct Executor::ReceptionSignal final : PollHandler {
  void OnEvents(uint32_t, TaskList*) override { ready = true; }
  // Owned by the loop's thread. Events may be there.
  bool ready = false;
  // ... and are reported to it.
  bool armed = false;
};

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
  // Atomic: the same loop (release), for those who rouse the thread (acquire). Who took the thread from its seat
  // before there was a loop, and sees none, rouses it from its Parker.
  std::atomic<FiberLoop*> loop{nullptr};
  // Owned by the thread itself.
  std::vector<Poller::Ready> events;
  bool held = false;  // it ran tasks since it last flushed
  int steps = 0;      // on fibers, since it last looked for events
  TimePoint now;      // what the clock said at the end of the step before; zero: it was not read, or is stale
  // Atomic, relaxed: waits for events or replies; for the sensors.
  std::atomic<bool> waits{false};
  // Guarded by mu_.
  Role role = kNone;
  uint64_t settled = 0;  // Executor::role_changes_ when it last settled
  bool parked = false;
  size_t live_fibers = 0;  // for the sensors
};

}  // namespace curtail
