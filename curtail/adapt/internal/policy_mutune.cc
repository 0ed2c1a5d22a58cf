// SPDX-License-Identifier: Apache-2.0
//
// muTune's decision (section 4): estimate the rate, predict each config's p99, take the lowest;
// with a steadier rate, a price of CPU, a least gain and a least time between switches. None of these holds where
// waiting would mean to saturate.
#include <cmath>
#include <utility>

#include "curtail/adapt/internal/policies.h"

namespace curtail::internal {
namespace {

// A rising load need not wait for the dwell when another config is this many times better.
constexpr double kPressing = 2;

class Mutune final : public Policy {
 public:
  Mutune(Envelope envelope, const PolicyOptions& options)
      : envelope_(std::move(envelope)),
        min_gain_(options.min_gain),
        headroom_(1 + options.headroom),
        dwell_(options.dwell) {}

  Choice Decide(const Signals& s) override {
    if (s.current != seen_) seen_ = s.current, since_ = s.now;
    const double load = s.rates.slow;
    const Config& next = Enterable(load);
    if (next == s.current) return {s.current, "best"};
    if (load <= 0 && !switched_) return Switch(next, s.now, load, "before the first request");
    const double now_us = envelope_.Predict(s.current, load).value_or(INFINITY);
    const double next_us = envelope_.Predict(next, load).value_or(INFINITY);
    // Where no config sustains the load, the one that sustains most is best.
    if (now_us == INFINITY) {
      // The first arrivals of a crowd say little of how large it is. A step too far costs little for a
      // dwell; a step too short leaves a queue behind for each further one.
      const Config& ample = Enterable(std::max(load, s.rates.high));
      return Switch(ample, s.now, load, "the load is beyond the present config");
    }
    if (!Gains(next, s.current, load)) return {s.current, "too little to gain"};
    // Near a crossing two configs are about equal: where one is twice as good, the load has moved
    // on since the switch.
    const bool pressing = load > entered_at_ && next_us < now_us / kPressing;
    if (s.now - since_ < dwell_ && switched_ && !pressing) return {s.current, "switched a moment ago"};
    return Switch(next, s.now, load, "lower predicted latency");
  }

 private:
  Choice Switch(const Config& next, TimePoint now, double load, std::string_view reason) {
    seen_ = next;
    since_ = now;
    entered_at_ = load;
    switched_ = true;
    return {next, reason};
  }

  // True if the p99 falls by enough. Where the envelope says that the p99 is as good as the best, the
  // CPU may fall instead, or the p50 where costs do not count.
  bool Gains(const Config& next, const Config& now, double load) const {
    const auto falls = [this](std::optional<double> to, std::optional<double> from) {
      return to.value_or(INFINITY) <= from.value_or(INFINITY) * (1 - min_gain_);
    };
    if (falls(envelope_.Predict(next, load), envelope_.Predict(now, load))) return true;
    if (next != envelope_.Best(load)) return false;
    const std::optional<double> cores = envelope_.PredictCores(next, load);
    if (!cores) return falls(envelope_.PredictMedian(next, load), envelope_.PredictMedian(now, load));
    const double now_cores = envelope_.PredictCores(now, load).value_or(INFINITY);
    return falls(cores, now_cores) && now_cores - *cores > kSameCores;
  }

  // The best config for the load that also sustains somewhat more.
  const Config& Enterable(double load) const {
    const Config& best = envelope_.Best(load);
    return *envelope_.Predict(best, load * headroom_) < INFINITY ? best : envelope_.Best(load * headroom_);
  }

  const Envelope envelope_;
  const double min_gain_;
  const double headroom_;
  const Nanos dwell_;
  Config seen_{.network = 0};  // the present config, and since when it is that
  TimePoint since_{};
  double entered_at_ = 0;  // the load at the last switch
  bool switched_ = false;  // at all: the first switch need not wait
};

absl::StatusOr<std::unique_ptr<Policy>> MakeMutune(const PolicyRequest& request) {
  absl::StatusOr<Envelope> envelope =
      Envelope::Make(*request.profile, request.runs, {.cpu_weight = request.options.cpu_weight});
  if (!envelope.ok()) return envelope.status();
  return std::make_unique<Mutune>(*std::move(envelope), request.options);
}

}  // namespace

constinit const PolicyKind kMutunePolicy = {
    .name = "mutune",
    .summary = "the best config of the profile for the load, with hysteresis and dwell",
    .make = MakeMutune,
    .profile = ProfileUse::kRequired,
    .compared = true,
};

}  // namespace curtail::internal
