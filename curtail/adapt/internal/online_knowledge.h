// SPDX-License-Identifier: Apache-2.0
//
// online_knowledge.h - what the online policy has learnt: latencies by config and load, and which loads are too
// much.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "curtail/adapt/envelope.h"
#include "curtail/adapt/latency_sketch.h"
#include "curtail/adapt/policy.h"
#include "curtail/base/clock.h"
#include "curtail/exec/config.h"

namespace curtail::internal {

// A Knowledge holds a fading sketch of latencies for each config and load bucket. Buckets are half octaves:
// bucket b is of loads around 2^(b/2). Thread-compatible.
class Knowledge {
 public:
  static constexpr int kBuckets = 60;  // up to a thousand million a second
  static int BucketOf(double load_per_s);
  static double LowOf(int bucket);  // requests a second
  static double HighOf(int bucket);

  Knowledge(std::vector<Config> configs, std::optional<Envelope> expected);

  const std::vector<Config>& configs() const { return configs_; }

  // Adds a window of a config, taken at this load.
  void Learn(size_t config, int bucket, TimePoint now, const LatencyWindow& window);
  // The config did not keep up at this load, so it will not at any higher one.
  void LearnSaturation(size_t config, int bucket, TimePoint now);
  // The machine is another one than before: what was measured and expected keeps next to no weight.
  void Distrust();

  // The config's p99 to that of the champion there, as a trial found it; until another champion is there.
  void LearnRatio(size_t config, int bucket, std::optional<double> ratio) {
    At(config, bucket).ratio = ratio;
  }
  std::optional<double> Ratio(size_t config, int bucket) const { return At(config, bucket).ratio; }
  void ForgetRatios(int bucket);

  // Measured samples, faded.
  double Weight(size_t config, int bucket) const;
  // The windows that they came in, faded.
  double Windows(size_t config, int bucket) const { return At(config, bucket).windows; }
  // The p99 in microseconds, from what was measured and what was expected, by weight; absent when nothing is
  // known here.
  std::optional<double> P99(size_t config, int bucket) const;
  // The same, borrowed from the next bucket that knows, up to an octave away, with a share added for each step.
  std::optional<double> P99Nearby(size_t config, int bucket) const;
  // The least that the p99 is, for all that is known; zero when nothing is.
  double P99AtLeast(size_t config, int bucket) const;

  // True if the config is known not to keep up with this load, or cannot.
  bool Excluded(size_t config, int bucket, TimePoint now) const;
  // True if it is safe to try: it kept up with a load one bucket lower at least, or it is presumed to keep up
  // easily.
  bool SafeToTry(size_t config, int bucket, TimePoint now) const;
  // Without any knowledge: what "auto" runs, fibers in-line, blocking, with stand-ins if that can be. Where fibers
  // cannot be, in-line blocking as long as it is presumed to keep up with twice the load, and then whatever can hold
  // most requests, blocking rather than polling. Never an excluded one, if there are others.
  size_t Presumed(double load_per_s, TimePoint now) const;

 private:
  struct Cell {
    std::unique_ptr<LatencySketch> sketch;  // null: never measured
    double windows = 0;
    std::optional<double> ratio;
    void Scale(double factor);
    double weight() const { return sketch == nullptr ? 0 : sketch->weight(); }
    double expected_us = 0;
    double expected_weight = 0;  // as if so many samples had said so
  };
  struct Limit {
    int bucket = kBuckets;  // lowest that it does not keep up with
    TimePoint learnt{};     // zero: by a profile, for good
    Nanos remember{0};
    int proven = -1;     // highest that it kept up with
    double mean_us = 0;  // of its requests lately; zero: not known
  };

  // Lets old measurements fade, now and then.
  void Fade(TimePoint now);
  Cell& At(size_t config, int bucket) { return cells_[config * kBuckets + static_cast<size_t>(bucket)]; }
  const Cell& At(size_t config, int bucket) const {
    return cells_[config * kBuckets + static_cast<size_t>(bucket)];
  }
  // Requests a second that the config is presumed to keep up with.
  double PresumedCapacity(const Config& config) const;

  const std::vector<Config> configs_;
  std::vector<Cell> cells_;
  std::vector<Limit> limits_;
  // Of a request under the config where it is shortest, so that queues count as little as may be; a millisecond
  // until it is known.
  double mean_us_ = 1000;
  TimePoint faded_{};
};

}  // namespace curtail::internal
