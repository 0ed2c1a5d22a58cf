// SPDX-License-Identifier: Apache-2.0
//
// shim.h - gives curtail's sources other primitives, without a change to them.
//
// The compiler reads this file before each source (-include). Sources in namespace curtail that say
// std::atomic then find curtail::std::atomic, because the inner namespace is looked up first; all other names
// of std are found through the using directive. In the same way unqualified system calls find the functions
// below. So the code that runs is the real one, line by line; only std's atomics, mutexes, threads and clock,
// and the kernel, are the scheduler's.
//
// Everything that is linked with it must be compiled with it, or keep to types that it does not replace.
#pragma once

#define CURTAIL_MODEL 1

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>

#include "tests/model/kernel.h"
#include "tests/model/scheduler.h"

namespace curtail::model {

// Notices that its owner is used after its end, as long as the memory has no other use (see Fresh).
class Alive {
 public:
  Alive() = default;
  Alive(const Alive&) = delete;
  ~Alive() { mark_ = 0; }  // volatile, or the compiler would drop a last store
  void Verify() const { Check(mark_ == kMark, "use of an object after its end"); }

 private:
  static constexpr uint32_t kMark = 0x600dbeef;
  volatile uint32_t mark_ = kMark;
};

// std::atomic. Its operations are sequentially consistent whatever order is asked for, but a load may miss
// the last write (Options::stale_reads). Weak operations never fail for nothing.
template <class T>
class Atomic {
  using Order = ::std::memory_order;

 public:
  Atomic() : value_(), before_() {}
  Atomic(T value) : value_(value), before_(value) {}
  Atomic(const Atomic&) = delete;

  T load(Order order = kOrder) const {
    At("load");
    if (ReadsStale(last_write_, order == kOrder)) return before_;
    return ReadLast(&last_write_, Acquires(order)), value_;
  }
  void store(T value, Order order = kOrder) { At("store"), Write(value, order); }
  T exchange(T value, Order order = kOrder) { return At("exchange"), Exchange(value, order); }
  bool compare_exchange_strong(T& expected, T desired, Order order = kOrder, Order = kOrder) {
    At("compare-exchange");
    ReadLast(&last_write_, true);
    if (value_ != expected) return expected = value_, false;
    return Write(desired, order), true;
  }
  bool compare_exchange_weak(T& expected, T desired, Order order = kOrder, Order failure = kOrder) {
    return compare_exchange_strong(expected, desired, order, failure);
  }
  template <class D>
  T fetch_add(D by, Order order = kOrder) {
    return At("fetch_add"), Exchange(static_cast<T>(value_ + by), order);
  }
  template <class D>
  T fetch_sub(D by, Order order = kOrder) {
    return At("fetch_sub"), Exchange(static_cast<T>(value_ - by), order);
  }
  T fetch_or(T by, Order order = kOrder) {
    return At("fetch_or"), Exchange(static_cast<T>(value_ | by), order);
  }
  T fetch_and(T by, Order order = kOrder) {
    return At("fetch_and"), Exchange(static_cast<T>(value_ & by), order);
  }

  operator T() const { return load(); }
  T operator=(T value) { return store(value), value; }
  T operator++() { return fetch_add(1) + 1; }
  T operator--() { return fetch_sub(1) - 1; }
  T operator++(int) { return fetch_add(1); }
  T operator--(int) { return fetch_sub(1); }

  // The value that a futex sees: no scheduling point of its own.
  T Peek() const { return value_; }

 private:
  static constexpr Order kOrder = ::std::memory_order_seq_cst;
  static bool Acquires(Order order) {
    return order != ::std::memory_order_relaxed && order != ::std::memory_order_release;
  }
  void At(const char* what) const {
    AtomicPoint(what, this);
    alive_.Verify();
  }
  void Write(T value, Order order) {
    before_ = ::std::exchange(value_, value);
    Wrote(&last_write_, order == kOrder);
  }
  T Exchange(T value, Order order) {
    ReadLast(&last_write_, Acquires(order));
    return Write(value, order), before_;
  }
  T value_;
  T before_;
  mutable LastWrite last_write_;
  Alive alive_;
};

class StdMutex {
 public:
  StdMutex() = default;
  StdMutex(const StdMutex&) = delete;
  void lock() {
    Block("lock", this, [this] { return !held_; });
    alive_.Verify();
    held_ = true;
  }
  bool try_lock() {
    Point("try_lock", this);
    alive_.Verify();
    return !::std::exchange(held_, true);
  }
  // No point: what others could do before it, they can do before the lock or after this.
  void unlock() {
    alive_.Verify();
    held_ = false;
  }

