// SPDX-License-Identifier: Apache-2.0
//
// sweep.h - measures a service: first the pool sizes, then the best of each model at each load, round after
// round.
//
// Each config has a mid-tier process of its own, started with that config. One process that is switched
// (Server::SwitchTo) would start faster, but connections, buffers and caches would go from one config to the
// next, and what one family leaves behind would be charged to another. The mid-tiers share the leaves; all
// but the one under load are stopped (SIGSTOP).
//
// In a round every config has its turn at the first load, then every config at the second, and so on, so
// that what disturbs the machine for some seconds disturbs neighbours alike; each load begins with another
// config. All configs get the same arrivals, and each round others.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/shipped/application.h"
#include "curtail/deploy/tiers.h"
#include "curtail/load/drive/live.h"
#include "curtail/load/message/workload.h"
#include "results.h"

namespace curtail::models {

// The low load at which candidates are compared.
inline constexpr double kPickRate = 200;

// A Sweep drives the load generator on the calling thread. Thread-compatible.
class Sweep {
 public:
  // All arguments outlive the sweep. `progress` hears a line before each measurement.
  Sweep(const apps::Application& service, deploy::Tiers& tiers, const Timing& timing, uint64_t seed,
        const std::atomic<bool>& stop, std::function<void(const std::string&)> progress)
      : service_(service),
        tiers_(tiers),
        timing_(timing),
        seed_(seed),
        stop_(stop),
        progress_(std::move(progress)) {}

  // Measures results->candidates and fills in their numbers or problems. Errors: CANCELLED when stopped,
  // ABORTED when a leaf died; not those of one candidate.
  absl::Status MeasureCandidates(Results* results);
  // Starts the chosen configs and fills results->rows for results->loads. Errors as above.
  absl::Status MeasureRows(Results* results);

 private:
  void MeasureCandidate(int outstanding, Candidate* candidate);
  // A row for each chosen config, and its mid-tier.
  absl::Status StartRows(Results* results);
  absl::Status MeasureCell(Results* results, size_t row, size_t load, int round);
  // One cell. Errors: UNIMPLEMENTED when the server refuses all calls; what else kept it from running.
  absl::StatusOr<Measurement> Measure(deploy::MidTier& mid_tier, const Load& load, double seconds,
                                      uint64_t seed);
  // One run of the load generator. Errors: those of Application::requests, and of the run.
  absl::StatusOr<LoadResult> Drive(const std::string& address, const Load& load, double seconds,
                                   uint64_t seed, Live* live);
  // CANCELLED or ABORTED if the sweep cannot go on.
  absl::Status GoOn();

  const apps::Application& service_;
  deploy::Tiers& tiers_;
  const Timing timing_;
  const uint64_t seed_;
  const std::atomic<bool>& stop_;
  const std::function<void(const std::string&)> progress_;
  std::shared_ptr<const Workload> requests_;  // null until the first run: see Application::requests
  // Of the rows, in their order; null where one could not be started or has died.
  std::vector<std::unique_ptr<deploy::MidTier>> mid_tiers_;
};

}  // namespace curtail::models
