// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/drive/internal/sampler.h"

#include <vector>

#include "curtail/load/report/statistics.h"

namespace curtail::internal {
namespace {

// With fewer the checks have no power.
constexpr size_t kFewest = 100;

}  // namespace

Sampler::Pair* Sampler::Find(uint64_t number) {
  if ((number & (stride_ - 1)) >= kPair) return nullptr;
  if (number / stride_ >= kMaxPairs) {
    Thin();
    return Find(number);
  }
  const size_t index = number / stride_;
  if (index >= pairs_.size()) pairs_.resize(index + 1);
  return &pairs_[index];
}

void Sampler::Thin() {
  for (size_t i = 0; 2 * i < pairs_.size(); ++i) pairs_[i] = pairs_[2 * i];
  pairs_.resize((pairs_.size() + 1) / 2);
  stride_ *= 2;
}

void Sampler::Sent(uint64_t number, Nanos actual) {
  if (curve_ == nullptr) return;
  if (Pair* pair = Find(number); pair != nullptr) pair->sent[number % kPair] = curve_->Expected(actual);
}

void Sampler::Done(uint64_t number, Nanos latency) {
  if (Pair* pair = Find(number); pair != nullptr) pair->latency_ns[number % kPair] = latency.count();
}

LoadChecks Sampler::Check(bool poisson) const {
  std::vector<double> gaps, first, second, times;
  for (size_t i = 0; i < pairs_.size(); ++i) {
    const Pair& pair = pairs_[i];
    if (pair.sent[0] >= 0 && pair.sent[1] >= 0) gaps.push_back(pair.sent[1] - pair.sent[0]);
    if (pair.latency_ns[0] < 0 || pair.latency_ns[1] < 0) continue;
    first.push_back(static_cast<double>(pair.latency_ns[0]));
    second.push_back(static_cast<double>(pair.latency_ns[1]));
    times.push_back(static_cast<double>(i));
  }
  LoadChecks checks;
  if (poisson && gaps.size() >= kFewest) checks.gaps_a2 = AndersonDarlingExponential(gaps);
  if (first.size() >= kFewest) {
    checks.neighbours = Spearman(first, second).r;
    checks.trend = Spearman(times, first).r;
  }
  return checks;
}

}  // namespace curtail::internal
