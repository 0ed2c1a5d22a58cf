// SPDX-License-Identifier: Apache-2.0
#include "bench/common/machine.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

#include "absl/strings/str_format.h"

namespace curtail::bench {
namespace {

// CPU time of the whole machine since it started, in ticks (proc_stat(5)).
struct Ticks {
  double total = 0;
  double idle = 0;
};

Ticks ReadTicks() {
  std::ifstream stat("/proc/stat");
  std::string label;
  stat >> label;
  Ticks ticks;
  double value = 0;
  for (int i = 0; i < 8 && stat >> value; ++i) {
    ticks.total += value;
    if (i == 3 || i == 4) ticks.idle += value;  // idle, iowait
  }
  return ticks;
}

}  // namespace

Machine LookAtMachine() {
  Machine machine;
  static_cast<MachineFingerprint&>(machine) = ThisMachineFingerprint();
  std::ifstream("/proc/loadavg") >> machine.load_average;
  const Ticks before = ReadTicks();
  // An interval to measure in; this thread waits for nothing.
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const Ticks after = ReadTicks();
  const double total = after.total - before.total;
  const double all_cpus = std::max(1u, std::thread::hardware_concurrency());
  if (total > 0) machine.busy_cpus = all_cpus * (1 - (after.idle - before.idle) / total);
  return machine;
}

std::string ToString(const Machine& machine) {
  return absl::StrFormat("%d CPUs, load average %.2f, %.2f CPUs in use by others%s", machine.cpus,
                         machine.load_average, machine.busy_cpus,
                         machine.Disturbed() ? " (DISTURBED: do not trust the times)" : "");
}

}  // namespace curtail::bench
