// SPDX-License-Identifier: Apache-2.0
//
// controller.h - the loop of adaptation: sensor, policy, actuator.
//
// A Controller has no thread and no clock. The server calls OnArrival() for each request and
// OnLatency() for each answer. A timer calls OnTimer() often, so that silence is noticed.
//
// Thread safety: all methods from any thread. None waits for another thread but History() and
// Stats(). They wait for each other and for the few instructions that note a switch.
//
// Protocol:
// - C1. Of the threads that want an evaluation, the one that sets `busy_` does it; the others go on
//   at once. An arrival or a timer that finds the flag busy is dropped: the next one comes soon.
// - C2. A change of the blocked count must not be dropped, because no other may follow. A thread
//   that finds the flag busy leaves `again_`. The evaluating thread clears it before each
//   evaluation and reads it after it has cleared `busy_`. Both are sequentially consistent, so one
//   of the two threads sees the other's store.
// - C3. The evaluating thread itself calls Actuator::SwitchTo(). It holds no lock then, only the
//   flag.
// - C4. OnArrival() returns the number of switches so far, OnLatency() takes it back. Latencies of
//   requests that came under an earlier config are dropped. The number grows after SwitchTo() has
//   returned. A request that came during a switch therefore counts for the earlier config and is
//   dropped.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "curtail/adapt/policy.h"
#include "curtail/adapt/sensor.h"
#include "curtail/base/clock.h"
#include "curtail/base/mutex.h"
#include "curtail/exec/config.h"

namespace curtail {

// An Actuator carries decisions out: a server. Thread-safe.
class Actuator {
 public:
  virtual ~Actuator() = default;
  // Puts a config in force for later requests; does not wait for the present ones.
  virtual absl::Status SwitchTo(const Config& config) = 0;
  virtual Config current() const = 0;
};

struct ControllerOptions {
  SensorOptions sensor;
  // One arrival in this many is evaluated, and others that follow suspiciously soon; rounded up to
  // a power of two. PolicyKind::evaluate_every has what a policy wants. Raise where requests cost
  // microseconds.
  int evaluate_every = 8;
  // The time over which latencies are collected before a policy sees them; zero: never.
  Nanos latency_window = std::chrono::milliseconds(250);
  // Switches and failures that History() remembers.
  size_t history = 64;
  // The clock of SwitchRecord::when, read after the switch; outlives the controller. Null: the time
  // of the evaluation.
  const TimeSource* clock = nullptr;
  // A config to which the switch failed is not tried again for this long, doubled after each
  // further failure, up to 64 times.
  Nanos retry_after = std::chrono::seconds(1);
  // The evaluating thread calls it with the first failure for each config.
  std::function<void(const absl::Status&)> report;
};

// A switch, or an attempt.
struct SwitchRecord {
  // The time at which the actuator had carried it out, or refused: later requests follow the new
  // config.
  TimePoint when;
  double rate_per_s = 0;  // the slow estimate
  Config from;
  Config to;
  std::string_view reason;  // a literal
  absl::Status status;      // of the actuator
};

struct ControllerStats {
  uint64_t arrivals = 0;
  uint64_t evaluations = 0;
  uint64_t switches = 0;
  uint64_t failures = 0;
  absl::Status last_failure;
  Rates rates;  // at the last evaluation
  Config current;
};

// A Controller asks its policy when there is news and has the actuator switch.
class Controller {
 public:
  // The actuator outlives the controller.
  Controller(std::unique_ptr<Policy> policy, Actuator* actuator, ControllerOptions options);
  ~Controller();
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  // A request arrived. Returns the argument of its OnLatency().
  uint32_t OnArrival(TimePoint now) {
    const uint64_t before = load_.Add(now);
    const uint32_t epoch = epoch_.load(std::memory_order_acquire);
    if ((before & every_mask_) == 0) {
      EvaluateArrival(now, before);
    } else if (load_.Hasty(before, now)) {
      EvaluateHasty(now, before);
    }
    return epoch;
  }
  // The request for which OnArrival() returned `epoch` was answered.
  void OnLatency(Nanos latency, uint32_t epoch) {
    if (epoch != epoch_.load(std::memory_order_relaxed)) return;  // C4
    latencies_[LatencySketch::BucketOf(latency)].fetch_add(1, std::memory_order_relaxed);
  }
  // Time passed; call it every 5 ms, say. Evaluates if no arrival was evaluated since the last
  // call.
  void OnTimer(TimePoint now);
  // `delta` more threads than before are blocked in a call. For PolicyKind::toggles_reception.
  void OnBlocked(TimePoint now, int delta);

