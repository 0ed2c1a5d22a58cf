// SPDX-License-Identifier: Apache-2.0
//
// schedule.h - when an open-loop run intends to send each request, fixed before the run.
//
// A schedule does not know the server: whatever the answers take, request i is due at offsets()[i]. It is
// made from a seed, so that two runs, or two servers, can be given the very same arrivals. Thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/base/rng.h"

namespace curtail {

// Gaps is an arrival process: the times from one arrival to the next.
class Gaps {
 public:
  virtual ~Gaps() = default;
  // The gap before the next arrival, in ns, >= 0. May depend on what was drawn before.
  virtual double NextNs(Rng& rng) = 0;
  // For plans and reports: "poisson", "constant".
  virtual std::string_view name() const = 0;
  // Long-run mean of arrivals per second.
  virtual double rate_per_s() const = 0;
};

// Exponential gaps: independent users, a Poisson process. REQUIRES: rate_per_s > 0.
std::unique_ptr<Gaps> PoissonGaps(double rate_per_s);
// The same gap each time: a metronome. Flatters the tail; for calibration. REQUIRES: rate_per_s > 0.
std::unique_ptr<Gaps> ConstantGaps(double rate_per_s);

// A Schedule is the sorted offsets, from the start of the run, at which requests are due.
class Schedule {
 public:
  // More arrivals than this (400 MB of offsets) are refused.
  static constexpr uint64_t kMaxArrivals = 50'000'000;

  // Draws arrivals until `length`. Errors: INVALID_ARGUMENT for a rate or length that is not positive and
  // finite, or for more than kMaxArrivals expected arrivals.
  static absl::StatusOr<Schedule> Make(Gaps& gaps, Nanos length, uint64_t seed);

  const std::vector<Nanos>& offsets() const { return offsets_; }
  Nanos length() const { return length_; }
  uint64_t seed() const { return seed_; }
  double rate_per_s() const { return rate_per_s_; }
  const std::string& name() const { return name_; }

 private:
  Schedule() = default;

  std::vector<Nanos> offsets_;
  Nanos length_{0};
  uint64_t seed_ = 0;
  double rate_per_s_ = 0;
  std::string name_;
};

}  // namespace curtail
