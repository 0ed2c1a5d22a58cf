// SPDX-License-Identifier: Apache-2.0
//
// paired_trial.h - one config is compared with the one in force, where the machine is not the same from one second to the
// next.
#pragma once

#include <cstddef>
#include <optional>

#include "curtail/adapt/latency_sketch.h"

namespace curtail::internal {

// A PairedTrial runs two configs by turns. A turn of the challenger is compared with the champion's turns right before and
// after it: whatever slows the machine for some seconds slows both. Thread-compatible.
class PairedTrial {
 public:
  enum class Verdict { kOpen, kLost, kEqual, kWon };

  // `price`: what the challenger's p99 is multiplied with. `gain`: the least share by which it must then be lower.
  // `before_us`: the champion's p99 in the turn before.
  PairedTrial(size_t champion, size_t challenger, double price, double gain, double before_us);

  size_t champion() const { return champion_; }
  size_t challenger() const { return challenger_; }
  bool challengers_turn() const { return challengers_turn_; }
  size_t running() const { return challengers_turn_ ? challenger_ : champion_; }

  // A window of the running config. A turn ends with the window that completes its samples.
  Verdict Add(const LatencySketch& latencies);

  // The challenger's p99, with its price, to the champion's: the geometric mean of the pairs. Of the first turn alone if
  // there is no pair, and absent before its end.
  std::optional<double> ratio() const;

  // The samples of a turn.
  static constexpr double kTurn = 100;
  // Turns of the challenger, each compared, before it can win.
  static constexpr int kLeastPairs = 4;

 private:
  Verdict Judge();

  const size_t champion_;
  const size_t challenger_;
  const double log_price_;
  const double log_gain_;  // below zero
  bool challengers_turn_ = true;
  LatencySketch turn_;
  double before_ = 0;      // logarithm of the p99 in the champion's last turn
  double challenged_ = 0;  // and in the challenger's
  // Of the logarithms of the ratios.
  int pairs_ = 0;
  double sum_ = 0;
  double squares_ = 0;
};

}  // namespace curtail::internal
