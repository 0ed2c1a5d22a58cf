// SPDX-License-Identifier: Apache-2.0
//
// mix.h - several classes of requests in one run: which request is of which class, and what became of each class in each
// phase of the run.
//
// One generator sends all classes, so that they share no CPU with each other's waiting. The arrivals of each class are a
// Poisson process with its own rate; all follow from the seed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/base/histogram.h"
#include "curtail/load/drive/rate_curve.h"
#include "curtail/load/drive/runner.h"
#include "curtail/load/drive/schedule.h"
#include "curtail/load/message/workload.h"

namespace curtail::fences {

// One class of requests: what is sent, and at which rate over the whole run, warm-up included.
struct ClassPlan {
  std::string name;
  std::shared_ptr<const Workload> workload;
  RateCurve curve;
};

// The curve of the sum of all rates. REQUIRES: at least one, all of one length. Errors: those of RateCurve::Make().
absl::StatusOr<RateCurve> SumOf(const std::vector<ClassPlan>& classes);

// A Mix is all requests of a run, in the order in which they are due. Immutable once made.
class Mix final : public Workload {
 public:
  // Errors: those of SumOf() and Schedule::Make().
  static absl::StatusOr<std::unique_ptr<Mix>> Make(std::vector<ClassPlan> classes, uint64_t seed);

  const Schedule& schedule() const { return schedule_; }
  size_t classes() const { return classes_.size(); }
  // The class of the request that is due then.
  size_t ClassAt(Nanos due) const;

  std::string_view method() const override { return classes_.front().workload->method(); }
  std::string_view MethodOf(uint64_t index) const override;
  std::string Request(uint64_t index) const override;

 private:
  struct Arrival {
    Nanos due;
    uint32_t of_class;
    uint32_t number;  // in its class
  };
  Mix(std::vector<ClassPlan> classes, Schedule schedule, uint64_t seed);
  const Arrival& At(uint64_t index) const { return arrivals_[index % arrivals_.size()]; }

  const std::vector<ClassPlan> classes_;
  const Schedule schedule_;
  std::vector<Arrival> arrivals_;
};

// One class in one phase.
struct PhaseResult {
  uint64_t due = 0;
  uint64_t dropped = 0;  // refused, too late, or failed otherwise
  double answered_per_s = 0;
  double good_per_s = 0;       // answered within PhaseOptions::slo
  double mean_ms = 0;          // of those that were answered
  double answered_p99_ms = 0;  // likewise
  double p99_ms = 0;           // of all; one that was dropped counts as the timeout at least
};

// Phases of equal length follow the warm-up.
struct PhaseOptions {
  Nanos warmup{0};
  Nanos phase{0};
  size_t phases = 1;
  Nanos slo = Nanos::max();
  bool total = false;  // all requests together are one class more, the last
};

// A PhaseRecorder sorts the requests of a run by class and phase. The sending thread calls it.
class PhaseRecorder final : public RunObserver {
 public:
  // `mix` outlives the recorder.
  PhaseRecorder(const Mix& mix, const PhaseOptions& options);
  void Ended(Nanos due, Nanos latency, bool ok) override;
  void Started(TimePoint) override {}

  // By class and phase.
  std::vector<std::vector<PhaseResult>> Results() const;

 private:
  struct Tally {
    void Record(Nanos latency, bool ok, Nanos slo);
    Histogram all;
    Histogram answered;
    uint64_t good = 0;
  };
  const Mix& mix_;
  const PhaseOptions options_;
  std::vector<Tally> tallies_;  // phases of the first class, then of the second, ...
};

}  // namespace curtail::fences
