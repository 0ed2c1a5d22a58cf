// SPDX-License-Identifier: Apache-2.0
//
// semaphore.h - bounds how much of something goes on at once. Coroutines wait for it in line.
//
//   const absl::StatusOr<Semaphore::Permit> permit = co_await semaphore.Acquire(ctx);
//   if (!permit.ok()) co_return permit.status();
#pragma once

#include <coroutine>
#include <cstddef>
#include <deque>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/base/mutex.h"
#include "curtail/exec/executor.h"
#include "curtail/exec/parker.h"
#include "curtail/exec/task.h"

namespace curtail {

// A Semaphore gives its permits to callers in the order of arrival. Thread-safe.
class Semaphore {
 public:
  class Turn;
  // A Permit is its holder's until its end. Then the first in line gets it. Thread-compatible.
  class [[nodiscard]] Permit {
   public:
    Permit(Permit&& other) noexcept : semaphore_(std::exchange(other.semaphore_, nullptr)) {}
    Permit& operator=(Permit&&) = delete;
    ~Permit() {
      if (semaphore_ != nullptr) semaphore_->Release();
    }

   private:
    friend class Turn;
    explicit Permit(Semaphore& semaphore) : semaphore_(&semaphore) {}
    Semaphore* semaphore_;
  };

  // At most `most_waiting` callers stand in line. REQUIRES: permits > 0.
  Semaphore(int permits, size_t most_waiting) : permits_(permits), most_waiting_(most_waiting) {}
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;

  // co_await semaphore.Acquire(ctx) ends with an absl::StatusOr<Permit>. `ctx` is the request's: it
  // has a deadline() and tells whether it is cancelled(). A caller waits as the threading model
  // waits: it keeps its thread under synchronous ones, and holds none under the others.
  // Errors: RESOURCE_EXHAUSTED at once if the line is full; DEADLINE_EXCEEDED and CANCELLED of
  // `ctx`, which lives until then. A caller in line learns of these two when a permit comes back,
  // or when another caller finds the line full: holders keep their permits for a short time.
  template <class Request>
  Turn Acquire(const Request& ctx);

  // How many callers stand in line.
  size_t waiting() const;

 private:
  // True: it stands in line, and may be called, and gone, before this returns. Else it has its
  // result.
  bool Queue(Turn& turn);
  void Release();
  // Removes the callers that wait no longer.
  void RemoveLate(std::vector<Turn*>* late) CURTAIL_REQUIRES(mu_);

  const int permits_;
  const size_t most_waiting_;

  mutable Mutex mu_;
  int taken_ CURTAIL_GUARDED_BY(mu_) = 0;              // all of them, while there is a line
  std::deque<Turn*> waiting_ CURTAIL_GUARDED_BY(mu_);  // oldest first
};

// The wait of one caller, on its stack or in its frame.
class [[nodiscard]] Semaphore::Turn final : private Task {
 public:
  using Cancelled = bool (*)(const void* request);
  Turn(Semaphore& semaphore, Deadline deadline, const void* request, Cancelled cancelled)
      : semaphore_(semaphore), deadline_(deadline), request_(request), cancelled_(cancelled) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  bool await_ready();
  bool await_suspend(std::coroutine_handle<> self);
  absl::StatusOr<Permit> await_resume();

 private:
  friend class Semaphore;
  static constexpr uint32_t kCalled = Parker::Signal(0);

  // True if it waits no longer; then it has its error.
  bool IsLate();
  // Has the caller go on. It may be gone afterwards.
  void Call();
  void Run(const WaitHint& hint) override;
  std::string_view name() const override { return "a caller in line at a semaphore"; }

  Semaphore& semaphore_;
  const Deadline deadline_;
  const void* const request_;
  const Cancelled cancelled_;
  absl::Status status_;  // OK: it has a permit
  Parker called_;
  // A coroutine that has left its thread, and what resumes it.
  std::coroutine_handle<> coroutine_;
  Executor* executor_ = nullptr;
};

template <class Request>
Semaphore::Turn Semaphore::Acquire(const Request& ctx) {
  return {*this, ctx.deadline(), &ctx,
          [](const void* request) { return static_cast<const Request*>(request)->cancelled(); }};
}

}  // namespace curtail
