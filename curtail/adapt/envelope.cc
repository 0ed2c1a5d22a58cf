// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. Between two neighbouring trained loads (of any config) every curve is a straight line or infinite, so
// the lower envelope there is found by walking: from the lowest line to the next one that crosses it from
// above. The pieces are then merged as long as a neighbour's config is good enough for all of a piece. "Good
// enough" always compares what was measured and never what a previous merge left there, so that errors do not
// add up.
//
// Before that each point becomes the median of its repeats and those at the two neighbouring loads: nine
// measurements, not three. A median leaves a rising line and a knee as they are, and removes what sticks out of them.
//
// A piece's config is chosen by these rules:
//  E1. A config beats another one at a load if it alone sustains the load. It also does if its p99 is lower by more than
//      its own spread, the noise of the profile and the weight. The other one's spread does not excuse it: a config that
//      is wild near its limit would never be beaten.
//  E2. A config that takes more CPU than the other one must prove that its p99 is lower by more than the weight. The
//      repeats of both at this load and at loads near it prove it if chance would order them so one time in twenty at
//      most. Against `auto`, the default of a server, each config must prove it, and that chance is divided as in E3: a
//      training that cannot tell configs apart leads to what runs without a profile.
//  E3. A config that polls takes a CPU at each load, and among many the luckiest one looks good. For it the chance is one
//      in fifty, divided by the number of such configs and of the stretches of loads. So a training in which no
//      poller gains anything leads to one less than one time in fifty.
//  E4. Good enough are the configs that no other one beats anywhere in the piece. Where CPU counts, a piece also ends where
//      the lowest of the configs that block changes. Else two that cross would beat each other, and leave a poller that
//      proves nothing.
//  E5. Of these remain the cheap ones: at most a fifth above the cheapest, or a twentieth of a CPU.
//  E6. Of these the one that may stand for the longest stretch is taken.
//  E7. Of equals `auto` is taken, or else the most robust one. It sustains most; then its median rank by p99 over all loads is the
//      lowest, which one lucky cell does not change; then that by p50.
// Without costs, or with a weight of zero, E2 and E3 do not apply, and in E5 the p50 counts for the CPU.
#include "curtail/adapt/envelope.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "curtail/adapt/internal/limits.h"
#include "curtail/adapt/internal/mann_whitney.h"
#include "curtail/adapt/internal/median.h"

