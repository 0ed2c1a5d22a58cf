// SPDX-License-Identifier: Apache-2.0
//
// policy.h - chooses the config that a server runs under.
//
// A policy is a state machine without threads or clock: it gets the sensors' signals and returns a
// config. The Controller (controller.h) asks it and carries out its choices. policy_kind.h names
// and makes policies; docs/design/adaptation.md describes each.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "curtail/adapt/envelope.h"
#include "curtail/adapt/latency_sketch.h"
#include "curtail/adapt/sensor.h"
#include "curtail/base/clock.h"
#include "curtail/exec/config.h"

namespace curtail {

// The event for which a policy is asked.
enum class Trigger { kArrival, kTimer, kBlocked };

// The requests of a stretch of time throughout which the config did not change.
struct LatencyWindow {
  Nanos length{0};
  uint64_t arrivals = 0;
  Nanos cpu{0};  // that the process used; zero: not known
  // Of requests that came and ended in it, or in earlier ones under this config
  LatencySketch latencies;
};

struct Signals {
  TimePoint now;
  Trigger trigger = Trigger::kTimer;
  Rates rates;
  uint64_t arrivals = 0;  // before `now`, without the one that triggers
  Config current;
  int blocked = 0;                        // threads that wait in a call
  const LatencyWindow* window = nullptr;  // just ended; valid during the call
};

struct Choice {
  Config config;
  std::string_view reason;  // a literal
};

// A Policy chooses configs. Thread-compatible.
class Policy {
 public:
  virtual ~Policy() = default;
  // The config to run under from now on; Signals::current for no change. Does not block.
  virtual Choice Decide(const Signals& signals) = 0;
};

struct PolicyOptions {
  ServiceStyle style = ServiceStyle::kStraightLine;
  // Configs that the server can take, such as by its number of threads; empty: all.
  ConfigFilter allowed;
  // CPUs that the process may use.
  int cpus = 1;

  // The share by which the p99 may be higher to save CPU, above all polling's. An advantage
  // that the measurements cannot tell from none never pays for CPU. Zero: latency alone counts.
  double cpu_weight = kCpuWeight;

  // For decisions by a profile. The least share by which the predicted p99 must fall, or the p50
  // where the p99 does not separate; raise against switches that gain little.
  double min_gain = 0.1;
  // The least time between switches. Two switches do not wait: away from a config that does not
  // sustain the load, or that a rising load has made twice as bad as another one.
  Nanos dwell = std::chrono::seconds(1);
  // A config is entered only if it sustains this share more than the present load. Raise where
  // loads wander.
  double headroom = 0.15;

  // For decisions by counts of arrivals: the time over which they are counted.
  Nanos window = std::chrono::milliseconds(5);

  // For learning. The p99 that exploration must not endanger.
  Nanos slo = std::chrono::milliseconds(10);
  // The largest share of the requests that may run under a config on trial.
  double explore_share = 0.05;
  // Decides which of several untried configs is tried first.
  uint64_t seed = 1;
  // The configs to choose from; empty: the profile's.
  std::vector<Config> configs;
};

}  // namespace curtail
