// SPDX-License-Identifier: Apache-2.0
#include "tally.h"

#include <iostream>

namespace curtail::soak {

void Tally::Count(const std::string& kind, absl::StatusCode code, Nanos took) {
  MutexLock lock(mu_);
  ++calls_;
  KindCounts& counts = kinds_[kind];
  ++counts.ends[absl::StatusCodeToString(code)];
  counts.took.Record(took);
}

void Tally::Fault(const std::string& text) {
  constexpr size_t kKept = 20;
  MutexLock lock(mu_);
  ++fault_count_;
  if (faults_.size() >= kKept) return;
  faults_.push_back(text);
  std::cerr << "soak: " << text << "\n";
}

std::map<std::string, KindCounts> Tally::kinds() const {
  MutexLock lock(mu_);
  return kinds_;
}

uint64_t Tally::calls() const {
  MutexLock lock(mu_);
  return calls_;
}

std::vector<std::string> Tally::faults() const {
  MutexLock lock(mu_);
  return faults_;
}

uint64_t Tally::fault_count() const {
  MutexLock lock(mu_);
  return fault_count_;
}

}  // namespace curtail::soak
