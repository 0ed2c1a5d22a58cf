// SPDX-License-Identifier: Apache-2.0
//
// memory.h - whether a process of the soak test grows.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
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
  // `heap_in_use` returns bytes, or nothing if it cannot tell now.
  Series(std::string name, pid_t pid, std::function<std::optional<uint64_t>()> heap_in_use)
      : name_(std::move(name)), pid_(pid), heap_in_use_(std::move(heap_in_use)) {}

  void Sample();
  Growth growth() const;
  // INTERNAL if it holds more and more. REQUIRES: some minutes of samples; less prove nothing.
  absl::Status CheckFlat() const;
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  pid_t pid_;
  std::function<std::optional<uint64_t>()> heap_in_use_;
  std::vector<Held> samples_;
};

}  // namespace curtail::soak
