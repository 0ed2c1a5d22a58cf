// SPDX-License-Identifier: Apache-2.0
//
// The judgement is sequential: after each pair the mean of the ratios' logarithms is compared with its standard error. A few
// pairs do not tell their own deviation, so one pair of a usual deviation is counted in.
#include "curtail/adapt/internal/paired_trial.h"

#include <algorithm>
#include <cmath>

namespace curtail::internal {
namespace {

constexpr double kUsual = 0.2;  // deviation of the ratio of two p99, each of some hundred samples
constexpr int kMostPairs = 16;
constexpr double kSure = 3;      // standard errors that a win takes
constexpr double kHopeless = 1;  // and that leave no hope
constexpr double kFarWorse = 2;  // a turn with so many times the p99 is enough

double LogP99(const LatencySketch& latencies) { return std::log(std::max(latencies.QuantileUs(0.99), 1e-3)); }

}  // namespace

PairedTrial::PairedTrial(size_t champion, size_t challenger, double price, double gain, double before_us)
    : champion_(champion),
      challenger_(challenger),
      log_price_(std::log(price)),
      log_gain_(std::log(1 - gain)),
      before_(std::log(std::max(before_us, 1e-3))) {}

PairedTrial::Verdict PairedTrial::Add(const LatencySketch& latencies) {
  turn_.Merge(latencies);
  if (turn_.weight() < kTurn) return Verdict::kOpen;
  const double log_p99 = LogP99(turn_);
  turn_ = {};
  challengers_turn_ = !challengers_turn_;
  if (!challengers_turn_) {
    challenged_ = log_p99 + log_price_;
    return challenged_ - before_ > std::log(kFarWorse) ? Verdict::kLost : Verdict::kOpen;
  }
  const double ratio = challenged_ - (before_ + log_p99) / 2;
  before_ = log_p99;
  ++pairs_, sum_ += ratio, squares_ += ratio * ratio;
  return Judge();
}

std::optional<double> PairedTrial::ratio() const {
  if (pairs_ > 0) return std::exp(sum_ / pairs_);
  return challengers_turn_ ? std::nullopt : std::optional(std::exp(challenged_ - before_));
}

PairedTrial::Verdict PairedTrial::Judge() {
  const double mean = sum_ / pairs_;
  const double variance = (std::max(squares_ - sum_ * mean, 0.0) + kUsual * kUsual) / pairs_;
  const double error = std::sqrt(variance / pairs_);
  if (pairs_ >= kLeastPairs && mean < log_gain_ && mean + kSure * error < 0) return Verdict::kWon;
  if (mean - kHopeless * error > log_gain_) return mean > 0 ? Verdict::kLost : Verdict::kEqual;
  return pairs_ < kMostPairs ? Verdict::kOpen : Verdict::kEqual;
}

}  // namespace curtail::internal