namespace curtail {
namespace {

using internal::kInfinite;

// A p50 that is higher by no more than this share is as good.
constexpr double kSameMedian = 0.05;
// A point that differs from its neighbours by more spreads than this is no noise.
constexpr double kStandsOut = 2;
// CPU within this share of the cheapest, or within kSameCores, is as cheap.
constexpr double kSameCost = 0.2;
// E2, E3: the chance of a proof where nothing is to prove.
constexpr double kChance = 0.05;
constexpr double kChanceOfPollers = 0.02;
// E2: of which loads the repeats count.
constexpr size_t kLeastLoads = 3, kMostAside = 2;

// The loads whose repeats tell of loads[i], from the first to before the second: its neighbours, three in all, and on
// each side two if they are within a factor of two. REQUIRES: i < loads.size().
std::pair<size_t, size_t> Around(std::span<const double> loads, size_t i) {
  size_t last = std::min(std::max(i + 2, kLeastLoads), loads.size());
  size_t first = last - std::min(last, kLeastLoads);
  while (first > 0 && i < first + kMostAside && loads[first - 1] * 2 >= loads[i]) --first;
  while (last < loads.size() && last <= i + kMostAside && loads[last] <= loads[i] * 2) ++last;
  return {first, last};
}

bool Polls(const Config& config) { return config.model.reception == Reception::kPoll; }
bool IsDefault(const Config& config) { return config == Config::Auto(); }

// E3: the chance of a proof of one of so many configs at one load.
double ChanceOfEach(double of_any, ptrdiff_t configs, std::span<const double> loads) {
  std::set<std::pair<size_t, size_t>> stretches;
  for (size_t i = 0; i < loads.size(); ++i) stretches.insert(Around(loads, i));
  return of_any / static_cast<double>(std::max<size_t>(static_cast<size_t>(configs) * stretches.size(), 1));
}

// The line through the points, constant to the left of them.
double Interpolate(const std::vector<double>& xs, const std::vector<double>& ys, double x) {
  if (x <= xs.front() || xs.size() == 1) return ys.front();
  const auto above = std::lower_bound(xs.begin(), xs.end(), x);
  const size_t i = std::min(static_cast<size_t>(above - xs.begin()), xs.size() - 1);
  const double slope = (ys[i] - ys[i - 1]) / (xs[i] - xs[i - 1]);
  if (x > xs.back()) return ys.back() + std::max(slope, 0.0) * (x - xs.back());
  return ys[i - 1] + slope * (x - xs[i - 1]);
}

// The spread of few repeats is too small on average: by this factor, after Croux and Rousseeuw (1992), "Time-efficient
// algorithms for two highly robust estimators of scale".
double SmallSampleFactor(int repeats) {
  constexpr double kFactors[] = {1, 1, 1.196, 1.495, 1.363, 1.206, 1.200, 1.140, 1.129, 1.107};
  if (repeats < 0) return 1;
  return repeats < static_cast<int>(std::size(kFactors)) ? kFactors[repeats] : repeats / (repeats - 0.8);
}

// The median spread of all points, as a share of their p99. Three repeats that happen to agree do not mean that a
// measurement has no noise: others of the same training tell how much it has.
double NoiseOf(const Profile& profile) {
  std::vector<double> shares;
  int repeats = 0;
  for (const ProfileCell& cell : profile.cells) repeats = std::max(repeats, cell.repeat + 1);
  for (const ConfigSummary& config : profile.configs) {
    for (const ProfilePoint& point : config.points) {
      if (!point.saturated && point.p99_us > 0) shares.push_back(point.spread_us / point.p99_us);
    }
  }
  return shares.empty() ? 0 : internal::Median(std::move(shares)) * SmallSampleFactor(repeats);
}

}  // namespace

ConfigFilter RunsUnder(ServiceStyle style) {
  return [style](const Config& config) {
    const bool async = config.model.waiting == Waiting::kAsync;
    return style == ServiceStyle::kCoroutine || async == (style == ServiceStyle::kContinuation);
  };
}

double Envelope::Curve::At(double load) const {
  return load > limit || loads.empty() ? kInfinite : Interpolate(loads, p99_us, load);
}

double Envelope::Curve::Spread(double load) const {
  return loads.empty() ? 0 : Interpolate(loads, spread_us, std::min(load, loads.back()));
}

double Envelope::Curve::Median(double load) const {
  return load > limit || loads.empty() ? kInfinite : Interpolate(loads, p50_us, load);
}

double Envelope::Curve::Cores(double load) const {
  return load > limit || loads.empty() ? kInfinite : Interpolate(loads, cores, load);
}

const std::vector<double>& Envelope::Curve::RepeatsAt(double load) const {
  return repeats_us[static_cast<size_t>(std::lower_bound(loads.begin(), loads.end(), load) - loads.begin())];
}

Envelope::Curve Envelope::CurveOf(const Profile& profile, const ConfigSummary& summary, double noise,
                                  bool smooth) {
  Curve curve;
  curve.limit = summary.saturation_per_s.value_or(kInfinite);
  std::map<double, std::vector<double>> p50s, p99s, cores;  // by load
  for (const ProfileCell& cell : profile.cells) {
    if (cell.config != summary.config) continue;
    p50s[cell.load_per_s].push_back(cell.p50_us);
    p99s[cell.load_per_s].push_back(cell.p99_us);
    cores[cell.load_per_s].push_back(cell.cpu_cores.value_or(0));
  }
  for (const ProfilePoint& point : summary.points) {
    if (point.load_per_s > curve.limit) break;
    const double load = point.load_per_s;
    curve.loads.push_back(load);
    curve.p99_us.push_back(point.p99_us + (point.unstable && !smooth ? point.spread_us : 0));
    curve.spread_us.push_back(std::max(point.spread_us, noise * point.p99_us));
    curve.p50_us.push_back(p50s[load].empty() ? point.p99_us : internal::Median(p50s[load]));
    curve.cores.push_back(cores[load].empty() ? 0 : internal::Median(cores[load]));
    curve.repeats_us.push_back(std::move(p99s[load]));
  }
  if (smooth) Smooth(noise, curve);
  return curve;
}

void Envelope::Smooth(double noise, Curve& curve) {
  const std::vector<std::vector<double>>& repeats = curve.repeats_us;
  const size_t n = repeats.size();
  for (size_t i = 0; i + 1 < n; ++i) {
    // Repeats of these loads, and how far each is from the median of its load, as a share.
    std::vector<double> pool, shares;
    for (size_t j = i == 0 ? 0 : i - 1; j <= i + 1; ++j) {
      if (repeats[j].empty()) continue;
      const double median = internal::Median(repeats[j]);
      for (const double value : repeats[j]) {
        pool.push_back(value);
        shares.push_back(median > 0 ? std::abs(value / median - 1) : 0);
      }
    }
    if (pool.empty()) continue;
    const double middle = internal::Median(std::move(pool));
    double &p99_us = curve.p99_us[i], &spread_us = curve.spread_us[i];
    if (p99_us <= 0 || middle <= 0) continue;
    if (std::abs(std::log(p99_us / middle)) > kStandsOut * spread_us / p99_us) continue;
    p99_us = middle;
    spread_us = std::max(1.4826 * internal::Median(std::move(shares)), noise) * middle;
  }
}

absl::StatusOr<Envelope> Envelope::Make(const Profile& profile, const ConfigFilter& filter, Options options) {
  Envelope envelope;
  const double noise = NoiseOf(profile);
  envelope.noise_ = noise;
  for (const ConfigSummary& summary : profile.configs) {
    if (summary.points.empty() || (filter && !filter(summary.config))) continue;
    envelope.configs_.push_back(summary.config);
    envelope.curves_.push_back(CurveOf(profile, summary, noise, options.merge_within_noise));
  }
  if (envelope.configs_.empty()) {
    return absl::InvalidArgumentError(
        "the profile has no config that the service can run under; train it with such configs");
  }
  const bool costs = std::all_of(profile.cells.begin(), profile.cells.end(),
                                 [](const ProfileCell& cell) { return cell.cpu_cores.has_value(); });
  envelope.cpu_weight_ = costs ? std::max(options.cpu_weight, 0.0) : 0;
  const std::vector<Config>& configs = envelope.configs_;
  envelope.chance_of_poller_ =
      ChanceOfEach(kChanceOfPollers, std::count_if(configs.begin(), configs.end(), Polls), profile.loads);
  envelope.chance_against_default_ = ChanceOfEach(
      kChance, std::count_if(configs.begin(), configs.end(), std::not_fn(IsDefault)), profile.loads);
  envelope.RankByRobustness(profile.loads);
  const std::vector<double> bends = envelope.Bends();
  envelope.AddPieces(bends);
  if (options.merge_within_noise) envelope.Merge(envelope.cpu_weight_ > 0 ? envelope.Cuts(bends) : bends);
  return envelope;
}

const Config& Envelope::Best(double load_per_s) const {
  const auto after =
      std::upper_bound(pieces_.begin(), pieces_.end(), load_per_s,
                       [](double load, const Piece& piece) { return load < piece.from_per_s; });
  return configs_[(after == pieces_.begin() ? after : after - 1)->config];
}

std::optional<double> Envelope::Predict(const Config& config, double load_per_s) const {
  const std::optional<size_t> index = IndexOf(config);
  if (!index) return std::nullopt;
  return curves_[*index].At(load_per_s);
}

std::optional<double> Envelope::PredictMedian(const Config& config, double load_per_s) const {
  const std::optional<size_t> index = IndexOf(config);
  if (!index) return std::nullopt;
  return curves_[*index].Median(load_per_s);
}

std::optional<double> Envelope::PredictCores(const Config& config, double load_per_s) const {
  const std::optional<size_t> index = IndexOf(config);
  if (!index || cpu_weight_ <= 0) return std::nullopt;
  return curves_[*index].Cores(load_per_s);
}

std::optional<double> Envelope::Sustains(const Config& config) const {
  const std::optional<size_t> index = IndexOf(config);
  if (!index) return std::nullopt;
  return curves_[*index].limit;
}

std::optional<size_t> Envelope::IndexOf(const Config& config) const {
  const auto found = std::find(configs_.begin(), configs_.end(), config);
  if (found == configs_.end()) return std::nullopt;
  return static_cast<size_t>(found - configs_.begin());
}

std::vector<double> Envelope::Bends() const {
  std::vector<double> bends = {0, kInfinite};
  for (const Curve& curve : curves_) {
    bends.insert(bends.end(), curve.loads.begin(), curve.loads.end());
    if (curve.limit < kInfinite) bends.push_back(curve.limit);
  }
  std::sort(bends.begin(), bends.end());
  bends.erase(std::unique(bends.begin(), bends.end()), bends.end());
  return bends;
}

size_t Envelope::MostCapable() const {
  size_t best = 0;
  for (size_t i = 1; i < curves_.size(); ++i) {
    const Curve &one = curves_[i], &other = curves_[best];
    if (one.limit > other.limit || (one.limit == other.limit && one.At(one.limit) < other.At(one.limit)))
      best = i;
  }
  return best;
}

size_t Envelope::LowestAfter(double load, double step, double until) const {
  // A little to the right, so that limits and crossings at `load` itself lie behind.
  const double near = load + step;
  const double far = until < kInfinite ? until : 2 * near;
  size_t best = 0;
  const auto better = [&](size_t i) {
    const double a = curves_[i].At(near), b = curves_[best].At(near);
    return a < b || (a == b && curves_[i].At(far) < curves_[best].At(far));
  };
  for (size_t i = 1; i < curves_.size(); ++i) {
    if (better(i)) best = i;
  }
  return curves_[best].At(near) < kInfinite ? best : MostCapable();
}

void Envelope::Add(double from, size_t config) {
  if (pieces_.empty() || pieces_.back().config != config) pieces_.push_back({from, config});
}

void Envelope::AddPieces(std::span<const double> bends) {
  for (size_t i = 0; i + 1 < bends.size(); ++i) AddPiecesBetween(bends[i], bends[i + 1]);
}

void Envelope::AddPiecesBetween(double from, double until) {
  // Crossings beyond the highest trained load are guesses, and not acted on.
  if (until == kInfinite) return Add(from, LowestAfter(from, std::max(from, 1.0) * 1e-9, until));
  for (double x = from; x < until;) {
    const size_t now = LowestAfter(x, 2e-6 * (until - from), until);
    Add(x, now);
    const double y0 = curves_[now].At(until) - curves_[now].At(x);
    double next = until;
    for (size_t i = 0; i < curves_.size(); ++i) {
      if (i == now || curves_[i].limit < until || curves_[now].limit < until) continue;
      const double gap = curves_[i].At(x) - curves_[now].At(x);
      const double closing = y0 - (curves_[i].At(until) - curves_[i].At(x));
      if (closing <= 0 || gap < 0) continue;
      const double crossing = x + (until - x) * (gap / closing);
      if (crossing > x + (until - from) * 1e-6 && crossing < next) next = crossing;
    }
    x = next;
  }
}

bool Envelope::Beats(size_t winner, size_t loser, double load, bool from_right) const {
  const Curve &one = curves_[winner], &other = curves_[loser];
  const double shared = std::min(one.limit, other.limit);
  if (from_right ? load >= shared : load > shared) return one.limit > other.limit;  // E1
  const double gain = other.At(load) - one.At(load);
  if (gain <= std::max({noise_ * other.At(load), one.Spread(load), cpu_weight_ * one.At(load)})) return false;
  if (cpu_weight_ <= 0) return true;
  const bool cheap = Near(winner, load, Expense(loser, load)) && !IsDefault(configs_[loser]);  // E2
  return cheap || Proven(winner, loser, load);
}

bool Envelope::Proven(size_t winner, size_t loser, double load) const {
  const Curve &one = curves_[winner], &other = curves_[loser];
  std::vector<double> loads;  // of both
  std::set_intersection(one.loads.begin(), one.loads.end(), other.loads.begin(), other.loads.end(),
                        std::back_inserter(loads));
  if (loads.empty()) return false;
  const auto above = static_cast<size_t>(std::lower_bound(loads.begin(), loads.end(), load) - loads.begin());
  const auto [first, last] = Around(loads, std::min(above, loads.size() - 1));
  std::vector<internal::RankStratum> strata;
  for (size_t i = first; i < last; ++i) {
    internal::RankStratum& stratum = strata.emplace_back(one.RepeatsAt(loads[i]), other.RepeatsAt(loads[i]));
    for (double& p99_us : stratum.low) p99_us *= 1 + cpu_weight_;
  }
  const double chance = Polls(configs_[winner])      ? chance_of_poller_  // E3
                        : IsDefault(configs_[loser]) ? chance_against_default_
                                                     : kChance;
  return internal::ChanceOfLower(strata) <= chance;
}

bool Envelope::GoodEnough(size_t config, size_t piece) const {
  const double from = pieces_[piece].from_per_s, until = EndOf(piece);
  for (size_t other = 0; other < curves_.size(); ++other) {
    if (Beats(other, config, from, true)) return false;
    if (until < kInfinite && Beats(other, config, until, false)) return false;
  }
  return true;  // E4
}

std::vector<double> Envelope::Cuts(std::span<const double> bends) const {
  Envelope blocking = *this;
  blocking.pieces_.clear();
  for (size_t c = 0; c < curves_.size(); ++c) {
    if (Polls(configs_[c])) blocking.curves_[c].limit = -1;  // it sustains no load
  }
  blocking.AddPieces(bends);
  std::set<double> cuts(bends.begin(), bends.end());
  for (const Piece& piece : blocking.pieces_) cuts.insert(piece.from_per_s);  // E4
  return {cuts.begin(), cuts.end()};
}

void Envelope::SplitAt(std::span<const double> cuts) {
  std::vector<Piece> split;
  for (size_t i = 0; i < pieces_.size(); ++i) {
    split.push_back(pieces_[i]);
    for (const double cut : cuts) {
      if (cut > pieces_[i].from_per_s && cut < EndOf(i)) split.push_back({cut, pieces_[i].config});
    }
  }
  pieces_ = std::move(split);
}

double Envelope::EndOf(size_t piece) const {
  return piece + 1 < pieces_.size() ? pieces_[piece + 1].from_per_s : kInfinite;
}

double Envelope::Expense(size_t config, double load) const {
  return cpu_weight_ > 0 ? curves_[config].Cores(load) : curves_[config].Median(load);
}

bool Envelope::Near(size_t config, double load, double lowest) const {
  const double near = cpu_weight_ > 0 ? std::max(lowest * (1 + kSameCost), lowest + kSameCores)  // E5
                                      : lowest * (1 + kSameMedian);
  return Expense(config, load) <= near;
}

void Envelope::RankByRobustness(std::span<const double> loads) {
  // The median of the ranks at all loads. Those that do not sustain a load share the last rank.
  const auto rank = [&](size_t config, auto value) {
    std::vector<double> ranks = {static_cast<double>(curves_.size())};
    if (!loads.empty()) ranks.clear();
    for (const double load : loads) {
      const double own = value(curves_[config], load);
      ranks.push_back(static_cast<double>(std::count_if(
          curves_.begin(), curves_.end(), [&](const Curve& other) { return value(other, load) < own; })));
    }
    return internal::Median(std::move(ranks));
  };
  std::vector<std::tuple<bool, double, double, double, size_t>> order;  // the last: the config
  for (size_t c = 0; c < curves_.size(); ++c) {
    order.emplace_back(!IsDefault(configs_[c]), -curves_[c].limit, rank(c, std::mem_fn(&Curve::At)),
                       rank(c, std::mem_fn(&Curve::Median)), c);
  }
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size(); ++i) curves_[std::get<4>(order[i])].robustness = i;
}

