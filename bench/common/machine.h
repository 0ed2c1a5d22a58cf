// SPDX-License-Identifier: Apache-2.0
//
// machine.h - how this machine was before the run.
#pragma once

#include <string>

namespace curtail::bench {

struct Machine {
  int cpus = 0;
  double load_average = 0;  // of the last minute
  double busy_cpus = 0;     // in use by others while we did nothing
  std::string kernel;       // its release
  bool Disturbed() const { return busy_cpus > 0.2; }
};

// Takes half a second, in which this process sleeps.
Machine LookAtMachine();

}  // namespace curtail::bench
