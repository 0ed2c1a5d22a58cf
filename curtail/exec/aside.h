// SPDX-License-Identifier: Apache-2.0
//
// aside.h - a wait that is not a call of another service, for coroutines under all models.
#pragma once

#include <coroutine>
#include <exception>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include "curtail/exec/async.h"
#include "curtail/exec/task.h"
#include "curtail/exec/wait.h"

namespace curtail {

namespace internal {

// A coroutine that has left its thread waits for it. First it runs on a thread without a role, then
// the response pool resumes the coroutine.
class AsideTask : public Task {
 public:
  AsideTask() = default;
  AsideTask(const AsideTask&) = delete;
  AsideTask& operator=(const AsideTask&) = delete;

 protected:
  ~AsideTask() = default;
  // False if no such thread is free; else the coroutine may have gone on before this returns.
  bool Launch(std::coroutine_handle<> coroutine);
  virtual void Execute() = 0;

 private:
  void Run(const WaitHint& hint) override;
  std::string_view name() const override { return "a wait of curtail::Aside"; }

  // Owned by the thread that runs it.
  std::coroutine_handle<> coroutine_;
  Executor* executor_ = nullptr;
  bool executed_ = false;
};

}  // namespace internal

// co_await Aside(f) calls f(), which waits as threads and fibers do, as a call of a Redis does. It
// ends with f's result, or exception. Under synchronous and fiber models f runs here.
//
// Under asynchronous models the coroutine leaves its thread. A thread of the pool without a role
// runs f, and the response pool resumes the coroutine. If no such thread is free, f runs here and
// holds the thread; ServerOptions::max_threads limits them. The result is not void.
template <class F>
class [[nodiscard]] Aside final : private internal::AsideTask {
 public:
  explicit Aside(F f) : f_(std::move(f)) {}

  bool await_ready() {
    const WaitHint& hint = CurrentWait();
    if (hint.waiting == Waiting::kAsync && hint.executor != nullptr) return false;
    Execute();
    return true;
  }
  bool await_suspend(std::coroutine_handle<> self) {
    if (Launch(self)) return true;
    Execute();
    return false;
  }
  std::invoke_result_t<F&> await_resume() {
    if (thrown_) std::rethrow_exception(thrown_);
    return *std::move(result_);
  }

 private:
  void Execute() override {
    try {
      result_.emplace(f_());
    } catch (...) {
      thrown_ = std::current_exception();
    }
  }

  F f_;
  std::optional<std::invoke_result_t<F&>> result_;
  std::exception_ptr thrown_;
};

// co_await Offloading(f) calls f(), which blocks its thread: Offload() (async.h) for coroutines.
// Neither a fiber's thread nor one of an asynchronous pool is held, as long as a thread without a
// role is free. The result is not void.
template <class F>
auto Offloading(F f) {
  return Aside([f = std::move(f)]() mutable { return Offload(std::ref(f)); });
}

}  // namespace curtail
