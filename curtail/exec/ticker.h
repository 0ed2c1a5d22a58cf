// SPDX-License-Identifier: Apache-2.0
//
// ticker.h - calls a function every so often, on a thread of its own.
#pragma once

#include <functional>
#include <thread>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/exec/parker.h"

namespace curtail {

// A Ticker is for what has to happen although nothing else does. Thread-compatible; Stop() not from the function.
class Ticker {
 public:
  // Called with the time; returns how long to sleep until the next call.
  using Tick = std::function<Nanos(TimePoint now)>;

  Ticker() = default;
  ~Ticker() { Stop(); }
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  // Starts the thread, named `name` (15 characters at most); it calls at once for the first time. Call once. Errors:
  // RESOURCE_EXHAUSTED when it cannot be started.
  absl::Status Start(const char* name, Tick tick);
  // Ends the thread; waits for a call in progress. Again, or without Start(): nothing happens.
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
