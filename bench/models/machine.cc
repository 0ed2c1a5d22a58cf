// SPDX-License-Identifier: Apache-2.0
#include "machine.h"

#include <sys/utsname.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

#include "curtail/exec/spin_budget.h"

namespace curtail::models {
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

std::string CpuModel() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  }
  return "unknown CPU";
}

}  // namespace

Machine LookAtMachine() {
  Machine machine;
  machine.cpu_model = CpuModel();
  machine.cpus = UsableCpus();
  utsname name{};
  if (uname(&name) == 0) machine.kernel = name.release;
  std::ifstream("/proc/loadavg") >> machine.load_average;
  const Ticks before = ReadTicks();
  // An interval to measure in; nobody is waited for.
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const Ticks after = ReadTicks();
  const double total = after.total - before.total;
  const double all_cpus = std::max(1u, std::thread::hardware_concurrency());
  if (total > 0) machine.busy_cpus = all_cpus * (1 - (after.idle - before.idle) / total);
  return machine;
}

}  // namespace curtail::models
