// SPDX-License-Identifier: Apache-2.0
//
// measure.h - runs every variant under every load, in turns.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/common/machine.h"

namespace curtail::bench {

// One load. "closed-16" keeps 16 requests under way, "open-500" sends 500 a second, "echo-65536" sends
// messages of so many bytes, one after the other, to a variant for large messages.
struct Cell {
  enum class Kind { kClosed, kOpen, kEcho };
  Kind kind = Kind::kClosed;
  uint32_t load = 1;

  std::string Name() const;
  bool operator<(const Cell& other) const {
    return std::pair(kind, load) < std::pair(other.kind, other.load);
  }
};
absl::StatusOr<Cell> ParseCell(const std::string& name);

struct Options {
  std::vector<std::string> variants;
  std::vector<Cell> cells;
  int rounds = 7;
  double seconds = 0.6;  // a cell
  uint32_t callers = 1;  // connections, and mid-tier threads, of variants that pipeline
  uint64_t seed = 1;
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
  std::map<Cell, std::vector<Measurement>> rounds;
};

double ExpectedSeconds(const Options& options);
// Every round runs all variants of a cell, one right after the other, before the next cell; each round begins
// with another variant. REQUIRES: known variants; this process has one thread.
absl::StatusOr<std::vector<VariantResults>> Measure(const Options& options,
                                                    const std::function<void(const std::string&)>& progress);

// What SO_BUSY_POLL can do here, in words: loopback has no device queue to poll.
std::string BusyPollNote();

}  // namespace curtail::bench
