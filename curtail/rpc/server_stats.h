// SPDX-License-Identifier: Apache-2.0
//
// server_stats.h - the activity of a server, as Server::Sample() tells it.
//
// Code: server/server_core.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/exec/config.h"
#include "curtail/exec/internal/thread_stats.h"
#include "curtail/exec/stats.h"
#include "curtail/fence/credit_pool.h"
#include "curtail/fence/fence.h"

namespace curtail {

// A switch of config by the policy, or an attempt.
struct PolicyDecision {
  // The time at which it had been carried out or refused. Everything that begins later follows the
  // new config. Requests that run finish as they began; sleeping threads have been told to wake up.
  TimePoint when;
  double rate_per_s = 0;  // as estimated then
  Config from;
  Config to;
  std::string reason;
  absl::Status status;  // why it was not carried out, if it was not
};

// Observations and actions of a server's policy.
struct PolicyStats {
  std::string policy;               // as given
  std::string note;                 // remarks for the operator; mostly empty
  bool switches_by_itself = false;  // if not, the rest is empty
  // Requests a second: the estimate that decides, one of the last few arrivals, and muTune's.
  double rate_per_s = 0;
  double fast_rate_per_s = 0;
  double paper_rate_per_s = 0;
  uint64_t arrivals = 0;
  uint64_t evaluations = 0;
  uint64_t switches = 0;
  uint64_t failures = 0;
  std::string last_failure;
  // The last 32, oldest first; the admin's GetDecisions has 4096
  std::vector<PolicyDecision> decisions;
};

// A method whose handler held a thread up that other requests needed. Found under the config
// "auto".
struct HeldUpMethod {
  std::string path;     // "/package.Service/Method"
  uint64_t times = 0;   // that a stand-in came for it
  bool blocks = false;  // sleeps outside of curtail's waits; its calls have threads of their own
};

// A limit of the server that its clients have reached, or calls that interceptors refused.
// docs/grpc.md lists them.
struct LimitCount {
  std::string name;
  uint64_t times = 0;
};

// Requests that overload control refused for one reason, or calls that they did not make.
// docs/design/overload.md lists the reasons.
struct RefusalCount {
  std::string reason;
  uint64_t times = 0;
};

// The fences of a server.
struct FenceStats {
  FenceMode mode = FenceMode::kOff;
  std::string limiter = "fixed";            // FenceOptions::limit
  std::vector<FenceClassStats> classes;     // classes that have methods, or had requests
  std::vector<UndeclaredCalls> undeclared;  // of methods that declare their calls
};

// The present activity of a server.
struct ServerStats {
  ExecutorStats pools;
  size_t connections = 0;
  size_t open_calls = 0;  // begun by clients and not ended
  size_t held_bytes = 0;  // for clients; see ServerOptions::max_held_bytes
  ThreadStats process;    // of all threads of the process
  std::optional<PolicyStats> policy;
  std::vector<HeldUpMethod> held_up;
  std::vector<LimitCount> limits;  // only limits that were reached
  std::optional<FenceStats> fences;
  std::vector<RefusalCount> refusals;  // only refusals that happened
  std::optional<CreditStats> credits;  // empty: the server gives none
};

}  // namespace curtail
