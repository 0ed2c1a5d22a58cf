// SPDX-License-Identifier: Apache-2.0
//
// shape.h - reads the load that a run offers over time: a few formulas, shipped shapes, or a trace
// in a file.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/load/drive/rate_curve.h"

namespace curtail {

struct ShapeOptions {
  // The length of the load. Without it the shape's own times decide; formulas have none.
  std::optional<Nanos> length;
  // Draws the bursts of `bursts`; no other shape is random.
  uint64_t seed = 1;
  // All rates times this.
  double rate_scale = 1;
  // All times of a trace or shipped shape times this: 0.01 replays a day in a quarter of an hour.
  double time_scale = 1;
};

// Reads a shape, with rates in requests a second:
//   constant:500          the same rate all the time
//   steps:100,500,2000    equal parts of the length, at most 1000
//   ramp:100..5000        a straight line up, or down
//   flash-crowd:100..8000 the low rate, but the high one for 1 s in the middle (a third of a
//                         shorter run), as in muTune (Sriraman and Wenisch, OSDI 2018)
//   diurnal:100..2000     a day: one raised cosine, low at both ends, in 96 straight pieces
//   bursts:200..2000,1s,100ms
//                         a Poisson process modulated by two states (MMPP), in equilibrium: the
//                         low and the high rate for exponential times of these means (1s,100ms
//                         where left out), drawn from the seed
//   large-variation:2000  a shipped shape and its peak; stretched to the length if there is one
//   PATH.csv              a trace, see ParseRateCsv(); cut at the length. A shorter one ends the
//                         load earlier. A spec with a slash is a path too
// The other shipped shapes are big-spike, dual-phase, quick-variation, slow-variation,
// steep-tri-phase and world-cup-98.
// Errors: INVALID_ARGUMENT with the fault, its line in a trace, and the right form; NOT_FOUND for a
// missing file. Reads the file, and no other.
absl::StatusOr<RateCurve> ParseShape(std::string_view spec, const ShapeOptions& options);

// True if the seed changes the result of ParseShape().
bool ShapeIsDrawn(std::string_view spec);

// Reads lines of `seconds,rate`. The curve goes through them in straight lines; two rates at the
// same time make a step. The first line may be a header; empty lines and lines that start with #
// are left out. Times count from the first. A result is whole: all points are sorted, finite and
// within the limits of RateCurve.
// Errors: INVALID_ARGUMENT that starts with `name` and the line: "day.csv:7: ...".
absl::StatusOr<std::vector<RatePoint>> ParseRateCsv(std::string_view text, std::string_view name);

}  // namespace curtail