 private:
  bool held_ = false;
  Alive alive_;
};

class StdThread {
 public:
  using id = ::std::thread::id;
  StdThread() = default;
  template <class F>
  explicit StdThread(F body) : id_(Spawn(::std::move(body))) {}
  StdThread(StdThread&& other) noexcept : id_(::std::exchange(other.id_, -1)) {}
  StdThread& operator=(StdThread&& other) noexcept { return ::std::swap(id_, other.id_), *this; }
  ~StdThread() { Check(!joinable(), "a thread was not joined"); }
  bool joinable() const { return id_ >= 0; }
  void join() { model::Join(::std::exchange(id_, -1)); }
  void detach() { id_ = -1; }
  pthread_t native_handle() const { return static_cast<pthread_t>(id_); }

 private:
  int id_ = -1;
};

// An object whose memory is not used again within a schedule, so that a late use of it is noticed. Its bytes
// are overwritten at its end.
template <class T>
class Fresh {
 public:
  template <class... Args>
  explicit Fresh(Args&&... args) : object_(new(Storage()) T(::std::forward<Args>(args)...)) {}
  Fresh(const Fresh&) = delete;
  ~Fresh() {
    object_->~T();
    for (size_t i = 0; i < sizeof(T); ++i) reinterpret_cast<volatile unsigned char*>(object_)[i] = 0xdd;
  }
  T& operator*() const { return *object_; }
  T* operator->() const { return object_; }
  T* get() const { return object_; }

 private:
  static void* Storage() { return FreshMemory(sizeof(T)); }
  T* const object_;
};

}  // namespace curtail::model

namespace curtail::std {

using namespace ::std;

template <class T>
using atomic = model::Atomic<T>;
using mutex = model::StdMutex;
using thread = model::StdThread;

namespace chrono {
using namespace ::std::chrono;
struct steady_clock {
  using duration = ::std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = ::std::chrono::time_point<steady_clock>;
  static constexpr bool is_steady = true;
  static time_point now() { return time_point(duration(model::ReadClock())); }
};
}  // namespace chrono

namespace this_thread {
using namespace ::std::this_thread;
inline void yield() { model::Yield(); }
}  // namespace this_thread

}  // namespace curtail::std

namespace curtail {

// futex(2) -----------------------------------------------------------------------------------------------
template <class Value, class Timeout, class Last>
long syscall(long number, model::Atomic<uint32_t>* word, int op, Value value, Timeout timeout, std::nullptr_t,
             Last) {
  model::Check(number == SYS_futex, "a system call that the model does not have");
  const int command = op & FUTEX_CMD_MASK;
  if (command == FUTEX_WAKE) return model::FutexWake(word, static_cast<int>(value)), 0;
  model::Check(command == FUTEX_WAIT_BITSET, "a futex operation that the model does not have");
  const timespec* until = timeout;
  const auto expected = static_cast<uint32_t>(value);
  model::FutexWait(
      word, [word, expected] { return word->Peek() != expected; },
      until == nullptr ? model::kForever : until->tv_sec * 1'000'000'000 + until->tv_nsec);
  return 0;
}

// epoll_pwait2(2)
using epoll_event = model::EpollEvent;
inline long syscall(long number, int epoll, epoll_event* events, int max, const timespec* timeout,
                    std::nullptr_t, int) {
  model::Check(number == SYS_epoll_pwait2, "a system call that the model does not have");
  return model::EpollWait(epoll, events, max,
                          model::NowNs() + timeout->tv_sec * 1'000'000'000 + timeout->tv_nsec);
}
inline int epoll_wait(int epoll, epoll_event* events, int max, int ms) {
  return model::EpollWait(epoll, events, max, ms < 0 ? model::kForever : model::NowNs() + ms * 1'000'000);
}
// A template, because an argument of the flags' own type would find the real one as well.
template <class Flags>
int epoll_create1(Flags) {
  return model::EpollCreate();
}
inline int epoll_ctl(int epoll, int op, int fd, epoll_event* event) {
  return model::EpollCtl(epoll, op, fd, event);
}
inline int eventfd(unsigned, int) { return model::EventFd(); }
inline ssize_t write(int fd, const void*, size_t size) {
  return model::Write(fd), static_cast<ssize_t>(size);
}
inline int close(int fd) { return model::Close(fd), 0; }
// A byte for each thing that there is to read.
inline ssize_t recv(int fd, void*, size_t, int) {
  const auto n = static_cast<ssize_t>(model::Read(fd));
  if (n == 0) errno = EAGAIN;
  return n == 0 ? -1 : n;
}

// Threads
inline pthread_t pthread_self() { return static_cast<pthread_t>(model::ThreadId()); }
inline int pthread_setname_np(pthread_t, const char*) { return 0; }
inline int sched_yield() { return model::Yield(), 0; }
// This takes another type than the real one, which its argument would find as well.
inline int pthread_sigmask(int, sigset_t*, sigset_t*) { return 0; }
inline int gettid() { return model::ThreadId(); }
inline int UsableCpus() { return model::Cpus(); }

}  // namespace curtail
