// SPDX-License-Identifier: Apache-2.0
#include "bench/common/machine.h"

#include <sys/utsname.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

namespace curtail::bench {
namespace {

// CPU time of the whole machine since it started, in ticks: all of it, and the idle part.
std::pair<double, double> ReadTicks() {
  std::ifstream stat("/proc/stat");
  std::string label;
  stat >> label;
  double total = 0, idle = 0, value = 0;
  for (int i = 0; i < 8 && stat >> value; ++i) {
    total += value;
    if (i == 3 || i == 4) idle += value;  // idle, iowait
  }
  return {total, idle};
}

}  // namespace

Machine LookAtMachine() {
  Machine machine;
  machine.cpus = static_cast<int>(std::thread::hardware_concurrency());
  std::ifstream("/proc/loadavg") >> machine.load_average;
  utsname names{};
  if (uname(&names) == 0) machine.kernel = names.release;
  const auto [total_before, idle_before] = ReadTicks();
  std::this_thread::sleep_for(
      std::chrono::milliseconds(500));  // an interval to measure in, not a synchronisation
  const auto [total_after, idle_after] = ReadTicks();
  const double total = total_after - total_before;
  if (total > 0) machine.busy_cpus = machine.cpus * (1 - (idle_after - idle_before) / total);
  return machine;
}

}  // namespace curtail::bench
