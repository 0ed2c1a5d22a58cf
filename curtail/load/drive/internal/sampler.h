// SPDX-License-Identifier: Apache-2.0
//
// sampler.h - keeps a few samples of a run, evenly spread over it, and checks what percentile intervals take for
// granted: that requests left as planned and that latencies are independent and steady (after Lancet, ATC'19).
//
// Thread-compatible: owned by the sending thread. Its memory does not grow with the run.
#pragma once

#include <cstdint>
#include <vector>

#include "curtail/base/clock.h"
#include "curtail/load/drive/rate_curve.h"
#include "curtail/load/report/result.h"

namespace curtail::internal {

// A Sampler looks at pairs of successive requests: every stride-th pair, where the stride doubles whenever there is
// no more room.
class Sampler {
 public:
  // `curve` is the rate in force, by which gaps are scaled to a mean of one; null in a closed loop. It outlives this.
  explicit Sampler(const RateCurve* curve) : curve_(curve) {}

  // Request `number` (0, 1, 2, ... of the measured window) was sent at `actual`, since the start of the run.
  void Sent(uint64_t number, Nanos actual);
  // Its latency.
  void Done(uint64_t number, Nanos latency);

  // `poisson`: gaps should be exponential.
  LoadChecks Check(bool poisson) const;

 private:
  static constexpr size_t kMaxPairs = 2048;
  static constexpr uint64_t kPair = 2;

  struct Pair {
    double sent[kPair] = {-1, -1};
    int64_t latency_ns[kPair] = {-1, -1};  // -1: not known
  };

  // The pair that the number is half of, if it is kept.
  Pair* Find(uint64_t number);
  void Thin();

  const RateCurve* const curve_;
  uint64_t stride_ = kPair;  // a power of two
  std::vector<Pair> pairs_;
};

}  // namespace curtail::internal
