// SPDX-License-Identifier: Apache-2.0
//
// watch.h - cancels calls of the soak test at random moments, and finds those that do not end.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <thread>

#include "curtail/base/clock.h"
#include "curtail/rpc/context.h"

namespace curtail::soak {

// A Watch looks every 2 ms at the call that each thread has under way. A call that has not ended within `bound` of the
// time at which it has to ends the program, with a core. Thread-safe.
class Watch {
 public:
  // A Slot is one thread's place. The thread calls Begin() and End() in turn.
  class Slot {
   public:
    // `ctx` may be null. It is cancelled at `cancel_at`, and the call has to end by `due`, or once it was cancelled.
    void Begin(std::string kind, Context* ctx, TimePoint cancel_at, TimePoint due);
    void End();

   private:
    friend class Watch;
    Mutex mu_;
    std::string kind_ CURTAIL_GUARDED_BY(mu_);
    Context* ctx_ CURTAIL_GUARDED_BY(mu_) = nullptr;
    TimePoint cancel_at_ CURTAIL_GUARDED_BY(mu_) = TimePoint::max();
    TimePoint due_ CURTAIL_GUARDED_BY(mu_) = TimePoint::max();
  };

  explicit Watch(Nanos bound);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  Slot* NewSlot();
  // How often the machine stood still for a second or more: deadlines passed meanwhile, and prove nothing.
  uint64_t stalls() const { return stalls_.load(std::memory_order_relaxed); }
  // True if it did since `stalls` was read, or does now.
  bool StalledSince(uint64_t stalls) const;

 private:
  void Run();
  void Look(Slot& slot, TimePoint now, Nanos stall);

  const Nanos bound_;
  // Atomic: counters for the report; they order nothing.
  std::atomic<uint64_t> stalls_{0};
  std::atomic<int64_t> last_look_;
  std::mutex mu_;
  std::condition_variable stopped_;
  // Guarded by mu_.
  bool stop_ = false;
  std::list<Slot> slots_;

  std::thread thread_;
};

}  // namespace curtail::soak
