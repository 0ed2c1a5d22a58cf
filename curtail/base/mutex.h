// SPDX-License-Identifier: Apache-2.0
//
// mutex.h - a mutex with thread-safety annotations, and the lock that goes with it.
//
// A request takes a dozen mutexes that no other thread holds, so that case is inlined: one atomic
// operation each way, where std::mutex calls into two libraries. ThreadSanitizer hears of each.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "curtail/base/thread_annotations.h"

#if defined(__SANITIZE_THREAD__)
#define CURTAIL_TSAN_MUTEX 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CURTAIL_TSAN_MUTEX 1
#endif
#endif
#ifdef CURTAIL_TSAN_MUTEX
#include <sanitizer/tsan_interface.h>
#endif

namespace curtail {
namespace internal {

#ifdef CURTAIL_MODEL  // tests/model knows std::mutex
class MutexWord {
 public:
  void Lock() { mu_.lock(); }
  void Unlock() { mu_.unlock(); }
  bool TryLock() { return mu_.try_lock(); }

 private:
  std::mutex mu_;
};
#else
class MutexWord {
 public:
  void Lock() {
    if (!TryLock()) [[unlikely]]
      Await(&word_);
  }
  void Unlock() {
    if (word_.exchange(kFree, std::memory_order_release) != kHeld) [[unlikely]]
      WakeOne(&word_);
  }
  bool TryLock() {
    uint32_t word = kFree;
    return word_.compare_exchange_strong(word, kHeld, std::memory_order_acquire, std::memory_order_relaxed);
  }

 private:
  // kAwaited: held, and a thread may sleep until it is not.
  enum Word : uint32_t { kFree, kHeld, kAwaited };

  // Returns when this thread holds it.
  static void Await(std::atomic<uint32_t>* word);
  // Uses the address alone: the mutex may be gone.
  static void WakeOne(const std::atomic<uint32_t>* word);

  // Atomic: a Word. Taking it (acquire) pairs with Unlock() (release).
  std::atomic<uint32_t> word_{kFree};
};
#endif

}  // namespace internal

// A Mutex excludes other threads. A thread never holds it across a system call that may block, nor
// across user code.
class CURTAIL_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

#ifdef CURTAIL_TSAN_MUTEX
  ~Mutex() { __tsan_mutex_destroy(this, __tsan_mutex_not_static); }
  void Lock() CURTAIL_ACQUIRE() {
    __tsan_mutex_pre_lock(this, 0);
    word_.Lock();
    __tsan_mutex_post_lock(this, 0, 0);
  }
  void Unlock() CURTAIL_RELEASE() {
    __tsan_mutex_pre_unlock(this, 0);
    word_.Unlock();
    __tsan_mutex_post_unlock(this, 0);
  }
  bool TryLock() CURTAIL_TRY_ACQUIRE(true) {
    __tsan_mutex_pre_lock(this, __tsan_mutex_try_lock);
    const bool held = word_.TryLock();
    __tsan_mutex_post_lock(this, __tsan_mutex_try_lock | (held ? 0 : __tsan_mutex_try_lock_failed), 0);
    return held;
  }
#else
  void Lock() CURTAIL_ACQUIRE() { word_.Lock(); }
  void Unlock() CURTAIL_RELEASE() { word_.Unlock(); }
  bool TryLock() CURTAIL_TRY_ACQUIRE(true) { return word_.TryLock(); }
#endif

 private:
  internal::MutexWord word_;
};

// Holds a Mutex for a scope; Unlock() and Lock() allow a gap in it.
class CURTAIL_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mu) CURTAIL_ACQUIRE(mu) : mu_(mu), held_(true) { mu_.Lock(); }
  ~MutexLock() CURTAIL_RELEASE() {
    if (held_) mu_.Unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void Unlock() CURTAIL_RELEASE() { mu_.Unlock(), held_ = false; }
  void Lock() CURTAIL_ACQUIRE() { mu_.Lock(), held_ = true; }

 private:
  Mutex& mu_;
  bool held_;
};

}  // namespace curtail
