// SPDX-License-Identifier: Apache-2.0
//
// mutex.h - std::mutex with thread-safety annotations, and the lock that goes with it.
//
// Our own thin type and not absl::Mutex: ThreadSanitizer sees pthread mutexes. It does not see the
// mutexes of a library that was built without it, as distributions build Abseil.
#pragma once

#include <mutex>

#include "curtail/base/thread_annotations.h"

namespace curtail {

// A Mutex excludes other threads. A thread never holds it across a system call that may block, nor
// across user code.
class CURTAIL_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() CURTAIL_ACQUIRE() { mu_.lock(); }
  void Unlock() CURTAIL_RELEASE() { mu_.unlock(); }
  bool TryLock() CURTAIL_TRY_ACQUIRE(true) { return mu_.try_lock(); }

 private:
  std::mutex mu_;
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
