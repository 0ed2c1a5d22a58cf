// SPDX-License-Identifier: Apache-2.0
//
// DESIGN (reasons: docs/design/adaptation.md). Time goes in windows, each under one config at one load. Mostly
// the config that won so far runs. Once enough requests have been served for the exploration's share, another one is
// put on trial, by turns with it; whether it is worth a trial is decided by what its p99 is at least,
// so one that cannot win is left alone until that knowledge has faded.
//
//  O1. A config that is known not to keep up with the load is never chosen while there is another, on trial or not.
//  O2. Trials begin only while the best known p99 leaves room below the SLO, or with a config that is known to be far
//      better; and only with one that kept up with nearly this load before or has threads to spare by Little's law.
//  O3. A trial ends at once when the load leaves its bucket, and after the first turn that says it is lost. Where the
//      running config keeps up, nothing but a trial moves the policy at one load: measurements of two times compare the
//      machine's moods. Each load keeps the config that won there, or else the first one: of eleven that are known the best
//      would be the luckiest.
//  O4. Requests of trials are paid for from a budget that grows by `explore_share` of all requests. A first trial of a config
//      at a load is of one turn, which tells whether another one is worth it. A later one begins when as many turns are paid
//      for as a win takes. It may go on while the config promises a gain; else it ends after those turns, and each of its
//      requests counts eight times, so that fewer are on trial than a p99 forgives.
//  O5. A poller keeps a CPU busy. Its p99 counts as higher wherever configs are compared, so that it runs, and is tried,
//      only where it gains more: by `cpu_weight` times the CPU that it takes beyond what configs that block take at this
//      load, as a multiple of theirs, and by `cpu_weight` at least.
//  O6. A gain below kGain moves nothing, at one load or from one to another: a stall that looks like another load for a
//      moment would else move it between equals.
//  O7. At another load the champion of that load or of one nearby runs at first. Another config takes its place without a
//      trial once, if it is known to be far better, and after the load has stayed for `dwell`: a load that begins or ends
//      crosses others, of which next to nothing is known but such beginnings and ends. What is known of a config that ran for
//      a few windows lacks the moments in which the machine was slow, and moves nothing.
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "curtail/adapt/internal/online_knowledge.h"
#include "curtail/adapt/internal/paired_trial.h"
#include "curtail/adapt/internal/policies.h"
#include "curtail/base/rng.h"

namespace curtail::internal {
namespace {

constexpr double kTrialSamples = 300;  // the p99 is then known to some 12 %
constexpr double kKnown = 30;          // samples with which a config is known at a load
constexpr double kMoods = 12;          // windows, long enough to have met the machine when it is slow
constexpr double kUnpromising = 8;     // the price of a request under a known config that promises no gain
constexpr double kMostTurns = 4;   // of a trial that promises a gain, as multiple of those that a win takes
constexpr double kMostSaved = 16;  // first prices, in the budget
constexpr double kMostOwed = 16 * kUnpromising;
constexpr double kTrialsAfterDrift = 4;
constexpr double kFarBetter = 1.5;                       // the factor between two known p99
constexpr double kRoom = 0.8;                            // of the SLO
constexpr double kGain = 0.1;                            // less is no reason to switch
constexpr double kBorrowedGain = 0.3;                    // a neighbouring load may mislead by so much
constexpr double kKeptUp = 0.8;                          // of the arrivals that must be answered
constexpr double kDrift = 1.5;                           // factor between a window's p99 and the known one
constexpr double kDriftSamples = 1000;                   // of a window that is compared so
constexpr Nanos kDriftLength = std::chrono::seconds(2);  // of it, at least: a busy neighbour is no drift
constexpr int kDriftWindows = 4;                         // in a row
constexpr double kNewest = 0.2;                          // of a window, in the mean of the CPU that is used
constexpr double kEdge = 1.1;                            // how far beyond its bucket the load must be
constexpr double kSigmas = 1;  // of a Poisson process, which a window's arrivals may be away from the load

class Online final : public Policy {
 public:
  Online(std::vector<Config> configs, std::optional<Envelope> expected, const PolicyOptions& options)
      : knowledge_(std::move(configs), std::move(expected)),
        cpu_weight_(std::max(options.cpu_weight, 0.0)),
        slo_us_(std::chrono::duration<double, std::micro>(options.slo).count()),
        share_(std::clamp(options.explore_share, 0.0, 0.5)),
        dwell_(options.dwell),
        rng_(options.seed) {}

