// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/drive/schedule.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "curtail/base/strings.h"
#include "curtail/load/drive/internal/count_text.h"

namespace curtail {

std::string_view GapsName(Gaps gaps) { return gaps == Gaps::kPoisson ? "poisson" : "constant"; }

absl::StatusOr<Gaps> ParseGaps(std::string_view name) {
  for (const Gaps gaps : {Gaps::kPoisson, Gaps::kConstant}) {
    if (name == GapsName(gaps)) return gaps;
  }
  return absl::InvalidArgumentError(
      Join("arrivals are \"poisson\" or \"constant\", not \"", name.substr(0, 40), "\""));
}

std::optional<Nanos> Arrivals::Next() {
  requests_ += gaps_ == Gaps::kPoisson ? rng_.Exponential(1) : 1;
  const std::vector<RateCurve::Piece>& pieces = curve_->pieces();
  while (piece_ < pieces.size() && requests_ >= pieces[piece_].area) requests_ -= pieces[piece_++].area;
  if (piece_ == pieces.size()) return std::nullopt;
  const RateCurve::Piece& piece = pieces[piece_];
  // Rounding must not carry it to the end of the piece, which may be the end of the run.
  return piece.start + Nanos(static_cast<int64_t>(std::min(piece.TimeOf(requests_), piece.length_ns - 1)));
}

absl::StatusOr<Schedule> Schedule::Make(RateCurve curve, Gaps gaps, uint64_t seed) {
  if (curve.total() > kMaxArrivals) {
    using internal::CountText;
    return absl::InvalidArgumentError(
        absl::StrFormat("%s requests a second for %s are %s requests; at most %s can be scheduled in one run",
                        CountText(curve.mean_per_s()), absl::FormatDuration(absl::FromChrono(curve.length())),
                        CountText(curve.total()), CountText(kMaxArrivals)));
  }
  return Schedule(std::move(curve), gaps, seed);
}

absl::StatusOr<Schedule> Schedule::Poisson(double rate_per_s, Nanos length, uint64_t seed) {
  absl::StatusOr<RateCurve> curve = RateCurve::Constant(rate_per_s, length);
  if (!curve.ok()) return curve.status();
  return Make(*std::move(curve), Gaps::kPoisson, seed);
}

}  // namespace curtail
