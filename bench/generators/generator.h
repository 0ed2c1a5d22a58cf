// SPDX-License-Identifier: Apache-2.0
//
// generator.h - the load generators that are compared: how each is told to send a load, and what it reports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/common/load.h"
#include "curtail/base/clock.h"

namespace curtail::bench {

// A load, and how long it lasts.
struct TimedLoad {
  Load load;
  double seconds = 1;
};

// The programs.
struct Tools {
  std::string curtail;
  std::string ghz;
  std::string h2load;
};

// One program with certain flags.
struct Generator {
  enum class Program { kCurtail, kGhz, kH2load };

  std::string name;  // "curtail load --spin 0us"
  Program program = Program::kCurtail;
  std::vector<std::string> flags;
};

// The latencies that it reports, in ms.
struct Percentiles {
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double p99_9 = 0;
  double max = 0;
};

struct GeneratorRun {
  uint64_t answered = 0;  // well, by its own count
  double rate_per_s = 0;  // answered, by its own clock
  bool valid = true;      // it has not declared its numbers void
  double cpu_us = 0;      // user and system, of the whole process from its start to its end
  Percentiles latency;    // only of Observe()
};

// The path of the program, or nothing when there is none.
std::optional<std::string> Find(const Tools& tools, Generator::Program program);

// Runs the generator against the target's method. Observe() has it report latencies, which costs some of them CPU
// time; Measure() does not. Both block for about load.seconds. Errors: the program failed, or requests did; what it
// printed.
absl::StatusOr<GeneratorRun> Observe(const Tools& tools, const Generator& generator,
                                     const std::string& address, const TimedLoad& load);
absl::StatusOr<GeneratorRun> Measure(const Tools& tools, const Generator& generator,
                                     const std::string& address, const TimedLoad& load);
// The CPU time of a run of next to nothing: what the start and the end of the program cost.
absl::StatusOr<GeneratorRun> MeasureStart(const Tools& tools, const Generator& generator,
                                          const std::string& address);

}  // namespace curtail::bench
