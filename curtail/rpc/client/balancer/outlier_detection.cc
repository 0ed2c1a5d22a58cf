// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. Calls count their outcomes in the backend of their server. The call that finds an interval over sweeps, on its
// own thread: no timer, and none is needed, as without calls there is nothing to conclude. What a sweep does:
//
//  O1  It takes the counts of all servers. A server with fewer calls than an algorithm asks for is none of its business,
//      and the algorithm rests while fewer servers than it asks for are left.
//  O2  An ejection is a time until which balancers take the server for one that is down. It ends by itself.
//  O3  Each ejection makes the next one longer; each interval without one in force forgives one.
//  O4  Before each ejection the servers that are ejected are counted against the limit.
#include "curtail/rpc/client/balancer/outlier_detection.h"

#include <algorithm>
#include <cmath>

#include "curtail/base/mix.h"
#include "curtail/rpc/client/balancer/balancer.h"

namespace curtail::internal {
namespace {

// A server, and its calls of the interval.
struct Seen {
  Backend* backend;
  double calls;
  double failed;
  double success_rate() const { return 1 - failed / calls; }
};

void EjectOne(const OutlierOptions& options, const Backends& backends, Backend& backend, TimePoint now,
              uint32_t enforcement, uint64_t random) {
  OutlierState& state = backend.outliers;
  if (state.Ejected(now)) return;
  const auto ejected = std::count_if(backends.begin(), backends.end(),
                                     [&](const auto& other) { return other->outliers.Ejected(now); });
  if (static_cast<uint64_t>(ejected) * 100 >= uint64_t{options.max_percent} * backends.size()) return;  // O4
  if (random % 100 >= enforcement) return;
  ++state.ejections;
  const Nanos longest = std::max(options.base_ejection, options.max_ejection);
  const Nanos time = options.base_ejection < longest / state.ejections
                         ? options.base_ejection * static_cast<int64_t>(state.ejections)
                         : longest;
  state.until.store((now + time).time_since_epoch().count(), std::memory_order_relaxed);
}

class Sweep {
 public:
  Sweep(const OutlierOptions& options, const Backends& backends, TimePoint now, uint64_t random)
      : options_(options), backends_(backends), now_(now), random_(random) {
    for (const auto& backend : backends) {  // O1
      const uint32_t failed = backend->outliers.failed.exchange(0, std::memory_order_relaxed);
      const uint32_t succeeded = backend->outliers.succeeded.exchange(0, std::memory_order_relaxed);
      if (succeeded + failed > 0)
        seen_.push_back(
            {backend.get(), static_cast<double>(succeeded) + failed, static_cast<double>(failed)});
    }
  }

  void BySuccessRate(const OutlierOptions::SuccessRate& rule) {
    const std::vector<Seen> seen = With(rule.request_volume);
    if (seen.empty() || seen.size() < rule.minimum_hosts) return;
    double sum = 0, squares = 0;
    for (const Seen& one : seen) sum += one.success_rate();
    const double mean = sum / static_cast<double>(seen.size());
    for (const Seen& one : seen) squares += (one.success_rate() - mean) * (one.success_rate() - mean);
    const double deviation = std::sqrt(squares / static_cast<double>(seen.size()));
    const double least = mean - deviation * rule.stdev_factor / 1000;
    for (const Seen& one : seen) {
      if (one.success_rate() < least) Eject(*one.backend, rule.enforcement);
    }
  }

  void ByFailurePercentage(const OutlierOptions::FailurePercentage& rule) {
    const std::vector<Seen> seen = With(rule.request_volume);
    if (seen.empty() || seen.size() < rule.minimum_hosts) return;
    for (const Seen& one : seen) {
      if (one.failed * 100 > one.calls * rule.threshold) Eject(*one.backend, rule.enforcement);
    }
  }

  void Forgive(uint64_t intervals) const {  // O3
    for (const auto& backend : backends_) {
      OutlierState& state = backend->outliers;
      if (!state.Ejected(now_))
        state.ejections -= static_cast<uint32_t>(std::min<uint64_t>(intervals, state.ejections));
    }
  }

 private:
  std::vector<Seen> With(uint32_t volume) const {
    std::vector<Seen> enough;
    for (const Seen& one : seen_) {
      if (one.calls >= volume) enough.push_back(one);
    }
    return enough;
  }

  void Eject(Backend& backend, uint32_t enforcement) {
    random_ = Mix(random_);
    EjectOne(options_, backends_, backend, now_, enforcement, random_);
  }

  const OutlierOptions& options_;
  const Backends& backends_;
  const TimePoint now_;
  uint64_t random_;
  std::vector<Seen> seen_;
};

}  // namespace

void SweepOutliers(const OutlierOptions& options, const Backends& backends, TimePoint now, uint64_t intervals,
                   uint64_t random) {
  Sweep sweep(options, backends, now, random);
  if (options.success_rate) sweep.BySuccessRate(*options.success_rate);
  if (options.failure_percentage) sweep.ByFailurePercentage(*options.failure_percentage);
  sweep.Forgive(intervals);
}

void EjectForFailures(const OutlierOptions& options, const Backends& backends, Backend& backend,
                      TimePoint now, uint64_t random) {
  EjectOne(options, backends, backend, now, options.consecutive_failures->enforcement, Mix(random));
}

}  // namespace curtail::internal
