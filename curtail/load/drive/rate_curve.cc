// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/drive/rate_curve.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"
#include "curtail/load/drive/internal/count_text.h"

namespace curtail {
namespace {

constexpr double kNsPerS = 1e9;

double Ns(Nanos time) { return static_cast<double>(time.count()); }

absl::Status CheckLength(Nanos length) {
  if (length <= Nanos::zero()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the load must last longer than 0 s, not %g s", InSeconds(length)));
  }
  if (length > RateCurve::kMaxLength) {
    return absl::InvalidArgumentError(absl::StrFormat("the load lasts %g s, which is over the limit of %g s",
                                                      InSeconds(length), InSeconds(RateCurve::kMaxLength)));
  }
  return absl::OkStatus();
}

absl::Status CheckPoint(const std::vector<RatePoint>& points, size_t i) {
  const RatePoint& p = points[i];
  if (!std::isfinite(p.per_s) || p.per_s < 0 || p.per_s > RateCurve::kMaxPerS) {
    return absl::InvalidArgumentError(
        absl::StrFormat("point %d has a rate of %g requests a second; it must be from 0 to %g", i, p.per_s,
                        RateCurve::kMaxPerS));
  }
  if (p.at < Nanos::zero()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("point %d is at %g s, before time 0", i, InSeconds(p.at)));
  }
  if (i > 0 && p.at < points[i - 1].at) {
    return absl::InvalidArgumentError(
        absl::StrFormat("point %d is at %g s, before point %d at %g s: sort them", i, InSeconds(p.at), i - 1,
                        InSeconds(points[i - 1].at)));
  }
  if (i > 1 && p.at == points[i - 2].at) {
    return absl::InvalidArgumentError(
        absl::StrFormat("point %d is the third at %g s; two make a step", i, InSeconds(p.at)));
  }
  return absl::OkStatus();
}

absl::Status CheckPoints(const std::vector<RatePoint>& points) {
  if (points.empty()) return absl::InvalidArgumentError("the curve has no points");
  if (points.size() > RateCurve::kMaxPoints) {
    return absl::InvalidArgumentError(absl::StrFormat("the curve has %d points; at most %d are taken",
                                                      points.size(), RateCurve::kMaxPoints));
  }
  for (size_t i = 0; i < points.size(); ++i) {
    if (absl::Status status = CheckPoint(points, i); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// The rate on the line from `a` to `b`. REQUIRES: a.at < b.at.
double Between(const RatePoint& a, const RatePoint& b, Nanos at) {
  return a.per_s + (b.per_s - a.per_s) * (Ns(at - a.at) / Ns(b.at - a.at));
}

// Makes the points start at 0 and end at `length`.
void Fit(std::vector<RatePoint>* points, Nanos length) {
  if (points->front().at > Nanos::zero()) points->insert(points->begin(), {Nanos(0), points->front().per_s});
  const auto past =
      std::find_if(points->begin(), points->end(), [&](const RatePoint& p) { return p.at >= length; });
  if (past == points->end()) {
    points->push_back({length, points->back().per_s});
  } else {
    // Points at `length` are kept up to the first: a step there is after the end.
    if (past->at > length) *past = {length, Between(*(past - 1), *past, length)};
    points->erase(past + 1, points->end());
  }
}

RateCurve::Piece PieceBetween(const RatePoint& a, const RatePoint& b, double before) {
  RateCurve::Piece piece;
  piece.start = a.at;
  piece.length_ns = Ns(b.at - a.at);
  piece.per_ns = a.per_s / kNsPerS;
  piece.slope = (b.per_s - a.per_s) / kNsPerS / piece.length_ns;
  piece.area = (a.per_s + b.per_s) / 2 / kNsPerS * piece.length_ns;
  piece.before = before;
  return piece;
}

}  // namespace

double RateCurve::Piece::TimeOf(double requests) const {
  // The root of per_ns t + slope t^2 / 2 = requests, in the form that loses no digits for a small slope.
  const double square = std::max(0.0, per_ns * per_ns + 2 * slope * requests);
  const double denominator = per_ns + std::sqrt(square);
  return denominator > 0 ? std::min(length_ns, 2 * requests / denominator) : 0;
}

absl::StatusOr<RateCurve> RateCurve::Make(std::vector<RatePoint> points, Nanos length) {
  if (absl::Status status = CheckLength(length); !status.ok()) return status;
  if (absl::Status status = CheckPoints(points); !status.ok()) return status;
  Fit(&points, length);
  RateCurve curve;
  curve.length_ = length;
  curve.pieces_.reserve(points.size() - 1);
  for (size_t i = 1; i < points.size(); ++i) {
    if (points[i].at == points[i - 1].at) continue;  // a step
    curve.pieces_.push_back(PieceBetween(points[i - 1], points[i], curve.total_));
    curve.total_ += curve.pieces_.back().area;
  }
  if (curve.total_ <= 0) {
    return absl::InvalidArgumentError("the rate is 0 all the time; give at least one that is more than 0");
  }
  return curve;
}

absl::StatusOr<RateCurve> RateCurve::Constant(double per_s, Nanos length) {
  if (!std::isfinite(per_s) || per_s <= 0 || per_s > kMaxPerS) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the rate must be more than 0 and at most %s requests a second, not %s",
                        internal::CountText(kMaxPerS), internal::CountText(per_s)));
  }
  return Make({{Nanos(0), per_s}}, length);
}

