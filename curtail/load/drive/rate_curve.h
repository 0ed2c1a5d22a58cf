// SPDX-License-Identifier: Apache-2.0
//
// rate_curve.h - the rate of requests that a run offers, as a function of time.
//
// A curve consists of straight pieces. Its integral, the expected number of requests until a time,
// has an inverse in closed form. Schedule maps arrivals of unit rate through that inverse, so every
// shape of load is exact, with no discretisation.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"

namespace curtail {

// The rate at a time from the start of the run.
struct RatePoint {
  Nanos at{0};
  double per_s = 0;
};

// A RateCurve is a piece-wise linear rate over [0, length). Immutable once made, but for
// assignment: any thread may call its const methods.
class RateCurve {
 public:
  static constexpr double kMaxPerS = 1e7;
  static constexpr Nanos kMaxLength = std::chrono::hours(24 * 100);
  static constexpr size_t kMaxPoints = 1'000'000;

  // A straight piece of the curve, never empty. Units are ns, so that no arrival needs a
  // conversion.
  struct Piece {
    Nanos start{0};
    double length_ns = 0;
    double per_ns = 0;  // the rate at its start
    double slope = 0;   // added to the rate each ns
    double area = 0;    // requests expected within it
    double before = 0;  // requests expected before it

    // The time from its start until `requests` are expected, in ns. REQUIRES: 0 <= requests <=
    // area.
    double TimeOf(double requests) const;
  };

  // The curve through `points`, which are sorted by time; two at the same time make a step. It is
  // level before the first and after the last. Points at or after `length` only bend the part
  // before them.
  // Errors: INVALID_ARGUMENT, with the index of the point, in these cases:
  // - no points, more than kMaxPoints, a time before 0 or before the last, three points at one
  //   time;
  // - a rate that is negative, not finite or above kMaxPerS;
  // - a length that is not positive or above kMaxLength;
  // - a curve that is 0 everywhere.
  static absl::StatusOr<RateCurve> Make(std::vector<RatePoint> points, Nanos length);
  // The same rate all the time. Errors: as Make(); a rate of 0 is one.
  static absl::StatusOr<RateCurve> Constant(double per_s, Nanos length);

  // All rates times `rate_factor`, all times times `time_factor`. Errors: INVALID_ARGUMENT for
  // factors that are not positive and finite, or lead beyond the limits above.
  absl::StatusOr<RateCurve> Scaled(double rate_factor, double time_factor) const;
  // This curve cut at `length`, or prolonged to it at its last rate. Errors: as Make().
  absl::StatusOr<RateCurve> WithLength(Nanos length) const;
  // This curve after `lead_in` at its first rate, to warm a server up. Errors: INVALID_ARGUMENT for
  // a time that is negative or leads beyond kMaxLength.
  absl::StatusOr<RateCurve> WithLeadIn(Nanos lead_in) const;

  // Requests a second at `t`, after the step if `t` has one; 0 outside [0, length).
  double RateAt(Nanos t) const;
  // Requests expected in [0, t): the integral. Takes any t; level outside [0, length].
  double Expected(Nanos t) const;
  // The inverse of Expected(): the earliest time by which `requests` are expected, within [0,
  // length].
  Nanos TimeOf(double requests) const;

  Nanos length() const { return length_; }
  // Requests expected over the whole length; more than 0.
  double total() const { return total_; }
  // Requests a second: over the whole length, and at the highest point.
  double mean_per_s() const;
  double peak_per_s() const;
  // From time 0 to length(), without gaps.
  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  RateCurve() = default;
  // The corners of the curve, from 0 to length().
  std::vector<RatePoint> Points() const;

  std::vector<Piece> pieces_;
  Nanos length_{0};
  double total_ = 0;
};

}  // namespace curtail
