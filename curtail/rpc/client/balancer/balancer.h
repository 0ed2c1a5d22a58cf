// SPDX-License-Identifier: Apache-2.0
//
// balancer.h - which of a channel's servers a call goes to.
//
// A strategy is a file beside this one, and a line of the table in balancers.cc; client/config/balancer_config.cc reads
// its options. It is a pure function of what it is given: no clock, no lock, no state of its own but counters.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/rpc/client/balancer/outlier_detection.h"
#include "curtail/rpc/client/balancer/reported_load.h"

namespace curtail::internal {

// A Backend is one server as balancers see it.
struct Backend {
  explicit Backend(std::string n) : name(std::move(n)) {}

  // True if it may be called: it is not in backoff, nor ejected, and says that it serves.
  bool Up(TimePoint now) const {
    return down_until.load(std::memory_order_relaxed) <= now.time_since_epoch().count() && Serves() &&
           !outliers.Ejected(now);
  }
  bool Serves() const { return not_serving.load(std::memory_order_relaxed) == nullptr; }

  const std::string name;  // its address
  // Atomic, relaxed: hints, which order nothing. Time in ns.
  std::atomic<int64_t> down_until{0};
  std::atomic<int32_t> outstanding{0};  // calls that were begun and have not ended
  // The watch that last heard that the server does not serve; null if none did, or one heard more since.
  std::atomic<const void*> not_serving{nullptr};
  OutlierState outliers;
  ReportedLoad load;
};
using Backends = std::vector<std::shared_ptr<Backend>>;

// One choice to be made.
struct Choice {
  TimePoint now;
  uint64_t sequence = 0;        // counts the choices made among these backends
  uint64_t random = 0;          // uniform
  std::optional<uint64_t> key;  // the hash of the call's key, if it has one
  size_t last = 0;              // the backend chosen last
};

// A Balancer chooses among a set of backends that does not change. Thread-safe.
class Balancer {
 public:
  static constexpr size_t kNone = ~size_t{0};

  virtual ~Balancer() = default;
  // The index of a backend that is up; kNone if none is. Never blocks, allocates nothing.
  virtual size_t Choose(const Choice& choice) const = 0;
  // True if a call may go to another server while the connection to the chosen one is being made.
  virtual bool PrefersConnected() const { return true; }
  virtual bool UsesKey() const { return false; }
};

struct BalancerOptions {
  std::string name = "pick_first";
  // ring_hash: the metadata key whose value decides; empty, or absent from a call: it goes anywhere.
  std::string hash_key;
  // ring_hash: the bounds of the ring's places in all.
  size_t min_ring_size = 0;
  size_t max_ring_size = 4096;
  // least_request: the backends that it compares.
  size_t choices = 2;
  // weighted_round_robin.
  WeightOptions weights;
  // Leaves out servers whose calls fail. For any balancer.
  std::optional<OutlierOptions> outliers;
};

// Errors: INVALID_ARGUMENT for an unknown name; it lists the known ones.
[[nodiscard]] absl::StatusOr<std::unique_ptr<Balancer>> MakeBalancer(const BalancerOptions& options,
                                                                     Backends backends);
bool IsBalancer(std::string_view name);
std::string BalancerNames();  // for texts: "pick_first, round_robin, ..."

// The strategies.
std::unique_ptr<Balancer> MakePickFirst(const BalancerOptions& options, Backends backends);
std::unique_ptr<Balancer> MakeRoundRobin(const BalancerOptions& options, Backends backends);
std::unique_ptr<Balancer> MakeLeastRequest(const BalancerOptions& options, Backends backends);
std::unique_ptr<Balancer> MakeRingHash(const BalancerOptions& options, Backends backends);
std::unique_ptr<Balancer> MakeWeightedRoundRobin(const BalancerOptions& options, Backends backends);

// A 64-bit hash of `text`, the same on every machine.
uint64_t HashOf(std::string_view text);
// The first backend from `start` on, around the end, that is up; kNone if none is.
size_t FirstUp(const Backends& backends, size_t start, TimePoint now);

}  // namespace curtail::internal
