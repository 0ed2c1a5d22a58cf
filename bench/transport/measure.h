// SPDX-License-Identifier: Apache-2.0
//
// measure.h - runs every variant under every load, in turns.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/common/load.h"
#include "bench/common/program.h"

namespace curtail::bench {

struct Options : CommonFlags {
  std::vector<std::string> variants;
  std::vector<Load> cells;
  double seconds = 0.6;  // a cell
  uint32_t callers = 1;  // connections, and mid-tier threads, of variants that pipeline
};

// One variant under one load in one round.
struct Measurement {
  double p50_us = 0;
  double p99_us = 0;
  double answers_per_second = 0;
  // Of the mid-tier, for each answer.
  double cpu_us = 0;
  double user_ticks = 0;
  double system_ticks = 0;
  double context_switches = 0;
  double system_calls = 0;
  double copied = 0;
  std::optional<double> user_instructions;
  std::optional<double> kernel_instructions;
};

struct VariantResults {
  std::string variant;
  absl::Status
      first_error;  // after which it was left out; UNIMPLEMENTED or so where io_uring is not to be had
  std::map<Load, std::vector<Measurement>> rounds;
};

double ExpectedSeconds(const Options& options);
// Every round runs all variants of a cell, one right after the other, before the next cell; each round begins
// with another variant. Ends early when the session is stopped. REQUIRES: known variants; this process has one thread.
absl::StatusOr<std::vector<VariantResults>> Measure(const Options& options, Session& session);

// The use of SO_BUSY_POLL here, in words: loopback has no device queue to poll.
std::string BusyPollNote();

}  // namespace curtail::bench