absl::StatusOr<RateCurve> RateCurve::Scaled(double rate_factor, double time_factor) const {
  for (const double factor : {rate_factor, time_factor}) {
    if (!std::isfinite(factor) || factor <= 0) {
      return absl::InvalidArgumentError(
          absl::StrFormat("a curve is scaled by what is finite and more than 0, not %g", factor));
    }
  }
  if (Ns(length_) * time_factor > Ns(kMaxLength)) {
    return absl::InvalidArgumentError(absl::StrFormat("a load of %g s times %g is over the limit of %g s",
                                                      InSeconds(length_), time_factor,
                                                      InSeconds(kMaxLength)));
  }
  std::vector<RatePoint> points = Points();
  for (RatePoint& p : points) {
    p.at = Nanos(std::llround(Ns(p.at) * time_factor));
    p.per_s *= rate_factor;
  }
  // Corners less than a ns apart fall together: of those the first and the last make the step.
  std::vector<RatePoint> kept;
  for (const RatePoint& p : points) {
    if (kept.size() > 1 && kept[kept.size() - 2].at == p.at) kept.pop_back();
    kept.push_back(p);
  }
  return Make(std::move(kept), Nanos(std::llround(Ns(length_) * time_factor)));
}

absl::StatusOr<RateCurve> RateCurve::WithLength(Nanos length) const { return Make(Points(), length); }

absl::StatusOr<RateCurve> RateCurve::WithLeadIn(Nanos lead_in) const {
  if (lead_in < Nanos::zero() || lead_in > kMaxLength - length_) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a lead-in of %g s is negative, or too long", InSeconds(lead_in)));
  }
  std::vector<RatePoint> points = Points();
  for (RatePoint& p : points) p.at += lead_in;
  return Make(std::move(points), length_ + lead_in);
}

std::vector<RatePoint> RateCurve::Points() const {
  std::vector<RatePoint> points;
  for (const Piece& piece : pieces_) {
    const RatePoint start{piece.start, piece.per_ns * kNsPerS};
    const double end_per_s = std::max(0.0, piece.per_ns + piece.slope * piece.length_ns) * kNsPerS;
    // A corner without a step is one point.
    if (!points.empty() && points.back().per_s == start.per_s) points.pop_back();
    points.push_back(start);
    points.push_back({piece.start + Nanos(static_cast<int64_t>(piece.length_ns)), end_per_s});
  }
  return points;
}

double RateCurve::RateAt(Nanos t) const {
  if (t < Nanos::zero() || t >= length_) return 0;
  const auto after = std::upper_bound(pieces_.begin(), pieces_.end(), t,
                                      [](Nanos at, const Piece& piece) { return at < piece.start; });
  const Piece& piece = *(after - 1);
  return std::max(0.0, piece.per_ns + piece.slope * Ns(t - piece.start)) * kNsPerS;
}

double RateCurve::Expected(Nanos t) const {
  if (t <= Nanos::zero()) return 0;
  if (t >= length_) return total_;
  const auto after = std::upper_bound(pieces_.begin(), pieces_.end(), t,
                                      [](Nanos at, const Piece& piece) { return at < piece.start; });
  const Piece& piece = *(after - 1);
  const double x = Ns(t - piece.start);
  return piece.before + std::clamp(x * (piece.per_ns + piece.slope * x / 2), 0.0, piece.area);
}

Nanos RateCurve::TimeOf(double requests) const {
  if (!(requests > 0)) return Nanos(0);
  if (requests >= total_) return length_;
  const auto piece =
      std::lower_bound(pieces_.begin(), pieces_.end(), requests,
                       [](const Piece& p, double sought) { return p.before + p.area < sought; });
  if (piece == pieces_.end()) return length_;
  return piece->start + Nanos(static_cast<int64_t>(piece->TimeOf(std::max(0.0, requests - piece->before))));
}

double RateCurve::mean_per_s() const { return total_ / InSeconds(length_); }

double RateCurve::peak_per_s() const {
  double peak = 0;
  for (const Piece& piece : pieces_) {
    peak = std::max({peak, piece.per_ns, piece.per_ns + piece.slope * piece.length_ns});
  }
  return peak * kNsPerS;
}

}  // namespace curtail
