// SPDX-License-Identifier: Apache-2.0
#include "curtail/adapt/machine.h"

#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include <cmath>
#include <fstream>
#include <string_view>

#include "curtail/base/cpus.h"
#include "curtail/base/strings.h"

namespace curtail {
namespace {

// The text after `key` and a colon in the first line of the file that begins with the key; empty if there is none.
std::string FieldOf(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const size_t begin = line.find_first_not_of("\t :", key.size());
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return {};
}

}  // namespace

MachineFingerprint ThisMachineFingerprint() {
  MachineFingerprint machine;
  machine.cpu_model = FieldOf("/proc/cpuinfo", "model name");
  machine.cpus = UsableCpus();
  if (utsname name{}; uname(&name) == 0) machine.kernel = Join(name.sysname, " ", name.release);
  if (struct sysinfo info{}; sysinfo(&info) == 0) {
    const double bytes = static_cast<double>(info.totalram) * info.mem_unit;
    machine.memory_gib = static_cast<int>(std::lround(bytes / (1u << 30)));
  }
  return machine;
}

}  // namespace curtail
