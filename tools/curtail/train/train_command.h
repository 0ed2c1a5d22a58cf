// SPDX-License-Identifier: Apache-2.0
//
// train_command.h - `curtail train`: measures which config is best at which load, and writes that as a profile.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "curtail/term/console.h"
#include "tools/curtail/train/subject.h"

namespace curtail::tool {

struct TrainFlags {
  SubjectFlags subject;
  std::string out = "profile.json";
  std::string configs;  // empty: some that suit the machine
  std::string loads;    // empty: a ladder until all give up
  int repeats = 0;      // 0: the plan's
  double seconds = 0;   // of a cell; 0: the plan's
  uint64_t seed = 1;
  bool quick = false;
  bool dry_run = false;
  bool resume = false;
  bool fences = false;  // the limits of path classes, in place of configs at loads
};

// Runs it. Returns the exit code. What was measured is in OUT.partial at any time, from which --resume goes on.
int RunTrain(const TrainFlags& flags, Console& console, const std::atomic<bool>& stop);

}  // namespace curtail::tool
