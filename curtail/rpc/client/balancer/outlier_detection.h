// SPDX-License-Identifier: Apache-2.0
//
// outlier_detection.h - leaves servers out for a while whose calls fail more than those of the others.
//
// The rules and the names are gRPC's: https://github.com/grpc/proposal/blob/master/A50-xds-outlier-detection.md
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "curtail/base/clock.h"

namespace curtail::internal {

struct Backend;

// Ejects servers whose share of successes is `stdev_factor` thousandths of the standard deviation below the mean.
struct SuccessRateRule {
  uint32_t stdev_factor = 1900;
  uint32_t enforcement = 100;     // per cent of such ejections that are carried out
  uint32_t minimum_hosts = 5;     // servers with enough calls
  uint32_t request_volume = 100;  // calls of an interval that are enough
};

// Ejects servers of which more than `threshold` per cent of the calls fail.
struct FailurePercentageRule {
  uint32_t threshold = 85;
  uint32_t enforcement = 100;
  uint32_t minimum_hosts = 5;
  uint32_t request_volume = 50;
};

// Ejects a server of which so many calls in a row fail, at once. Not gRPC's: the idea is Envoy's consecutive_5xx.
struct ConsecutiveFailuresRule {
  uint32_t threshold = 5;
  uint32_t enforcement = 100;
};

struct OutlierOptions {
  using SuccessRate = SuccessRateRule;
  using FailurePercentage = FailurePercentageRule;

  Nanos interval = std::chrono::seconds(10);
  // A server stays ejected for so long, times the number of its ejections, up to the larger of the two.
  Nanos base_ejection = std::chrono::seconds(30);
  Nanos max_ejection = std::chrono::seconds(300);
  // No server is ejected while so many per cent are; so one always may be.
  uint32_t max_percent = 10;
  std::optional<SuccessRate> success_rate;
  std::optional<FailurePercentage> failure_percentage;
  std::optional<ConsecutiveFailuresRule> consecutive_failures;
};

// An OutlierState counts the outcomes of one server's calls in the present interval, and has the conclusions from those
// before. Calls count on any thread.
struct OutlierState {
  bool Ejected(TimePoint now) const {
    return until.load(std::memory_order_relaxed) > now.time_since_epoch().count();
  }

  // Atomic, relaxed: counts and a hint, which order nothing. Time in ns.
  std::atomic<uint32_t> succeeded{0};
  std::atomic<uint32_t> failed{0};
  std::atomic<uint32_t> row{0};  // failures since the last success
  std::atomic<int64_t> until{0};
  // Owned by the thread that sweeps or ejects.
  uint32_t ejections = 0;  // less those that were forgiven
};

// Ends an interval: ejects outliers, and forgives an ejection of each server that has none in force, for each of the
// `intervals` that have passed. `random` decides where not all ejections are carried out. One thread at a time.
void SweepOutliers(const OutlierOptions& options, const std::vector<std::shared_ptr<Backend>>& backends,
                   TimePoint now, uint64_t intervals, uint64_t random);

// Ejects `backend`, one of `backends`, for its failures in a row. One thread at a time, sweeps included.
void EjectForFailures(const OutlierOptions& options, const std::vector<std::shared_ptr<Backend>>& backends,
                      Backend& backend, TimePoint now, uint64_t random);

}  // namespace curtail::internal
