// SPDX-License-Identifier: Apache-2.0
//
// machine.h - the machine that the numbers belong to, and whether others use it.
#pragma once

#include <string>

namespace curtail::models {

struct Machine {
  std::string cpu_model;
  std::string kernel;
  int cpus = 0;             // usable by this process
  double busy_cpus = 0;     // in use by others while this process did nothing
  double load_average = 0;  // of the last minute
  bool disturbed() const { return busy_cpus > 0.1 * cpus; }
};

// Takes half a second, in which this process does nothing.
Machine LookAtMachine();

}  // namespace curtail::models