  Choice Decide(const Signals& s) override {
    const std::optional<size_t> running = IndexOf(s.current);
    if (s.window != nullptr && running) Learn(*running, s);
    if (!running || bucket_ < 0) return Enter(s, std::nullopt, "begins");
    const double load = s.rates.slow;
    if (load > Knowledge::HighOf(bucket_) * kEdge) return Enter(s, running, "the load has risen");
    const bool fell = load < Knowledge::LowOf(bucket_) / kEdge;
    if (fell && (trial_ || s.now - entered_ >= dwell_)) return Enter(s, running, "the load has fallen");
    if (s.window == nullptr || fell) return {s.current, "within the window"};
    return trial_ ? Continue(s) : Exploit(s, *running);
  }

 private:
  std::optional<size_t> IndexOf(const Config& config) const {
    const auto found = std::find(knowledge_.configs().begin(), knowledge_.configs().end(), config);
    if (found == knowledge_.configs().end()) return std::nullopt;
    return static_cast<size_t>(found - knowledge_.configs().begin());
  }
  bool Polls(size_t config) const { return knowledge_.configs()[config].model.reception == Reception::kPoll; }
  // The p99 with the price of its CPU: O5.
  double Priced(size_t config, double p99_us) const { return p99_us * (Polls(config) ? PollerPrice() : 1); }
  double PollerPrice() const {
    const double cores = bucket_ < 0 ? 0 : cores_[static_cast<size_t>(bucket_)];
    return 1 + cpu_weight_ * (cores > 0 ? std::max(1.0, (1 - cores) / cores) : 1);
  }
  Choice Use(size_t config, std::string_view reason) const { return {knowledge_.configs()[config], reason}; }

  // The same; it stays until another one wins at this load, also when the load comes back.
  Choice Settle(size_t config, std::string_view reason) {
    ForgetTurn();
    std::optional<size_t>& champion = champions_[static_cast<size_t>(bucket_)];
    if (champion != config) knowledge_.ForgetRatios(bucket_);
    champion = config;
    return Use(config, reason);
  }

  static double RateOf(const LatencyWindow& window) {
    return static_cast<double>(window.arrivals) /
           std::max(std::chrono::duration<double>(window.length).count(), 1e-9);
  }

  // The present one, if the window's rate differs from its loads by no more than arrivals do by chance.
  int BucketOf(const LatencyWindow& window) const {
    const double rate = RateOf(window);
    if (bucket_ < 0) return Knowledge::BucketOf(rate);
    const double chance =
        kSigmas * rate / std::sqrt(static_cast<double>(std::max<uint64_t>(window.arrivals, 1)));
    const bool present =
        rate + chance > Knowledge::LowOf(bucket_) && rate - chance < Knowledge::HighOf(bucket_);
    return present ? bucket_ : Knowledge::BucketOf(rate);
  }

  void Learn(size_t config, const Signals& s) {
    const LatencyWindow& window = *s.window;
    const double n = window.latencies.weight();
    const int bucket = BucketOf(window);
    const auto arrivals = static_cast<double>(window.arrivals);
    const bool champions = !trial_ || !trial_->challengers_turn();
    if (champions) {
      turn_requests_ = std::max(s.rates.slow * InSeconds(window.length), PairedTrial::kTurn);
      budget_ = std::min(budget_ + share_ * arrivals, kMostSaved * FirstPrice());
    }
    const bool behind = arrivals >= 100 && n < kKeptUp * arrivals;
    const bool hopeless = n >= 50 && window.latencies.P99AtLeastUs() > 10 * slo_us_;
    // One such window of the champion may be a stall of the machine.
    const bool again = std::exchange(overloaded_, behind || hopeless) || !champions;
    if (overloaded_ && again) return knowledge_.LearnSaturation(config, bucket, s.now);
    if (n < 1) return;
    if (!Polls(config)) NoteCores(bucket, window);
    if (!trial_) NoticeDrift(config, bucket, window);
    if (!trial_) NoteTurn(window);
    knowledge_.Learn(config, bucket, s.now, window);
  }

  void NoteCores(int bucket, const LatencyWindow& window) {
    if (window.cpu <= Nanos(0) || window.length <= Nanos(0)) return;
    const double cores = InSeconds(window.cpu) / InSeconds(window.length);
    double& known = cores_[static_cast<size_t>(bucket)];
    known = known > 0 ? known + kNewest * (cores - known) : cores;
  }

