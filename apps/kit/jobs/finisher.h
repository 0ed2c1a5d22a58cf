// SPDX-License-Identifier: Apache-2.0
//
// finisher.h - a thread that finishes work whose caller failed or died after the work was decided.
//
// The service that decides keeps a list of such work, and adds to it in the transaction of the decision. So no work is lost.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/exec/parker.h"
#include "curtail/rpc/host.h"

namespace curtail::apps {

// A Finisher looks at the list every two seconds, or as often as it is told, and when it is woken. After a failure it tries
// again, after pauses that grow to ten seconds; Wake() does not shorten these.
class Finisher {
 public:
  // Tries everything on the list. OK: nothing is left. Returns early when `stopping()`. Runs on the thread, and may block.
  // An exception counts as a failure.
  using Round = std::function<absl::Status(absl::FunctionRef<bool()> stopping)>;

  explicit Finisher(Round round, Nanos look = std::chrono::seconds(2))
      : round_(std::move(round)), look_(look) {}
  // Has `env` start the thread once all services can be called, and stop it before any is gone.
  void WorkWhileServing(Env& env);
  // Something was added to the list. Never blocks. May be called from any thread.
  void Wake() { wake_.Notify(); }

 private:
  void Work();

  const Round round_;
  const Nanos look_;
  Parker wake_;  // the thread waits; notified by Wake() and at the end
  // Atomic: set at the end (release), read by the thread (acquire).
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace curtail::apps
