// SPDX-License-Identifier: Apache-2.0
//
// target.h - a gRPC service whose response time is known, to check load generators against.
//
// It draws how long each request takes from a seed, or takes a fixed time and stalls once, and keeps a log of what it
// drew and did; a generator that tells the truth finds just that, plus the time that the network takes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"

namespace curtail::bench {

// The method that the target serves, a unary one with empty messages.
inline constexpr char kTargetMethod[] = "/curtail.bench.LoadTarget/Call";

struct TargetOptions {
  std::string listen = "127.0.0.1:0";
  // The threads that run requests. 1: requests wait for each other, first come, first served. More: they do not,
  // as long as fewer are in flight. Raise with rate times service time.
  int workers = 1;
  // How long a request takes; 0: as long as an empty handler does.
  Nanos service{0};
  // True if `service` is the mean of an exponential distribution, or what every request takes.
  bool exponential = false;
  uint64_t seed = 1;
  // The request of this number (from 0, in order of arrival) takes `stall` besides. 0 s: none does.
  uint64_t stall_at = 0;
  Nanos stall{0};
};

// One request. It took at least as long as drawn, and longer by as much as the timer was late.
struct ServedRequest {
  uint64_t number = 0;
  Nanos drawn{0};
  TimePoint began;
  TimePoint ended;
};

// A Target serves until it is destroyed. Thread-safe.
class Target {
 public:
  // Errors: as Server::Start().
  static absl::StatusOr<std::unique_ptr<Target>> Start(const TargetOptions& options);
  ~Target();
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  // "127.0.0.1:port".
  std::string address() const;
  // The requests that began and ended since the last call, by number; numbers and draws start again from 0. An
  // empty handler's are not logged.
  std::vector<ServedRequest> TakeLog();

 private:
  class Impl;
  explicit Target(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace curtail::bench
