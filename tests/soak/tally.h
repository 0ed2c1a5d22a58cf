// SPDX-License-Identifier: Apache-2.0
//
// tally.h - how the calls of the soak test ended.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/base/histogram.h"
#include "curtail/base/mutex.h"

namespace curtail::soak {

// The calls of one kind.
struct KindCounts {
  std::map<std::string, uint64_t> ends;  // by the name of the status
  Histogram took;
};

// A Tally counts calls and keeps the first faults. Thread-safe.
class Tally {
 public:
  void Count(const std::string& kind, absl::StatusCode code, Nanos took);
  // A fault of the product: an answer or a status that may not be. Printed at once.
  void Fault(const std::string& text);

  std::map<std::string, KindCounts> kinds() const;
  uint64_t calls() const;
  // The first 20, and the number of all.
  std::vector<std::string> faults() const;
  uint64_t fault_count() const;

 private:
  mutable Mutex mu_;
  std::map<std::string, KindCounts> kinds_ CURTAIL_GUARDED_BY(mu_);
  uint64_t calls_ CURTAIL_GUARDED_BY(mu_) = 0;
  std::vector<std::string> faults_ CURTAIL_GUARDED_BY(mu_);
  uint64_t fault_count_ CURTAIL_GUARDED_BY(mu_) = 0;
};

}  // namespace curtail::soak
