// SPDX-License-Identifier: Apache-2.0
//
// co.h - the return type of a coroutine.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "curtail/exec/internal/recycler.h"

namespace curtail {

// A Co is a coroutine that ends with a T. It does not begin before it is awaited or started. One
// thread at a time may use it.
template <class T>
class [[nodiscard]] Co {
 public:
  struct promise_type : InBlock {
    Co get_return_object() { return Co(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    struct Final {
      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> self) noexcept {
        promise_type& promise = self.promise();
        if (promise.awaiter) return promise.awaiter;
        promise.done(promise.arg);  // may destroy the coroutine
        return std::noop_coroutine();
      }
      void await_resume() noexcept {}
    };
    Final final_suspend() noexcept { return {}; }
    void return_value(T v) { value.emplace(std::move(v)); }
    void unhandled_exception() { thrown = std::current_exception(); }

    std::optional<T> value;
    std::exception_ptr thrown;
    std::coroutine_handle<> awaiter;
    void (*done)(void*) = nullptr;
    void* arg = nullptr;
  };

  Co(Co&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Co& operator=(Co&&) = delete;
  ~Co() {
    if (handle_) handle_.destroy();
  }

  // Begins. The thread on which it ends calls done(arg), perhaps before this returns.
  void Start(void (*done)(void*), void* arg) {
    handle_.promise().done = done;
    handle_.promise().arg = arg;
    handle_.resume();
  }
  // Returns its result, or throws its exception.
  T Take() {
    if (handle_.promise().thrown) std::rethrow_exception(handle_.promise().thrown);
    return *std::move(handle_.promise().value);
  }

  auto operator co_await() && {
    struct Awaiter {
      Co co;
      bool await_ready() { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiter) {
        co.handle_.promise().awaiter = awaiter;
        return co.handle_;
      }
      T await_resume() { return co.Take(); }
    };
    return Awaiter{std::move(*this)};
  }

 private:
  explicit Co(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

// The return type of a coroutine handler.
using Coroutine = Co<absl::Status>;

}  // namespace curtail
