// SPDX-License-Identifier: Apache-2.0
//
// machine.h - the properties that a profile must share with the machine that uses it.
#pragma once

#include <string>

namespace curtail {

struct MachineFingerprint {
  std::string cpu_model;  // empty where the system does not say
  int cpus = 0;           // that the process may use, as UsableCpus() counts them
  std::string kernel;     // "Linux 6.1.0"
  int memory_gib = 0;     // in all, rounded: the kernel's own part differs from boot to boot
  friend bool operator==(const MachineFingerprint&, const MachineFingerprint&) = default;
};

// Of this machine. Reads a file of /proc.
MachineFingerprint ThisMachineFingerprint();

}  // namespace curtail
