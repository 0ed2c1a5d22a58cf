// SPDX-License-Identifier: Apache-2.0
//
// async.h - runs a function beside the present one: on a fiber in fiber models, on a parked thread
// of the pool in the others. Also runs blocking code aside, so that it delays no other fiber.
//
// std::async starts a thread for every call. The fiber study (Boost fibers for RPC) found that this
// takes a quarter of a service's time under load. async() starts no thread.
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

// A function that runs once, on the first thread to claim it: the thread it was given to, or the
// thread that wants its result. It has two references: the runner's and the future's.
class AsyncState : public Task {
 public:
  // Gives it to a fiber, or to a thread. Without either, it waits to be claimed.
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
  std::atomic<bool> claimed_{false};  // the thread that sets it (acq_rel) runs the function
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
    function_.reset();  // its captures belong to the caller, which may be gone once this is done
  }

  std::optional<F> function_;
  std::optional<Stored> result_;
  std::exception_ptr thrown_;
};

}  // namespace internal

// A Future is the result of a function that async() runs. Its destructor waits for the function to
// end. One thread, or fiber, at a time may use it.
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
  // Returns the result, or throws the function's exception. Call once.
  Result get() {
    wait();
    return call_->Take();
  }
  bool ready() const { return call_->done(); }

 private:
  internal::AsyncCall<F>* call_;
};

// Runs f() beside the caller. Under fiber models f runs on a fiber of this thread. Under other
// models it runs on a thread of the pool without a role. Outside of servers it runs on a new
// thread. If no fiber or thread is free, f runs in get(). The function f may wait. It may call
// other services with a Context of its own: async(ctx, f) in curtail/rpc/async.h.
template <class F>
Future<F> async(F f) {
  auto* const call = new internal::AsyncCall<F>(std::move(f));
  call->Launch();
  return Future<F>(call);
}

// Calls f(), which blocks its thread (a file, a database driver, a std::mutex held for long), and
// returns its result. On a fiber, a thread of the pool without a role runs f while the fiber waits.
// If no such thread is free (ServerOptions::max_threads limits them), f runs here and delays the
// other fibers. Elsewhere f runs here.
template <class F>
std::invoke_result_t<F&> Offload(F f) {
  auto* const call = new internal::AsyncCall<F>(std::move(f));
  call->LaunchAside();
  const Future<F> future(call);
  call->Wait();
  return call->Take();
}

}  // namespace curtail
