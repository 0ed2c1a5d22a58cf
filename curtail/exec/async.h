// SPDX-License-Identifier: Apache-2.0
//
// async.h - run a function beside the present one: on a fiber in fiber models, on a parked thread of the pool in
// the others; and run what really blocks where it holds nobody up.
//
// std::async starts a thread for every call, which the fiber study (Boost fibers for RPC) found to take a
// quarter of a service's time under load. async() starts none.
#pragma once

#include <atomic>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "curtail/exec/parker.h"
#include "curtail/exec/task.h"

namespace curtail {

namespace internal {

// A function to be run once, by whoever claims it first: the thread it was given to, or the one that wants its
// result. Two references: the runner's and the future's.
class AsyncState : public Task {
 public:
  // Gives it to a fiber, or to a thread. If there is neither, it waits to be claimed.
  void Launch();
  // Gives it to a thread of the pool, never to a fiber.
  void LaunchAside();
  // Runs it here, unless it has begun elsewhere.
  void RunIfUnclaimed();
  // Returns when it has ended.
  void Wait();
  bool done() const { return (done_.Ticket() & kDone) != 0; }
  void Unref();

 protected:
  virtual ~AsyncState() = default;
  virtual void Execute() = 0;

 private:
  static constexpr uint32_t kDone = Parker::Signal(0);
  void Run(const WaitHint& hint) override;
  void Drop() override { Unref(); }
  std::string_view name() const override { return "a function given to curtail::async"; }

  Parker done_;
  std::atomic<bool> claimed_{false};  // who sets it (acq_rel) runs the function
  std::atomic<int> refs_{2};
};

template <class F>
class AsyncCall final : public AsyncState {
 public:
  using Result = std::invoke_result_t<F&>;
  using Stored = std::conditional_t<std::is_void_v<Result>, std::monostate, Result>;
  explicit AsyncCall(F f) : function_(std::move(f)) {}

  Result Take() {
    if (thrown_) std::rethrow_exception(thrown_);
    if constexpr (!std::is_void_v<Result>) return *std::move(result_);
  }

 private:
  void Execute() override {
    try {
      if constexpr (std::is_void_v<Result>) {
        (*function_)();
      } else {
        result_.emplace((*function_)());
      }
    } catch (...) {
      thrown_ = std::current_exception();
    }
    function_.reset();  // what it holds belongs to the caller, who may be gone once this is done
  }

  std::optional<F> function_;
  std::optional<Stored> result_;
  std::exception_ptr thrown_;
};

}  // namespace internal

// A Future is the result of a function that async() runs. Its destructor waits for the function to end. For
// one thread, or fiber, at a time.
template <class F>
class [[nodiscard]] Future {
 public:
  using Result = typename internal::AsyncCall<F>::Result;
  explicit Future(internal::AsyncCall<F>* call) : call_(call) {}
  Future(Future&& other) noexcept : call_(std::exchange(other.call_, nullptr)) {}
  Future& operator=(Future&&) = delete;
  ~Future() {
    if (call_ == nullptr) return;
    wait();
    call_->Unref();
  }

  // Waits as the model waits; runs the function here if it has not begun.
  void wait() {
    call_->RunIfUnclaimed();
    call_->Wait();
  }
  // The result, or throws what the function threw. Once.
  Result get() {
    wait();
    return call_->Take();
  }
  bool ready() const { return call_->done(); }

 private:
  internal::AsyncCall<F>* call_;
};

// Runs f() beside the caller: under fiber models on a fiber of this thread; under other models on a thread of
// the pool that has no role now; outside of servers on a new thread. If none is to be had f runs in get().
// f may wait, and call other services with a Context of its own: async(ctx, f) in curtail/rpc/async.h.
template <class F>
Future<F> async(F f) {
  auto* const call = new internal::AsyncCall<F>(std::move(f));
  call->Launch();
  return Future<F>(call);
}

// Calls f(), which blocks its thread (a file, a database driver, a std::mutex held for long), and returns its
// result. On a fiber f runs on a thread of the pool that has no role now while the fiber waits
// (ServerOptions::max_threads says how many there are; if none is free f runs here, and holds the other fibers
// up). Elsewhere f runs here.
template <class F>
std::invoke_result_t<F&> Offload(F f) {
  auto* const call = new internal::AsyncCall<F>(std::move(f));
  call->LaunchAside();
  const Future<F> future(call);
  call->Wait();
  return call->Take();
}

}  // namespace curtail
