// SPDX-License-Identifier: Apache-2.0
//
// machine.h - the machine that the numbers belong to, and how it was before the run.
#pragma once

#include <string>

#include "curtail/adapt/machine.h"

namespace curtail::bench {

struct Machine : MachineFingerprint {
  double load_average = 0;  // of the last minute
  double busy_cpus = 0;     // in use by others while this process did nothing
  bool Disturbed() const { return busy_cpus > 0.1 * cpus; }
};

// Takes half a second, in which this process sleeps.
Machine LookAtMachine();

// "2 CPUs, load average 0.50, 0.10 CPUs in use by others", and a warning when the machine is disturbed. No newline.
std::string ToString(const Machine& machine);

}  // namespace curtail::bench