  void NoteTurn(const LatencyWindow& window) {
    turn_.Merge(window.latencies);
    if (turn_.weight() < PairedTrial::kTurn) return;
    champions_p99_ = turn_.QuantileUs(0.99);
    turn_ = {};
  }
  void ForgetDrift() { recent_ = {}, recent_length_ = Nanos(0), drifting_ = 0; }
  void ForgetTurn() { champions_p99_.reset(), turn_ = {}; }

  // The machine, the data or a neighbour became slower: what is known of the running config is wrong, so of the others, too.
  void NoticeDrift(size_t config, int bucket, const LatencyWindow& window) {
    const std::optional<double> known = knowledge_.P99(config, bucket);
    if (!known || bucket != bucket_ || config != drift_of_) ForgetDrift(), drift_of_ = config;
    if (!known || bucket != bucket_) return;
    // The known p99 learns from these windows, too, so it counts as it was before the first of them.
    if (drifting_ == 0 && recent_.weight() == 0) known_before_ = *known;
    recent_.Merge(window.latencies);
    recent_length_ += window.length;
    if (recent_.weight() < kDriftSamples || recent_length_ < kDriftLength) return;
    const double ratio = recent_.QuantileUs(0.99) / std::max(known_before_, 1e-3);
    recent_ = {}, recent_length_ = Nanos(0);
    drifting_ = ratio > kDrift ? drifting_ + 1 : 0;
    if (drifting_ < kDriftWindows) return;
    ForgetDrift();
    knowledge_.Distrust();
    champions_.fill(std::nullopt);
    champions_[static_cast<size_t>(bucket_)] = config;
    budget_ = std::max(budget_, kTrialsAfterDrift * FirstPrice());
  }

  // Another load: takes what won there or nearby, or else what is best there, and forgets about trials. Keeps what ran if
  // that is about as good: O6.
  Choice Enter(const Signals& s, std::optional<size_t> ran, std::string_view reason) {
    if (trial_) {
      ran = trial_->champion();
      EndTrial();
    }
    ForgetTurn();
    bucket_ = Knowledge::BucketOf(s.rates.slow);
    entered_ = s.now;
    ForgetDrift();
    if (const std::optional<size_t> champion = ChampionNearby(s)) {
      judged_ = false;
      return Use(*champion, reason);
    }
    judged_ = true;
    const size_t best = BestAt(s);
    return Settle(ran && AsGood(*ran, best, s) ? *ran : best, reason);
  }

  // The champion of the present load, or of the nearest one up to an octave away, and keeps up with this one.
  std::optional<size_t> ChampionNearby(const Signals& s) const {
    for (const int away : {0, -1, 1, -2, 2}) {
      const int bucket = bucket_ + away;
      if (bucket < 0 || bucket >= Knowledge::kBuckets) continue;
      const std::optional<size_t> champion = champions_[static_cast<size_t>(bucket)];
      if (champion && knowledge_.SafeToTry(*champion, bucket_, s.now)) return champion;
    }
    return std::nullopt;
  }

  // True if a trial of the config may well be won: the last one says so, or else what is known of both.
  bool Promising(size_t config, size_t running) const {
    if (const std::optional<double> ratio = knowledge_.Ratio(config, bucket_)) return *ratio < 1 - kGain;
    const std::optional<double> p99 = knowledge_.P99(config, bucket_),
                                present = knowledge_.P99(running, bucket_);
    return p99 && present && Better(config, *p99, running, *present);
  }

  // True if the one is known so well, and to be so much better, that the machine's moods do not explain it.
  bool FarBetter(size_t one, size_t other) const {
    const std::optional<double> p99 = knowledge_.P99(one, bucket_), others = knowledge_.P99(other, bucket_);
    return p99 && others && knowledge_.Weight(one, bucket_) >= kTrialSamples &&
           knowledge_.Windows(one, bucket_) >= kMoods &&
           Priced(one, *p99) * kFarBetter < Priced(other, *others);
  }

  // True if the one keeps up with the present load, burns no CPU, and may be about as good as the other.
  bool AsGood(size_t one, size_t other, const Signals& s) const {
    const std::optional<double> p99 = knowledge_.P99Nearby(one, bucket_),
                                best = knowledge_.P99Nearby(other, bucket_);
    const double at_least = knowledge_.P99AtLeast(one, bucket_);
    return p99 && best && !Polls(one) && knowledge_.SafeToTry(one, bucket_, s.now) &&
           !Better(other, *best, one, at_least > 0 ? at_least : *p99);
  }

