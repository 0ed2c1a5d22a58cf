// SPDX-License-Identifier: Apache-2.0
//
// ticker.h - calls a function at intervals, on a thread of its own.
#pragma once

#include <functional>
#include <thread>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/exec/parker.h"

namespace curtail {

// A Ticker runs work that must happen even when no request comes. Thread-compatible; the function
// must not call Stop().
class Ticker {
 public:
  // Gets the time; returns the time to sleep until the next call. After an exception that is 1 s.
  using Tick = std::function<Nanos(TimePoint now)>;

  Ticker() = default;
  ~Ticker() { Stop(); }
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  // Starts the thread, named `name` (15 characters at most); it makes the first call at once. Call
  // once. Errors: RESOURCE_EXHAUSTED when the system has no thread.
  absl::Status Start(const char* name, Tick tick);
  // Has the thread make the next call now. Any thread; never blocks.
  void Wake() { parker_.Notify(); }
  // Ends the thread; waits for a call in progress. No effect without Start() or a second time.
  void Stop();

 private:
  static constexpr uint32_t kStop = Parker::Signal(0);

  void Run();

  // Immutable once started.
  Tick tick_;
  std::thread thread_;

  // Thread-safe by itself.
  Parker parker_;
};

}  // namespace curtail
