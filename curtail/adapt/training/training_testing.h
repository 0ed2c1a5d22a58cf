// SPDX-License-Identifier: Apache-2.0
//
// training_testing.h - small training plans for tests, and measurements for their cells.
#pragma once

#include <string_view>

#include "curtail/adapt/training.h"

namespace curtail {

inline MachineFingerprint TestMachine() { return {"Test CPU", 2, "Linux 6.1.0", 8}; }

// SDB1-1, SDB1-2, ... at 50/s and up in half octaves.
inline TrainingPlan SmallPlan(int configs, int loads) {
  TrainingPlan plan{
      .service = "test.Service", .loads = LoadLadder(50, 2, loads), .seed = 7, .workload = "text"};
  for (int i = 1; i <= configs; ++i) plan.configs.push_back({{.execution = Execution::kDispatch}, 1, i});
  return plan;
}

inline ProfileCell Measured(const TrainingCell& cell, double p99_us, bool saturated) {
  return {.config = cell.config,
          .load_per_s = cell.load_per_s,
          .repeat = cell.repeat,
          .p50_us = p99_us / 3,
          .p99_us = p99_us,
          .mean_us = p99_us / 2.5,
          .achieved_per_s = saturated ? cell.load_per_s / 2 : cell.load_per_s,
          .saturated = saturated};
}

}  // namespace curtail
