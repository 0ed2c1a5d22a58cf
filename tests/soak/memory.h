// SPDX-License-Identifier: Apache-2.0
//
// memory.h - whether a process of the soak test grows.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "process.h"

namespace curtail::soak {

// The memory of a process early and late: medians of the second and of the last fifth of the samples.
struct Growth {
  Held early;
  Held late;
  Held most;
};

// A Series is what one process held from second to second. Thread-compatible.
class Series {
 public:
  Series(std::string name, pid_t pid) : name_(std::move(name)), pid_(pid) {}

  void Sample() { samples_.push_back(HeldBy(pid_)); }
  Growth growth() const;
  // INTERNAL if it holds more and more. REQUIRES: some minutes of samples; less prove nothing.
  absl::Status CheckFlat() const;
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  pid_t pid_;
  std::vector<Held> samples_;
};

}  // namespace curtail::soak
