// SPDX-License-Identifier: Apache-2.0
//
// schedule.h - the time at which an open-loop run intends to send each request, fixed before the
// run.
//
// A schedule does not know the server: each request is due at its time, however long the answers
// take. A curve of rates, a kind of gaps and a seed define it, so two runs, or two servers, can get
// the same arrivals. Arrivals are drawn as they are needed: a run of any length takes the same
// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/base/rng.h"
#include "curtail/load/drive/rate_curve.h"

namespace curtail {

// The times from one arrival to the next, in units of the mean gap of the moment.
enum class Gaps {
  // Exponential: independent users, a Poisson process (inhomogeneous where the rate changes)
  kPoisson,
  // Always 1, but the first 1/2: a metronome that follows the rate, with exactly the expected
  // number of arrivals. Flatters the tail; for calibration
  kConstant,
};

// "poisson", "constant".
std::string_view GapsName(Gaps gaps);
// Errors: INVALID_ARGUMENT that names the known ones.
absl::StatusOr<Gaps> ParseGaps(std::string_view name);

// An Arrivals is a place in a schedule, from which the later arrivals can be read.
// Thread-compatible; a copy forks it. The Schedule must outlive it, unmoved.
class Arrivals {
 public:
  // The time at which the next request is due, from the start of the run. It is never before the
  // last, and always before the end of the curve. None once all have been read. Takes some tens of
  // ns; constant time but for the pieces of the curve it crosses.
  std::optional<Nanos> Next();

 private:
  friend class Schedule;
  Arrivals(const RateCurve& curve, Gaps gaps, uint64_t seed)
      : curve_(&curve), gaps_(gaps), rng_(seed), requests_(gaps == Gaps::kConstant ? -0.5 : 0) {}

  const RateCurve* curve_;
  Gaps gaps_;
  Rng rng_;
  size_t piece_ = 0;
  double requests_;  // of unit rate, since the start of the piece
};

// A Schedule is all arrivals of a run. Any thread may call its const methods.
//
// A Poisson process of unit rate is mapped through the inverse of the curve's integral. By the time
// change theorem the result is the Poisson process with that curve as its rate (Cinlar,
// "Introduction to Stochastic Processes", 1975, section 4.7).
class Schedule {
 public:
  // More expected arrivals than this are refused as a mistake.
  static constexpr double kMaxArrivals = 1e10;

  // Errors: INVALID_ARGUMENT for more than kMaxArrivals expected arrivals.
  static absl::StatusOr<Schedule> Make(RateCurve curve, Gaps gaps, uint64_t seed);
  // Poisson arrivals at the same rate all the time. Errors: as Make() and RateCurve::Constant().
  static absl::StatusOr<Schedule> Poisson(double rate_per_s, Nanos length, uint64_t seed);

  // A reader at the first arrival; all readers read the same.
  Arrivals arrivals() const& { return Arrivals(curve_, gaps_, seed_); }
  Arrivals arrivals() && = delete;  // it would outlive the schedule

  const RateCurve& curve() const { return curve_; }
  Nanos length() const { return curve_.length(); }
  Gaps gaps() const { return gaps_; }
  std::string_view gaps_name() const { return GapsName(gaps_); }
  uint64_t seed() const { return seed_; }
  // The mean over the whole length.
  double rate_per_s() const { return curve_.mean_per_s(); }

 private:
  Schedule(RateCurve curve, Gaps gaps, uint64_t seed) : curve_(std::move(curve)), gaps_(gaps), seed_(seed) {}

  RateCurve curve_;
  Gaps gaps_;
  uint64_t seed_;
};

}  // namespace curtail