std::vector<bool> Envelope::Eligible(size_t piece) const {
  std::vector<bool> good(curves_.size()), somewhere(curves_.size());
  for (size_t c = 0; c < curves_.size(); ++c) good[c] = c == pieces_[piece].config || GoodEnough(c, piece);
  std::vector<bool> eligible = good;
  const double from = pieces_[piece].from_per_s, until = EndOf(piece);
  for (const double load : {from, until < kInfinite ? until : from}) {
    double lowest = kInfinite;
    for (size_t c = 0; c < curves_.size(); ++c) {
      if (good[c]) lowest = std::min(lowest, Expense(c, load));
    }
    for (size_t c = 0; c < curves_.size(); ++c) {
      const bool near = good[c] && Near(c, load, lowest);
      eligible[c] = eligible[c] && near;
      somewhere[c] = somewhere[c] || near;
    }
  }
  // None, where each is the cheapest, or the fastest, at one end only.
  return std::find(eligible.begin(), eligible.end(), true) == eligible.end() ? somewhere : eligible;
}

void Envelope::Merge(std::span<const double> cuts) {
  SplitAt(cuts);
  const std::vector<Piece> exact = pieces_;
  // Every choice below is for whole exact pieces, and judged against their own configs.
  std::vector<std::vector<bool>> eligible;
  for (size_t i = 0; i < exact.size(); ++i) eligible.push_back(Eligible(i));
  std::vector<size_t> choice(exact.size());
  for (size_t begin = 0; begin < exact.size();) {
    size_t longest = 0, chosen = exact[begin].config;  // E6
    for (size_t c = 0; c < curves_.size(); ++c) {
      size_t length = 0;
      while (begin + length < exact.size() && eligible[begin + length][c]) ++length;
      const bool robust = curves_[c].robustness < curves_[chosen].robustness;  // E7
      if (length > longest || (length == longest && robust)) longest = length, chosen = c;
    }
    std::fill_n(choice.begin() + static_cast<std::ptrdiff_t>(begin), longest, chosen);
    begin += longest;
  }
  pieces_.clear();
  for (size_t i = 0; i < exact.size(); ++i) Add(exact[i].from_per_s, choice[i]);
}

}  // namespace curtail
