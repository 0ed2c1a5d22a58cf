// SPDX-License-Identifier: Apache-2.0
//
// demo_table.h - the results of a demo, judged against each other, as a table and as JSON. Pure functions;
// any thread.
#pragma once

#include <string>
#include <vector>

#include "console.h"
#include "curtail/load/result.h"

namespace curtail::tool {

// One config under one load.
struct DemoCell {
  std::string config;
  double rate_per_s = 0;
  LoadResult result;
  // CPU that the mid-tier used, in cores (1.0: one core all the time).
  double server_cores = 0;
};

enum class Verdict {
  kBest,       // the lowest p99 of its row
  kTied,       // its p99 cannot be told from the best one with 95 % confidence
  kWorse,      // it can
  kSaturated,  // more than 1 % failed, or fewer than 95 % of what was due were answered
  kVoid,       // measured badly: see LoadResult::invalid
};

// The verdict of each cell, in order; cells of the same rate are a row.
std::vector<Verdict> JudgeCells(const std::vector<DemoCell>& cells);

// p50 and p99 of each config (columns, in order of appearance) at each rate (rows, rising), marked; then
// recall and CPU.
std::string DemoTable(const std::vector<DemoCell>& cells, const Console& console);

// What a demo was asked to do, for the JSON.
struct DemoPlan {
  std::string data;
  size_t k = 10;
  uint64_t seed = 1;
  bool quick = false;
};
std::string DemoJson(const DemoPlan& plan, const std::vector<DemoCell>& cells, bool interrupted);

}  // namespace curtail::tool
