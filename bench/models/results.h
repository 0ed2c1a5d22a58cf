// SPDX-License-Identifier: Apache-2.0
//
// results.h - what a run measured, and the medians over its rounds. Plain values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/common/machine.h"
#include "bench/common/program.h"
#include "bench/common/report.h"
#include "bench/common/spread.h"
#include "curtail/exec/internal/thread_stats.h"
#include "curtail/load/report/result.h"
#include "plan.h"
#include "pools.h"

namespace curtail::models {

// Below this share of the offered requests answered in time, a config is saturated; its latency then grows
// with the length of the run and means nothing.
inline constexpr double kSustainedShare = 0.97;

// One load: an open loop at a rate, or a closed loop.
struct Load {
  double rate_per_s = 0;  // open
  int outstanding = 0;    // closed, when > 0
  bool closed() const { return outstanding > 0; }
};

// One config under one load in one round. What the mid-tier consumed is per request.
struct Measurement {
  double offered_per_s = 0;  // equal to achieved in a closed loop
  double achieved_per_s = 0;
  uint64_t requests = 0;
  uint64_t failed = 0;
  double p50_us = 0;
  double p99_us = 0;
  double context_switches = 0;
  double involuntary_switches = 0;
  double cpu_us = 0;
  double runqueue_us = 0;
  bool saturated = false;
  bool generator_bound = false;
  std::string generator_note;  // in what way
};

// `elapsed` is how long the run took from its start to the last reply; `requests` how many the mid-tier got
// in that time and `used` what it consumed.
Measurement Evaluate(const LoadResult& result, Nanos elapsed, uint64_t requests, const ThreadStats& used);

// One line of the table. cells[load][round]; a round is absent where it could not be measured.
struct Row {
  std::string config;
  Model model;
  std::vector<std::vector<Measurement>> cells;
  std::string problem;  // the first of any round
};

struct Results {
  std::string service;
  std::string description;
  bench::Machine machine;
  bench::CommonFlags flags;
  Timing timing;
  int pick_outstanding = 0;
  double pick_rate_per_s = 0;
  std::vector<Candidate> candidates;
  std::vector<size_t> chosen;  // into candidates
  std::vector<Load> loads;     // rates ascending, then the closed loop
  std::vector<Row> rows;       // one for each chosen; of a model one, or all its pools with --all-pools
  bool interrupted = false;
};

using bench::Spread;

// Of the rounds of a cell. The marks hold when they hold in at least half of the rounds, as a median survives
// fewer.
struct Summary {
  Spread p50_us, p99_us, achieved_per_s;
  bool saturated = false;
  bool generator_bound = false;
};
// Nothing when no round was measured.
std::optional<Summary> Summarize(const std::vector<Measurement>& rounds);

// The row of `model` with the lowest p99 at loads[load]; a saturated one only when all are.
std::optional<size_t> BestPool(const Results& results, const Model& model, size_t load);

// The row of `waiting` with the lowest p99 (closed: the highest throughput) at loads[load], saturated cells
// left out.
struct Best {
  size_t row = 0;
  double value = 0;
};
std::optional<Best> BestOf(const Results& results, Waiting waiting, size_t load);

// Tables that read what was measured as the paper's figures do. Partial results are reported as far as they go.
bench::Report ReportOf(const Results& results);

}  // namespace curtail::models
