// SPDX-License-Identifier: Apache-2.0
//
// plan.h - the plan of a load run. Plain values; thread-compatible.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "curtail/base/clock.h"

namespace curtail {

// The plan of a run.
struct LoadPlan {
  std::string target;  // several are separated by ", "
  bool tls = false;
  std::string method;
  std::string workload;  // "hdsearch", "json"; empty for fixed bytes
  std::string arrivals;  // "poisson", "constant"; "closed" for a closed loop
  // Open loop: the rate over time, as in "constant:500" or "flash-crowd:100..8000"
  std::string schedule;
  double rate_per_s = 0;  // open loop: the mean of the measured window
  double peak_per_s = 0;  // open loop: the highest
  int outstanding = 0;    // closed loop: requests kept in flight
  uint64_t seed = 0;
  int connections = 1;  // to each target, of each thread
  int threads = 1;      // that send, of each generator
  // Generators that send the run together, each a share of it, and which share this is. 0: all.
  int shares = 1;
  int share = 0;
  Nanos warmup{0};
  Nanos duration{0};      // of the measured window
  uint64_t requests = 0;  // after which it ends, if not before; 0: it does not
  Nanos timeout{0};
  int retries = 0;        // of a call at most
  Nanos spin{0};          // of the sending thread before a send, at the end of the run
  bool realtime = false;  // the sending thread had real-time priority

  std::vector<std::string> steps;    // names, where requests are journeys; else none
  std::vector<std::string> methods;  // names, where requests are of two or more; else none
  std::vector<std::string> checks;   // of every OK reply, as ReplyChecks have them

  bool operator==(const LoadPlan&) const = default;

  // The threads that send what this plan is the plan of: a share, or all.
  int senders() const { return share == 0 ? threads * shares : threads; }
  bool closed() const { return arrivals == "closed"; }
  // The least that a failed request counts as: no request that succeeds takes longer. Each step of
  // a journey has the timeout.
  Nanos failure_latency() const { return timeout * static_cast<int64_t>(std::max<size_t>(steps.size(), 1)); }
};

}  // namespace curtail
