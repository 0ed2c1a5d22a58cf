// SPDX-License-Identifier: Apache-2.0
//
// load_run.h - a run of the `curtail load` command, and what its JSON says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "process.h"

namespace curtail::bench {

// One bucket of the latency histogram; times in us, both ends belong to it.
struct LatencyBucket {
  double low_us = 0;
  double high_us = 0;
  uint64_t count = 0;
};

// One entry of the series.
struct LoadSecond {
  double end_s = 0;
  double length_s = 0;
  uint64_t sent = 0;
  uint64_t failed = 0;
  double p50_us = 0;
  uint64_t in_flight = 0;
};

// The numbers that the tests look at. Latencies are those of the row `every one`.
struct LoadRun {
  ProgramResult process;
  bool valid = false;
  std::string invalid_reasons;
  uint64_t scheduled = 0;
  uint64_t sent = 0;
  uint64_t failed = 0;
  uint64_t deadline_exceeded = 0;
  double sent_per_s = 0;
  double p50_us = 0;
  double p90_us = 0;
  double p99_us = 0;
  double max_us = 0;
  double send_lag_p99_us = 0;
  std::vector<LatencyBucket> buckets;
  std::vector<LoadSecond> series;

  // The value of the sample of this rank, from 1; at most 0.8 % above the true one and never below it. 0 when there
  // is none.
  double ValueAtRank(uint64_t rank) const;
  // How many requests took more than this; those in its bucket do not count.
  uint64_t CountAbove(double us) const;
};

// Runs the command with these words after `curtail load`, and --json. Errors: it did not end in time, or wrote no
// result.
absl::StatusOr<LoadRun> RunLoad(std::vector<std::string> words, std::optional<int> cpu = std::nullopt,
                                int nice = 0);

}  // namespace curtail::bench
