// SPDX-License-Identifier: Apache-2.0
//
// sync.h - a mutex and a condition variable for handlers: a request waits on them as its model
// waits.
//
// A std::mutex that is contended, or held across a fan-out, stops all fibers of its thread. It can
// stop the very fiber that would release it. These types let the thread run other fibers. They work
// on any thread, in a pool or not.
#pragma once

#include <mutex>

#include "curtail/base/clock.h"
#include "curtail/base/mutex.h"
#include "curtail/exec/parker.h"

namespace curtail {

namespace internal {

// The waiters, oldest first.
class WaitList {
 public:
  struct Entry {
    static constexpr uint32_t kGranted = Parker::Signal(0);
    Parker parker;
    Entry* prev = nullptr;
    Entry* next = nullptr;
    bool listed = false;
    // Sleeps until granted, or until `deadline`; true if it was granted.
    bool Wait(Deadline deadline);
    // The entry may be gone afterwards.
    void Grant() { parker.Notify(kGranted); }
  };
  bool empty() const { return head_ == nullptr; }
  void Push(Entry& entry);
  Entry* Pop();
  void Remove(Entry& entry);

 private:
  Entry* head_ = nullptr;
  Entry* tail_ = nullptr;
};

}  // namespace internal

// A FiberMutex goes to its waiters in the order of arrival. For std::lock_guard and
// std::unique_lock. A handler may hold it while it waits for other services.
class FiberMutex {
 public:
  FiberMutex() = default;
  FiberMutex(const FiberMutex&) = delete;
  FiberMutex& operator=(const FiberMutex&) = delete;

  void lock();
  bool try_lock();
  void unlock();

 private:
  Mutex mu_;
  bool held_ CURTAIL_GUARDED_BY(mu_) = false;
  internal::WaitList waiters_ CURTAIL_GUARDED_BY(mu_);
};

// A FiberCondition belongs to one FiberMutex, which its waiters hold.
class FiberCondition {
 public:
  FiberCondition() = default;
  FiberCondition(const FiberCondition&) = delete;
  FiberCondition& operator=(const FiberCondition&) = delete;

  // Releases `lock`, waits for a notification or `deadline`, and takes it again. False at the
  // deadline. Every return is due to one of the two, but the condition may have changed again: test
  // it.
  bool wait_until(std::unique_lock<FiberMutex>& lock, Deadline deadline);
  void wait(std::unique_lock<FiberMutex>& lock) { wait_until(lock, Deadline::Infinite()); }
  void notify_one();
  void notify_all();

 private:
  Mutex mu_;
  internal::WaitList waiters_ CURTAIL_GUARDED_BY(mu_);
};

}  // namespace curtail
