// SPDX-License-Identifier: Apache-2.0
//
// statistics.h - the tests and intervals that check a run and compare repeated runs.
//
// All take a few to some ten thousand numbers at the end of a run; they are not for its hot path.
// Inputs are finite numbers in any order. Pure functions: any thread may call them.
#pragma once

#include <optional>
#include <span>

namespace curtail {

// A^2 of Anderson and Darling (1954) for the hypothesis that `gaps` are independent and exponential
// with mean 1. Small if they fit; sensitive in the tails. A gap of 0 counts as one just above.
// REQUIRES: not empty, >= 0.
double AndersonDarlingExponential(std::span<const double> gaps);
// A true hypothesis gives more than this in 5 % and 1 % of all samples of about ten numbers or
// more. The mean is known, not estimated (Marsaglia and Marsaglia, "Evaluating the Anderson-Darling
// distribution", Journal of Statistical Software, 2004).
inline constexpr double kAndersonDarling5Percent = 2.492;
inline constexpr double kAndersonDarling1Percent = 3.878;

// The relation of one number to another, from -1 to 1, and the probability of at least that much
// without any relation. The probability is Student's t, good from about 10 pairs on.
struct Correlation {
  double r = 0;
  double p = 1;
};
// Spearman's rank correlation of pairs, with mean ranks for ties. It is 0 if one side is constant
// or there are under 3 pairs. REQUIRES: x.size() == y.size().
Correlation Spearman(std::span<const double> x, std::span<const double> y);

struct Interval {
  double low = 0;
  double high = 0;
};

// The t below which Student's distribution has the share `p`. REQUIRES: 0 < p < 1, freedom > 0.
double StudentTQuantile(double p, double freedom);
// The interval of the mean with the given confidence, if the values are about normal, as the means
// of runs are. None for under 2 values. REQUIRES: 0 < confidence < 1.
std::optional<Interval> MeanInterval(std::span<const double> values, double confidence);
// The probability of a mean at least as far from 0 when the true one is 0, if the values are about
// normal (Student's t). For values that are symmetric about 0 with heavy tails it is too high
// rather than too low. 1 for under 2 values.
double MeanZeroP(std::span<const double> values);
// The middle value, or the mean of the two in the middle. REQUIRES: not empty.
double Median(std::span<const double> values);
// The interval of the median with at least the given confidence, whatever the distribution, by
// order statistics. None for too few values: 95 % need 6. REQUIRES: 0 < confidence < 1.
std::optional<Interval> MedianInterval(std::span<const double> values, double confidence);

// The difference of two samples.
struct Difference {
  // The number of pairs (x of a, y of b) in which x is the greater; a tie counts one half.
  double u = 0;
  // The probability of a u at least as far from the middle when both samples come from one
  // distribution.
  double p = 1;
};
// The two-sided test of Mann and Whitney (1947). Exact, with ties, for up to 60 values together: it
// counts all ways to deal the ranks. Beyond, it is the normal approximation, corrected for ties and
// continuity. With 3 runs on each side p cannot be below 0.1, with 4 not below 0.029. p = 1 when a
// side is empty.
Difference MannWhitney(std::span<const double> a, std::span<const double> b);

}  // namespace curtail
