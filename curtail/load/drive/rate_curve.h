// SPDX-License-Identifier: Apache-2.0
//
// rate_curve.h - how many requests a second a run offers, as a function of time.
//
// A curve is made of straight pieces. Its integral, the expected number of requests until a time, has an
// inverse in closed form; Schedule maps arrivals of unit rate through that inverse, so that every shape of
// load is exact, with no discretisation.
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

// A RateCurve is a piece-wise linear rate over [0, length). Immutable once made but for assignment: its const
// methods may be called from any thread.
class RateCurve {
 public:
  static constexpr double kMaxPerS = 1e7;
  static constexpr Nanos kMaxLength = std::chrono::hours(24 * 100);
  static constexpr size_t kMaxPoints = 1'000'000;

  // A straight piece of the curve, never empty. Units are ns, so that nothing is converted for each arrival.
  struct Piece {
    Nanos start{0};
    double length_ns = 0;
    double per_ns = 0;  // the rate at its start
    double slope = 0;   // added to the rate each ns
    double area = 0;    // requests expected within it
    double before = 0;  // requests expected before it

    // How long after its start `requests` are expected, in ns. REQUIRES: 0 <= requests <= area.
    double TimeOf(double requests) const;
  };

  // The curve through `points`, which are sorted by time; two at the same time make a step. It is level before
  // the first and after the last; points at or after `length` only bend what lies before them.
  // Errors: INVALID_ARGUMENT, with the index of the point, for points that are none, too many, unsorted, before
  // time 0, three at one time, or whose rate is negative, not finite or above kMaxPerS; for a length that is
  // not positive or above kMaxLength; for a curve that is 0 everywhere.
  static absl::StatusOr<RateCurve> Make(std::vector<RatePoint> points, Nanos length);
  // The same rate all the time. Errors: as Make(); a rate of 0 is one.
  static absl::StatusOr<RateCurve> Constant(double per_s, Nanos length);

  // All rates times `rate_factor`, all times times `time_factor`. Errors: INVALID_ARGUMENT for factors that are
  // not positive and finite, or lead beyond the limits above.
  absl::StatusOr<RateCurve> Scaled(double rate_factor, double time_factor) const;
  // This curve cut at `length`, or prolonged to it at its last rate. Errors: as Make().
  absl::StatusOr<RateCurve> WithLength(Nanos length) const;
  // This curve after `lead_in` at its first rate, to warm a server up. Errors: INVALID_ARGUMENT for a time that
  // is negative or leads beyond kMaxLength.
  absl::StatusOr<RateCurve> WithLeadIn(Nanos lead_in) const;

  // Requests a second at `t`, after the step where there is one; 0 outside [0, length).
  double RateAt(Nanos t) const;
  // Requests expected in [0, t): the integral. Takes any t; level outside [0, length].
  double Expected(Nanos t) const;
  // The inverse of Expected(): the earliest time by which `requests` are expected, within [0, length].
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
