// SPDX-License-Identifier: Apache-2.0
//
// envelope.h - the predicted best config for each load.
//
// The model is muTune's (section 4): for each config the measured p99 at the trained loads, joined
// by straight lines. Four additions: a point within the noise of its neighbours' median counts as
// that. Beyond the load that a config sustained its p99 is infinite.
// Where the repeats disagreed, its p99 counts a spread higher. The lower envelope of all configs is
// computed once, so that a decision is a binary search.
//
// An advantage within the spread of the measurements is none, and a small one does not pay for a
// poller. A config that takes more CPU must have proven its advantage in the repeats of its cells.
// Of the configs that none has proven to be worse at a load, only the cheap ones remain.
// A profile without costs, or a weight of zero, leaves configs with the lowest p50 instead: the p50
// spreads far less than the p99. The envelope keeps one config over as many stretches as it can,
// and of equals the most robust one. Fewer pieces mean fewer needless switches.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/adapt/profile.h"
#include "curtail/exec/config.h"

namespace curtail {

// The style of a service decides under which models it can run.
enum class ServiceStyle { kStraightLine, kContinuation, kCoroutine };

// The default of PolicyOptions::cpu_weight.
inline constexpr double kCpuWeight = 0.1;
// A difference of so many CPUs is none.
inline constexpr double kSameCores = 0.05;

using ConfigFilter = std::function<bool(const Config&)>;

// Straight-line services run in the S and F models, continuation services in the A models,
// coroutine services in all.
ConfigFilter RunsUnder(ServiceStyle style);

// An Envelope holds the config to use for any load. Immutable; any thread.
class Envelope {
 public:
  struct Options {
    // True: differences within the spread count as none, and points are smoothed. False: the lowest
    // prediction at each load (the paper).
    bool merge_within_noise = true;
    // The share by which the p99 may be higher to save CPU; zero: latency alone counts.
    double cpu_weight = kCpuWeight;
  };

  struct Piece {
    double from_per_s;  // up to where the next one begins
    size_t config;      // index into configs()
  };

  // Over the configs of `profile` that pass `filter`. Errors: INVALID_ARGUMENT when there are none.
  static absl::StatusOr<Envelope> Make(const Profile& profile, const ConfigFilter& filter, Options options);
  static absl::StatusOr<Envelope> Make(const Profile& profile, const ConfigFilter& filter = nullptr) {
    return Make(profile, filter, Options());
  }

  // The config for this load. If none sustains it, the config that sustained most, and of those the
  // fastest.
  const Config& Best(double load_per_s) const;
  // The predicted p99 in microseconds; infinite beyond the load that the config sustained. Absent
  // for a config that the profile does not have. Below the lowest trained load it is that load's;
  // above the highest the last line goes on, if it rises.
  std::optional<double> Predict(const Config& config, double load_per_s) const;
  // The predicted p50; as Predict().
  std::optional<double> PredictMedian(const Config& config, double load_per_s) const;
  // The CPUs that the config keeps busy; as Predict(). Absent also when the profile lacks costs or
  // the weight is zero.
  std::optional<double> PredictCores(const Config& config, double load_per_s) const;
  // The highest trained load that the config sustained, infinite if it sustained all; absent as
  // above.
  std::optional<double> Sustains(const Config& config) const;

  // Ascending; the first begins at zero.
  std::span<const Piece> pieces() const { return pieces_; }
  std::span<const Config> configs() const { return configs_; }

 private:
  // The measured points of a config, and the load beyond which its p99 is infinite.
  struct Curve {
    std::vector<double> loads, p99_us, spread_us, p50_us, cores;
    std::vector<std::vector<double>> repeats_us;  // the p99 of each repeat, by load
    double limit = 0;
    size_t robustness = 0;  // 0: the most robust one

    double At(double load) const;      // p99
    double Median(double load) const;  // p50
    double Cores(double load) const;
    double Spread(double load) const;                         // not beyond `limit`
    const std::vector<double>& RepeatsAt(double load) const;  // REQUIRES: one of `loads`
  };

  Envelope() = default;
  // `noise` is the least spread, as a share of the p99.
  static Curve CurveOf(const Profile& profile, const ConfigSummary& summary, double noise, bool smooth);
  // Replaces points that their neighbours contradict, unless they stand out of the noise.
  static void Smooth(double noise, Curve& curve);
  std::optional<size_t> IndexOf(const Config& config) const;
  // Loads between which no prediction bends, first and last ones included.
  std::vector<double> Bends() const;
  // The lowest curve `step` right of `load`, on the stretch to `until`; the most capable if all are
  // infinite there.
  size_t LowestAfter(double load, double step, double until) const;
  size_t MostCapable() const;
  void AddPieces(std::span<const double> bends);
  void AddPiecesBetween(double from, double until);
  void Add(double from, size_t config);
  // Besides the bends, the loads at which the lowest of the configs that block changes.
  std::vector<double> Cuts(std::span<const double> bends) const;
  // Cuts the pieces there, because a config may be as good as the best over a part of a piece.
  void SplitAt(std::span<const double> cuts);
  double EndOf(size_t piece) const;  // infinite for the last one
  // E1 to E3 of the rules in envelope.cc, on the left side of `load` or on its right.
  bool Beats(size_t winner, size_t loser, double load, bool from_right) const;
  // True if the repeats of both around `load` prove that the winner's p99 is lower by more than the
  // weight.
  bool Proven(size_t winner, size_t loser, double load) const;
  // True if no config beats this one anywhere in the piece. REQUIRES: no prediction bends there.
  bool GoodEnough(size_t config, size_t piece) const;
  // The configs that may stand for the best in a piece: good enough and cheap.
  std::vector<bool> Eligible(size_t piece) const;
  // True if that is nearly as cheap as the cheapest, or nearly as fast where costs do not count.
  bool Near(size_t config, double load, double lowest) const;
  double Expense(size_t config, double load) const;
  void RankByRobustness(std::span<const double> loads);
  void Merge(std::span<const double> cuts);

  std::vector<Config> configs_;
  std::vector<Curve> curves_;
  std::vector<Piece> pieces_;
  double noise_ = 0;                   // as a share of the p99
  double cpu_weight_ = 0;              // zero, too, when the profile lacks costs
  double chance_of_poller_ = 0;        // E3
  double chance_against_default_ = 0;  // E2
};

}  // namespace curtail
