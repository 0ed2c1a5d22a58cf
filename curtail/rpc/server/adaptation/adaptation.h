// SPDX-License-Identifier: Apache-2.0
//
// adaptation.h - has a server follow its policy: reads the profile, makes the policy, tells it of requests and of
// time, and switches the executor as it says.
//
// Protocol:
//  A1. Arrived() is called while the caller holds a connection's strand, and may switch the executor there and then.
//      Executor::SwitchTo() takes the executor's mutex and wakes threads; it takes no strand and waits for nobody, so a
//      thread may call it whatever it holds but that mutex. No caller does: events are handled, tasks run and output
//      is flushed without it.
//  A2. What a switch to a fiber model needs is made in Start(), not by the thread that brings a request.
//  A3. The ticker is stopped before the executor, and this object outlives the executor's threads.
//  A4. For PolicyKind::toggles_reception each thread of the executor that is about to sleep, or has woken up, changes
//      the count, and switches if the policy says so. It holds no lock then (blocking.h). Such a switch is
//      Executor::SetReception(), which wakes nobody: a thread that was woken would change the count and so ask
//      for the next switch, without end. The first threads sleep before there is a controller: until Start()
//      publishes that, under mu_, their changes are added up for it.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/adapt/controller.h"
#include "curtail/base/clock.h"
#include "curtail/base/mutex.h"
#include "curtail/exec/blocking.h"
#include "curtail/exec/executor.h"
#include "curtail/exec/internal/ticker.h"
#include "curtail/rpc/call_observer.h"
#include "curtail/rpc/server.h"

namespace curtail::internal {

// The adaptation of one server. After Start(), all methods but Stop() are for any thread.
class Adaptation final : public CallObserver, private Actuator, private BlockingWatcher {
 public:
  // Checks what `options` ask for; null when they name no policy. `profile`: what their file says; null for none. `runs`
  // says whether the services can run under a config. Errors: INVALID_ARGUMENT that says what is wrong.
  static absl::StatusOr<std::unique_ptr<Adaptation>> Make(const ServerOptions& options,
                                                          const Profile* profile, const ConfigFilter& runs);

  // The config to start the executor with.
  const Config& first_config() const { return first_; }
  // The watcher that the executor has to tell of threads that sleep; null: none.
  BlockingWatcher* watcher() { return wants_blocked_ ? this : nullptr; }
  // Takes over `executor`, which was made with these two and outlives Stop(): has it run what the policy says
  // for no load, and starts the ticker.
  // Errors: RESOURCE_EXHAUSTED for lack of threads or file descriptors.
  absl::Status Start(Executor* executor);
  // No more ticks. Arrivals are still answered. Idempotent.
  void Stop() { ticker_.Stop(); }

  // True if it ever switches: a static policy does not, and need not be told of anything.
  bool switches() const { return controller_ != nullptr; }

  // CallObserver; an observer only if it switches. The note is the number of switches before the arrival: rule C4 of
  // controller.h. A latency ends when the connection has taken the reply: until then a model that answers on another thread
  // lets it wait for the one that has the strand.
  uint32_t Wants() const override { return kCallArrived | (wants_latencies_ ? kCallOver : uint32_t{0}); }
  uint64_t Arrived(const CallRecord& call) override { return controller_->OnArrival(call.arrived); }
  void Over(const CallRecord& call, uint64_t note) override {
    if (call.dequeued == TimePoint()) return;  // refused or dropped: not for the config's speed
    controller_->OnLatency(call.over - call.arrived, static_cast<uint32_t>(note));
  }

  // With the last `decisions` of the 4096 that are remembered.
  PolicyStats Stats(size_t decisions = 32) const;

 private:
  Adaptation() = default;
  absl::Status Choose(const ServerOptions& options, const Profile* profile, const ConfigFilter& runs);
  // Notes what the policy has to be told of, and which of `configs` need fibers.
  void Prepare(const PolicyKind& kind, const std::vector<Config>& configs, const ConfigFilter& allowed);
  Nanos Tick(TimePoint now);

  // Actuator.
  absl::Status SwitchTo(const Config& config) override;
  Config current() const override { return executor_->config(); }
  // BlockingWatcher.
  void OnBlocking(int delta) override;
  void BeginToCount();

  // Immutable once started.
  std::string spec_;
  std::string note_;
  Config first_;
  std::optional<Config> fibers_;    // one of those that may be chosen, if there are any
  std::unique_ptr<Policy> policy_;  // until Start(); null: none that switches
  ControllerOptions options_;
  bool wants_latencies_ = false;
  bool wants_blocked_ = false;
  Nanos tick_{0};  // PolicyKind::tick
  Executor* executor_ = nullptr;
  std::unique_ptr<Controller> controller_;

  // Owned by the ticker's thread once that runs.
  TimePoint heard_;  // about when the last request came
  uint64_t arrivals_ = 0;

  // With wants_blocked_: the controller, once it is to be told of changes; see A4.
  std::atomic<Controller*> counts_{nullptr};
  Mutex mu_;
  int early_ CURTAIL_GUARDED_BY(mu_) = 0;  // the sum of the changes before

  Ticker ticker_;  // ends first
};

}  // namespace curtail::internal