  // The config of lowest known p99 for the present bucket; where none is known, what is presumed.
  size_t BestAt(const Signals& s) const {
    std::optional<size_t> best;
    double lowest = 0;
    for (size_t c = 0; c < knowledge_.configs().size(); ++c) {
      if (knowledge_.Excluded(c, bucket_, s.now)) continue;  // O1
      const std::optional<double> p99 = knowledge_.P99Nearby(c, bucket_);
      if (!p99 || (best && Priced(c, *p99) >= lowest) || !knowledge_.SafeToTry(c, bucket_, s.now)) continue;
      best = c, lowest = Priced(c, *p99);
    }
    return best ? *best : knowledge_.Presumed(s.rates.slow, s.now);
  }

  Choice Exploit(const Signals& s, size_t running) {
    const std::optional<double> present = knowledge_.P99(running, bucket_);
    if (knowledge_.Excluded(running, bucket_, s.now)) return Settle(BestAt(s), "does not keep up");
    if (!present) return {s.current, "not known yet"};
    if (!judged_ && s.now - entered_ >= dwell_) {  // O7
      judged_ = true;
      if (const size_t best = BestAt(s); FarBetter(best, running)) return Settle(best, "known to be better");
    }
    const bool may_try = champions_p99_.has_value();
    if (*present > kRoom * slo_us_) {  // O2
      const size_t best = BestAt(s);
      if (may_try && budget_ >= TrialPrice(best) && FarBetter(best, running))
        return Begin(running, best, "known to be better");
      if (*present > slo_us_ && s.now - entered_ >= dwell_) return Rescue(s, running);
      return {s.current, "no room below the SLO"};
    }
    if (!may_try || knowledge_.Weight(running, bucket_) < kTrialSamples) return {s.current, "best known"};
    const std::optional<size_t> challenger = Challenger(s, running, *present);
    if (!challenger || budget_ < TrialPrice(*challenger)) return {s.current, "best known"};
    return Begin(running, *challenger, "trial");
  }

  Choice Begin(size_t running, size_t challenger, std::string_view reason) {
    trial_.emplace(running, challenger, Priced(challenger, 1) / Priced(running, 1), kGain, *champions_p99_);
    trial_reason_ = reason;
    spent_ = 0;
    most_ = TrialPrice(challenger);
    const bool promising = Promising(challenger, running);
    if (Known(challenger) && promising) most_ *= kMostTurns;
    request_price_ = Known(challenger) && !promising ? kUnpromising : 1;
    return Use(challenger, reason);
  }

  // The SLO is missed: try what can hold most requests, if it was not tried.
  Choice Rescue(const Signals& s, size_t running) {
    entered_ = s.now;
    const size_t strongest = knowledge_.Presumed(1e12, s.now);
    const bool tried = knowledge_.Weight(strongest, bucket_) > 0;
    if (strongest == running || tried || knowledge_.Excluded(strongest, bucket_, s.now)) {
      return {s.current, "the SLO is missed, and nothing better is known"};
    }
    return Settle(strongest, "the SLO is missed");
  }

  // Which config might be better than the present one and may be tried; of those the one that might be best.
  std::optional<size_t> Challenger(const Signals& s, size_t running, double present) {
    std::optional<size_t> found;
    double least = 0;
    uint64_t equals = 0;
    for (size_t c = 0; c < knowledge_.configs().size(); ++c) {
      if (c == running || !knowledge_.SafeToTry(c, bucket_, s.now)) continue;  // O2
      double at_least = knowledge_.P99AtLeast(c, bucket_);
      if (at_least == 0) {
        const std::optional<double> nearby = knowledge_.P99Nearby(c, bucket_);
        if (nearby) at_least = *nearby * (1 - kBorrowedGain);
      }
      if (!Better(c, at_least, running, present)) continue;
      at_least = Priced(c, at_least);
      if (found && at_least > least) continue;
      equals = found && at_least == least ? equals + 1 : 1;
      if (equals > 1 && rng_.Below(equals) != 0) continue;  // each of the equals is as likely
      found = c, least = at_least;
    }
    return found;
  }

