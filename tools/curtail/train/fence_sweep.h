// SPDX-License-Identifier: Apache-2.0
//
// fence_sweep.h - finds the limit of a path class: which concurrency is measured next, and what the points say.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "curtail/base/clock.h"
#include "curtail/fence/limiter/knee.h"
#include "curtail/load/drive/runner.h"

namespace curtail::tool {

// A FenceSweep climbs in closed loop, 1, 2, 4, ... requests at once, until more of them brought no more twice in a row.
// It repeats the ladder, and then measures between the knee (knee.h) and the step before it. Pure; thread-compatible.
class FenceSweep {
 public:
  // `most`: the greatest concurrency. `passes`: times that each is measured.
  FenceSweep(int most, int passes);

  // The concurrency to measure now; nothing at the end.
  std::optional<int> Next() const;
  // The points of Next().
  void Tell(const std::vector<LoadPoint>& points);
  // Next() is more than the server can take: the ladder ends before it.
  void GiveUp();

  // Measurements so far, and those that are left at most.
  size_t done() const { return done_; }
  size_t left_at_most() const;
  // The greatest concurrency whose points were told.
  int tried() const { return tried_; }
  // The knee of all points so far.
  std::optional<Knee> knee() const { return EstimateKnee(points_); }

 private:
  bool Flat() const;
  void EndClimb();
  void Refine();

  const int most_;
  const int passes_;
  std::deque<int> due_ = {1};
  std::vector<int> ladder_;
  std::vector<double> throughputs_;  // of the ladder's first pass
  bool climbing_ = true;
  bool refined_ = false;
  size_t done_ = 0;
  int tried_ = 0;
  std::vector<LoadPoint> points_;
};

// A LoadBins is the bins of a run, as its client sees them: concurrency from the send to the answer. It has no request
// that failed. Thread-compatible.
class LoadBins final : public RunObserver {
 public:
  // Of the time from `from` to `until` in the run.
  LoadBins(Nanos from, Nanos until);

  void Started(TimePoint) override {}
  void Ended(Nanos due, Nanos latency, bool ok) override;

  // Once the run is over.
  std::vector<LoadPoint> Points() const;

 private:
  struct Bin {
    Nanos area{0};  // the sum of the requests' times in it
    uint64_t completed = 0;
  };
  const Nanos from_;
  std::vector<Bin> bins_;  // of kLoadBin each
};

}  // namespace curtail::tool