  // Totals so far.
  uint64_t arrivals() const { return load_.count(); }
  ControllerStats Stats() const;
  // The last `most` remembered records, oldest first.
  std::vector<SwitchRecord> History(size_t most = SIZE_MAX) const;

 private:
  // A flag that one thread at a time may hold; none waits for it.
  class CURTAIL_CAPABILITY("flag") TryFlag {
   public:
    bool TryAcquire() CURTAIL_TRY_ACQUIRE(true) { return !held_.exchange(true); }
    void Release() CURTAIL_RELEASE() { held_.store(false); }

   private:
    std::atomic<bool> held_{false};
  };
  // In a bunch many requests come suspiciously soon without a change of load. In the long run one
  // in this many is evaluated; after a quiet time the first ones are.
  static constexpr double kHastePer = 64;
  static constexpr double kMostHaste = 16;
  struct Barred {
    TimePoint until;
    Nanos wait;
  };

  void EvaluateArrival(TimePoint now, uint64_t arrivals);
  // The same for an arrival that came suspiciously soon, if not too many did lately.
  void EvaluateHasty(TimePoint now, uint64_t arrivals);
  void EvaluateAlone(TimePoint now, Trigger trigger, uint64_t arrivals) CURTAIL_REQUIRES(busy_);
  // Fills `window_` when it has lasted long enough.
  bool CloseWindow(TimePoint now, uint64_t arrivals) CURTAIL_REQUIRES(busy_);
  void BeginWindow(TimePoint now, uint64_t arrivals) CURTAIL_REQUIRES(busy_);
  void Switch(TimePoint now, const Choice& choice) CURTAIL_REQUIRES(busy_);
  void Note(TimePoint now, const Choice& choice, const absl::Status& status) CURTAIL_REQUIRES(busy_);

  // Immutable after construction.
  const ControllerOptions options_;
  const uint64_t every_mask_;
  Actuator* const actuator_;

  // Add() and count() are thread-safe by themselves; Update() is for the holder of busy_.
  LoadEstimator load_;
  // Atomic.
  std::atomic<uint32_t> epoch_{0};  // switches; see C4
  std::atomic<int> blocked_{0};
  std::atomic<bool> again_{false};  // see C2
  std::array<std::atomic<uint32_t>, LatencySketch::kBuckets> latencies_{};

  TryFlag busy_;
  std::unique_ptr<Policy> policy_ CURTAIL_GUARDED_BY(busy_);
  Config current_ CURTAIL_GUARDED_BY(busy_);
  Rates rates_ CURTAIL_GUARDED_BY(busy_);
  LatencyWindow window_ CURTAIL_GUARDED_BY(busy_);
  TimePoint window_start_ CURTAIL_GUARDED_BY(busy_) = TimePoint::min();
  uint64_t window_arrivals_ CURTAIL_GUARDED_BY(busy_) = 0;  // before window_start_
  Nanos window_cpu_ CURTAIL_GUARDED_BY(busy_){0};           // likewise
  // An arrival was evaluated since the last timer
  bool fresh_ CURTAIL_GUARDED_BY(busy_) = false;
  // Arrivals that may be evaluated because they came suspiciously soon, and all arrivals at its
  // last update.
  double haste_ CURTAIL_GUARDED_BY(busy_) = kMostHaste;
  uint64_t haste_at_ CURTAIL_GUARDED_BY(busy_) = 0;
  std::map<std::string, Barred> barred_ CURTAIL_GUARDED_BY(busy_);

  // Read by History() and Stats().
  mutable Mutex mu_;
  std::deque<SwitchRecord> history_ CURTAIL_GUARDED_BY(mu_);
  uint64_t failures_ CURTAIL_GUARDED_BY(mu_) = 0;
  absl::Status last_failure_ CURTAIL_GUARDED_BY(mu_);
  // Atomic; copies of the above for Stats().
  std::atomic<uint64_t> evaluations_{0};
  std::atomic<double> slow_{0}, fast_{0}, paper_{0};
};

}  // namespace curtail