  Choice Continue(const Signals& s) {
    const size_t challenger = trial_->challenger(), champion = trial_->champion();
    if (trial_->challengers_turn()) spent_ += static_cast<double>(s.window->arrivals);  // O4
    PairedTrial::Verdict verdict = trial_->Add(s.window->latencies);
    if (knowledge_.Excluded(challenger, bucket_, s.now)) verdict = PairedTrial::Verdict::kLost;
    if (verdict == PairedTrial::Verdict::kOpen) {
      if (spent_ < most_ || !trial_->challengers_turn())
        return Use(trial_->running(), trial_->challengers_turn() ? trial_reason_ : "compared");
      verdict = PairedTrial::Verdict::kEqual;
    }
    knowledge_.LearnRatio(challenger, bucket_, trial_->ratio());
    EndTrial();
    ForgetTurn();
    if (verdict == PairedTrial::Verdict::kLost) return Use(champion, "trial lost");
    if (verdict == PairedTrial::Verdict::kEqual) return Use(champion, "trial ended");
    return Settle(challenger, "trial won");
  }

  // Its requests are paid for.
  void EndTrial() {
    budget_ = std::max(budget_ - spent_ * request_price_, -kMostOwed * FirstPrice());
    trial_.reset();
  }
  // The requests that the first trial at a load may take.
  double FirstPrice() const { return std::max(kTrialSamples, turn_requests_); }
  // Those that must be paid for before a trial of `config`.
  double TrialPrice(size_t config) const {
    if (!Known(config)) return FirstPrice();
    return std::max(kTrialSamples, PairedTrial::kLeastPairs * turn_requests_);
  }
  bool Known(size_t config) const { return knowledge_.Weight(config, bucket_) >= kKnown; }

  // True if the one gains enough over the other, at these p99.
  bool Better(size_t one, double one_us, size_t other, double other_us) const {
    return Priced(one, one_us) < Priced(other, other_us) * (1 - kGain);
  }

  Knowledge knowledge_;
  const double cpu_weight_;
  const double slo_us_;
  const double share_;
  const Nanos dwell_;
  Rng rng_;
  int bucket_ = -1;  // of the load that the present config was chosen for
  TimePoint entered_{};
  bool judged_ = false;      // since then, against what is known of the others: O7
  bool overloaded_ = false;  // so the last window says
  // By load: the config that won there, or came first.
  std::array<std::optional<size_t>, Knowledge::kBuckets> champions_{};
  std::array<double, Knowledge::kBuckets> cores_{};  // used by configs that block, by load; zero: not known
  std::optional<PairedTrial> trial_;
  std::string_view trial_reason_;
  // The p99 in the running config's last turn, where no trial is on, and what came since.
  std::optional<double> champions_p99_;
  LatencySketch turn_;
  double budget_ = 0;                          // requests that trials may take
  double spent_ = 0;                           // by the present one
  double most_ = 0;                            // that it may take
  double request_price_ = 1;                   // of each of them
  double turn_requests_ = PairedTrial::kTurn;  // of a turn at the present load
  // Latencies of the running config that are not compared with what is known yet; and how many such stretches in a row
  // were worse.
  LatencySketch recent_;
  Nanos recent_length_{0};
  size_t drift_of_ = 0;      // the config
  double known_before_ = 0;  // its p99 in microseconds before the first of them
  int drifting_ = 0;
};

absl::StatusOr<std::unique_ptr<Policy>> MakeOnline(const PolicyRequest& request) {
  std::optional<Envelope> expected;
  if (request.profile != nullptr) {
    absl::StatusOr<Envelope> envelope =
        Envelope::Make(*request.profile, request.runs, {.cpu_weight = request.options.cpu_weight});
    if (envelope.ok()) expected = *std::move(envelope);
  }
  std::vector<Config> configs;
  const std::vector<Config>& wanted = request.options.configs;
  std::copy_if(wanted.begin(), wanted.end(), std::back_inserter(configs), request.runs);
  if (wanted.empty() && expected) configs.assign(expected->configs().begin(), expected->configs().end());
  if (configs.empty()) {
    return absl::InvalidArgumentError("needs a profile or a list of configs that the service can run under");
  }
  return std::make_unique<Online>(std::move(configs), std::move(expected), request.options);
}

}  // namespace

constinit const PolicyKind kOnlinePolicy = {
    .name = "online",
    .summary = "learns while it serves, with or without a profile to begin with",
    .make = MakeOnline,
    .profile = ProfileUse::kOptional,
    .latencies = true,
    .compared = true,
};

}  // namespace curtail::internal
