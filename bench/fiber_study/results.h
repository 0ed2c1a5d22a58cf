// SPDX-License-Identifier: Apache-2.0
//
// results.h - what the study measured, and what follows from it. Plain values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/common/machine.h"
#include "bench/common/program.h"
#include "bench/common/report.h"
#include "bench/common/spread.h"
#include "bench/common/variant.h"
#include "curtail/load/report/result.h"

namespace curtail::study {

// One load: a closed loop, or an open one at a share of the baseline's peak.
struct Load {
  int outstanding = 0;  // closed, when > 0
  double share = 0;     // open
  double rate_per_s = 0;
  bool closed() const { return outstanding > 0; }
  // Beyond what the baseline can do: for fibers alone.
  bool beyond_baseline() const { return share > 1; }
  // Here a failed request is a fault. At others it is what overload does.
  bool must_not_fail() const { return closed() || share <= 0.5; }
  std::string name() const;
};

// One variant under one load in one round. What the compose process consumed is per request.
struct Measurement {
  double offered_per_s = 0;  // equal to achieved in a closed loop
  double achieved_per_s = 0;
  uint64_t requests = 0;
  uint64_t failed = 0;
  double p50_us = 0;
  double p99_us = 0;
  double context_switches = 0;
  double cpu_us = 0;
  bool saturated = false;  // it answered less than was offered: its latency grows with the length of the run
  std::string generator_note;  // why the load generator was not what it should be; empty when it was
};

// The CPU time and memory that a compose process has consumed so far.
struct Consumed {
  uint64_t requests = 0;
  uint64_t cpu_us = 0;
  uint64_t switches = 0;
};

Measurement Evaluate(const LoadResult& result, const Consumed& before, const Consumed& after);

using bench::Spread;
using bench::Variant;

// A variant and its cells[load][round].
struct Row {
  Variant variant;
  std::vector<std::vector<Measurement>> cells;
};

struct Results : bench::CommonFlags {
  bench::Machine machine;
  double cell_s = 2;
  int connections = 4;   // of the load generator
  double spin_us = 120;  // RunOptions::spin
  std::string part_config;
  double baseline_peak_per_s = 0;  // found before the rounds; open loads are shares of it
  std::vector<Load> loads;
  std::vector<Row> rows;  // the first is the baseline
  bool interrupted = false;
};

// A variant over the baseline: in each round the two stood the same disturbances, so ratios are taken there.
struct Comparison {
  std::string variant;
  bool fibers = false;
  std::optional<Spread> peak_ratio;     // of the highest throughput in any closed loop
  std::optional<Spread> low_p99_ratio;  // at the lowest open load
};
std::vector<Comparison> Compare(const Results& results);

// Failed requests at loads where none may fail.
uint64_t Faults(const Results& results);

// The measurements, the ratios, and the comparison with the paper.
bench::Report ReportOf(const Results& results);

}  // namespace curtail::study
