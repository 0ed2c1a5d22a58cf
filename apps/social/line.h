// SPDX-License-Identifier: Apache-2.0
//
// line.h - a bound of how much of something goes on at once, before which coroutines stand in line.
//
//   const absl::StatusOr<Line::Place> place = co_await line.Enter(ctx);
//   if (!place.ok()) co_return place.status();
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
#include "curtail/rpc/context.h"

namespace curtail::social {

// A Line has so many places, which go to callers in the order of arrival. Thread-safe.
class Line {
 public:
  class Turn;
  // A Place is its holder's until its end. Then the first of the line has it. Thread-compatible.
  class [[nodiscard]] Place {
   public:
    Place(Place&& other) noexcept : line_(std::exchange(other.line_, nullptr)) {}
    Place& operator=(Place&&) = delete;
    ~Place() {
      if (line_ != nullptr) line_->Leave();
    }

   private:
    friend class Turn;
    explicit Place(Line& line) : line_(&line) {}
    Line* line_;
  };

  // `most_waiting` callers may stand in line. REQUIRES: there is a place.
  Line(int places, size_t most_waiting) : places_(places), most_waiting_(most_waiting) {}
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  // co_await line.Enter(ctx) ends with an absl::StatusOr<Place>. A caller waits as the threading
  // model waits: under synchronous ones it keeps its thread, under the others it has none.
  // Errors: RESOURCE_EXHAUSTED at once if the line is full; DEADLINE_EXCEEDED and CANCELLED of
  // `ctx`, which lives until then. A caller in line hears of these two when a place is given back,
  // or another caller finds the line full: no place is held for long.
  Turn Enter(const Context& ctx);

  // How many callers stand in line.
  size_t waiting() const;

 private:
  // True: it stands in line, and may be called, and gone, before this returns. Else it has its result.
  bool Queue(Turn& turn);
  void Leave();
  // Removes those that are not to wait any longer.
  void RemoveLate(std::vector<Turn*>* late) CURTAIL_REQUIRES(mu_);

  const int places_;
  const size_t most_waiting_;

  mutable Mutex mu_;
  int taken_ CURTAIL_GUARDED_BY(mu_) = 0;              // all of them, while there is a line
  std::deque<Turn*> waiting_ CURTAIL_GUARDED_BY(mu_);  // oldest first
};

// The wait of one caller, on its stack or in its frame.
class [[nodiscard]] Line::Turn final : private Task {
 public:
  Turn(Line& line, const Context& ctx) : line_(line), ctx_(ctx), deadline_(ctx.deadline()) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  bool await_ready();
  bool await_suspend(std::coroutine_handle<> self);
  absl::StatusOr<Place> await_resume();

 private:
  friend class Line;
  static constexpr uint32_t kCalled = Parker::Signal(0);

  // True if it is not to wait any longer; then it has its error.
  bool IsLate();
  // Has the caller go on. It may be gone afterwards.
  void Call();
  void Run(const WaitHint& hint) override;
  std::string_view name() const override { return "a caller in a line"; }

  Line& line_;
  const Context& ctx_;
  const Deadline deadline_;
  absl::Status status_;  // OK: it has a place
  Parker called_;
  // A coroutine that has left its thread, and what resumes it.
  std::coroutine_handle<> coroutine_;
  Executor* executor_ = nullptr;
};

}  // namespace curtail::social
