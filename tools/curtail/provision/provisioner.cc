// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/provision/provisioner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "curtail/deploy/cpu_groups.h"
#include "curtail/exec/config.h"
#include "tools/curtail/compare/policy_judge.h"

namespace curtail::tool {
namespace {

constexpr double kLowest = 1.0 / 16;  // of the load at which a search begins
constexpr int kMaxTrials = 30;        // of a search
constexpr double kWorthwhile = 0.01;  // a difference of good shares below it is none
constexpr double kIdle = 0.1;         // of its CPU time, from which on a service counts as loaded
constexpr double kRounding = 1e-6;

double InSteps(double cpus) { return std::floor(cpus / deploy::kLeastCpu + kRounding) * deploy::kLeastCpu; }

// The config with `factor` times the threads that run handlers, `most` at most; none if it has so many.
std::optional<std::string> WithMoreThreads(const std::string& text, double factor, int most) {
  absl::StatusOr<Config> config = Config::Parse(text);
  if (!config.ok()) return std::nullopt;
  config->stand_ins = false;
  int& pool = config->workers > 0 ? config->workers : config->network;
  const int more = std::min(most, std::max(pool + 1, static_cast<int>(std::ceil(pool * factor - kRounding))));
  if (more <= pool) return std::nullopt;
  pool = more;
  return config->ToString();
}

}  // namespace

const char* NameOf(StepVerdict verdict) {
  switch (verdict) {
    case StepVerdict::kNone:
      return "-";
    case StepVerdict::kHelps:
      return "helps";
    case StepVerdict::kNoHelp:
      return "does not help";
    case StepVerdict::kCannotTell:
      return "cannot tell";
  }
  return "";
}

Provisioner::Provisioner(ProvisionOptions options, Allocation start)
    : options_(std::move(options)), start_(start), kept_(start), pending_(start), equal_(std::move(start)) {
  Search(options_.start_per_s, 2);
}

std::optional<ProvisionTurn> Provisioner::Next() const {
  using Purpose = ProvisionTurn::Purpose;
  switch (phase_) {
    case Phase::kSearch:
      return ProvisionTurn{Purpose::kSearch, *search_->Next(), &kept_, arrivals_};
    case Phase::kFinal:
      return ProvisionTurn{Purpose::kFinal, *search_->Next(), &kept_, arrivals_};
    case Phase::kEqual:
      return ProvisionTurn{Purpose::kEqual, *search_->Next(), &equal_, arrivals_};
    case Phase::kJudge: {
      // Without, with; with, without; ...
      const bool with = turns_ % 4 == 1 || turns_ % 4 == 2;
      return ProvisionTurn{with ? Purpose::kWith : Purpose::kWithout, JudgedPerSecond(),
                           with ? &pending_ : &kept_, arrivals_};
    }
    case Phase::kDone:
      break;
  }
  return std::nullopt;
}

void Provisioner::Tell(const TurnResult& result) {
  if (phase_ == Phase::kJudge) {
    TellJudge(result);
  } else if (phase_ != Phase::kDone) {
    TellSearch(result);
  }
}

// ----- searches ------------------------------------------------------------------------------------------------------

void Provisioner::Search(double start_per_s, double growth) {
  search_.emplace(RateSearchOptions{.start_per_s = start_per_s,
                                    .lowest_per_s = start_per_s * kLowest,
                                    .tolerance = options_.bound,
                                    .max_trials = kMaxTrials,
                                    .growth = growth});
  failed_.clear();
  ++arrivals_;
}

void Provisioner::TellSearch(const TurnResult& result) {
  if (result.outcome == TrialOutcome::kNotMet) failed_[*search_->Next()] = result.tiers;
  search_->Tell(result.outcome);
  ++arrivals_;
  if (search_->Next()) return;
  if (phase_ == Phase::kSearch) return EndSearch();
  if (phase_ == Phase::kEqual) {
    equal_highest_ = search_->highest();
    phase_ = Phase::kDone;
    return;
  }
  highest_ = search_->highest();
  BeginEqual();
}

void Provisioner::EndSearch() {
  const std::optional<double> before = std::exchange(highest_, search_->highest());
  highest_is_kept_ = true;
  const bool first = rounds_.empty();
  ProvisionRound& round = rounds_.emplace_back();
  round.highest_per_s = highest_;
  round.refused_per_s = search_->refused().value_or(0);
  round.cpus = CpusOf(kept_);
  const auto failed = failed_.find(round.refused_per_s);
  if (search_->generator_refused() || failed == failed_.end()) return Finish(ProvisionEnd::kGenerator);
  round.saturated = SaturatedTiers(failed->second, options_.calls, options_.levers);
  const bool gain = highest_.value_or(0) >= before.value_or(0) * (1 + options_.bound) - kRounding;
  without_gain_ = first || (gain && highest_) ? 0 : without_gain_ + 1;
  if (round.saturated.empty()) return Finish(ProvisionEnd::kNothingSaturated);
  if (without_gain_ >= kPatience) return Finish(ProvisionEnd::kNoGain);
  if (round.saturated.front().lever == Lever::kCpu && Balanced(failed->second))
    return Finish(ProvisionEnd::kBalanced);
  if (static_cast<int>(rounds_.size()) > options_.max_rounds) return Finish(ProvisionEnd::kRounds);
  pending_ = kept_;
  if (!AddStep(round.saturated)) return Finish(no_step_);
  phase_ = Phase::kJudge;
}

bool Provisioner::Balanced(const std::vector<TierLoad>& tiers) const {
  double least = 1e9, most = 0;
  int loaded = 0;
  for (const TierLoad& tier : tiers) {
    const double share = kept_.at(tier.name).cpu * options_.instances.at(tier.name);
    const double used = share > 0 ? tier.cpus / share : 0;
    if (used < kIdle) continue;
    ++loaded;
    least = std::min(least, used), most = std::max(most, used);
  }
  return loaded > 1 && least * options_.factor > most * (1 + kRounding);
}

// ----- steps ---------------------------------------------------------------------------------------------------------

bool Provisioner::AddStep(const std::vector<Saturation>& saturated) {
  for (const Saturation& of : saturated) {
    const std::optional<TierShare> grown = Grown(of);
    if (!grown) continue;
    rounds_.back().steps.push_back({of.tier, of.lever, pending_.at(of.tier), *grown, of.evidence});
    pending_.at(of.tier) = *grown;
    differences_.clear(), met_with_.clear();
    pair_ = {};
    turns_ = void_pairs_ = 0;
    sum_without_ = sum_with_ = 0;
    ++arrivals_;
    return true;
  }
  return false;
}

std::optional<TierShare> Provisioner::Grown(const Saturation& of) {
  TierShare share = pending_.at(of.tier);
  if (of.lever == Lever::kThreads) {
    const std::optional<std::string> config =
        WithMoreThreads(share.config, options_.factor, options_.threads);
    if (!config) {
      no_step_ = ProvisionEnd::kThreadsSpent;
      return std::nullopt;
    }
    share.config = *config;
    return share;
  }
  const double left = options_.cpus - CpusOf(pending_);
  const double most = share.cpu + left / options_.instances.at(of.tier);
  const double more =
      InSteps(std::min(most, std::max(share.cpu * options_.factor, share.cpu + deploy::kLeastCpu)));
  if (more < share.cpu + deploy::kLeastCpu - kRounding) {
    no_step_ = ProvisionEnd::kCpusSpent;
    return std::nullopt;
  }
  share.cpu = more;
  return share;
}

double Provisioner::JudgedPerSecond() const { return rounds_.back().refused_per_s * (1 + options_.bound); }

double Provisioner::CpusOf(const Allocation& shares) const {
  double sum = 0;
  for (const auto& [name, share] : shares) sum += share.cpu * options_.instances.at(name);
  return sum;
}

// ----- judgement -----------------------------------------------------------------------------------------------------

void Provisioner::TellJudge(const TurnResult& result) {
  const bool with = Next()->purpose == ProvisionTurn::Purpose::kWith;
  if (with && result.outcome != TrialOutcome::kVoid) {
    latest_with_ = result.tiers;
    met_with_.push_back(result.outcome == TrialOutcome::kMet);
  }
  if (result.outcome != TrialOutcome::kVoid) (with ? pair_.with : pair_.without) = result.good_share;
  if (++turns_ % 2 != 0) return;
  const Pair pair = std::exchange(pair_, {});
  ++arrivals_;
  if (!pair.with || !pair.without) {
    if (++void_pairs_ > kMaxVoidPairs) Finish(ProvisionEnd::kGenerator);
    return;
  }
  differences_.push_back(*pair.with - *pair.without);
  sum_with_ += *pair.with;
  sum_without_ += *pair.without;
  if (const StepVerdict verdict = Judge(); verdict != StepVerdict::kNone) EndJudge(verdict);
}

StepVerdict Provisioner::Judge() {
  const auto n = static_cast<int>(differences_.size());
  ProvisionRound& round = rounds_.back();
  round.pairs = n;
  round.good_before = sum_without_ / n;
  round.good_after = sum_with_ / n;
  if (n < kPairsToJudge) return StepVerdict::kNone;
  round.gain = MeanInterval(differences_, 1 - LookSignificance(static_cast<size_t>(n - kPairsToJudge + 1)));
  if (round.gain->low > 0) return StepVerdict::kHelps;
  if (round.gain->high < kWorthwhile) return StepVerdict::kNoHelp;
  return n < kMaxPairs ? StepVerdict::kNone : StepVerdict::kCannotTell;
}

void Provisioner::EndJudge(StepVerdict verdict) {
  ProvisionRound& round = rounds_.back();
  round.verdict = verdict;
  if (verdict != StepVerdict::kHelps) {
    const auto saturated = SaturatedTiers(latest_with_, options_.calls, options_.levers);
    if (round.steps.size() < kJointSteps && AddStep(saturated)) return;
    return Finish(ProvisionEnd::kNoStepHelps);
  }
  kept_ = pending_;
  highest_is_kept_ = false;
  const bool met = std::find(met_with_.begin(), met_with_.end(), false) == met_with_.end();
  phase_ = Phase::kSearch;
  Search(met || !highest_ ? JudgedPerSecond() : *highest_, 1 + options_.bound);
}

// ----- the end -------------------------------------------------------------------------------------------------------

void Provisioner::Finish(ProvisionEnd why) {
  if (end_ != ProvisionEnd::kRunning) {
    if (why == ProvisionEnd::kInterrupted) phase_ = Phase::kDone;
    return;
  }
  end_ = why;
  if (why == ProvisionEnd::kInterrupted || why == ProvisionEnd::kGenerator) {
    if (!highest_is_kept_) highest_.reset();
    phase_ = Phase::kDone;
  } else if (highest_is_kept_) {
    BeginEqual();
  } else {
    phase_ = Phase::kFinal;
    Search(highest_.value_or(options_.start_per_s), 1 + options_.bound);
  }
}

void Provisioner::BeginEqual() {
  phase_ = Phase::kDone;
  int limited = 0;
  for (const auto& [name, share] : kept_) limited += share.cpu > 0 ? options_.instances.at(name) : 0;
  const double sum = CpusOf(kept_);
  if (sum < CpusOf(start_) + deploy::kLeastCpu - kRounding) return;
  equal_ = kept_;
  for (auto& [name, share] : equal_) {
    if (share.cpu > 0) share.cpu = std::max(deploy::kLeastCpu, InSteps(sum / limited));
  }
  phase_ = Phase::kEqual;
  Search(rounds_.front().highest_per_s.value_or(options_.start_per_s), 2);
}

std::string Provisioner::Describe() const {
  const std::string tier =
      rounds_.empty() || rounds_.back().saturated.empty() ? "" : rounds_.back().saturated.front().tier;
  switch (end_) {
    case ProvisionEnd::kRunning:
      return "it goes on";
    case ProvisionEnd::kBalanced:
      return absl::StrFormat("all services that work saturate at about the same load, %.4g/s",
                             rounds_.back().refused_per_s);
    case ProvisionEnd::kNoStepHelps:
      return absl::StrCat(
          "more for ", tier, " ",
          rounds_.back().verdict == StepVerdict::kCannotTell ? "cannot be told to help" : "does not help",
          ", and it is saturated first");
    case ProvisionEnd::kNoGain:
      return absl::StrFormat("the last %d steps did not raise the load by %.0f %%", kPatience,
                             100 * options_.bound);
    case ProvisionEnd::kNothingSaturated:
      return "no service is short of what could be given: the machine, or another resource, is the limit";
    case ProvisionEnd::kCpusSpent:
      return absl::StrFormat("%s needs more, and all %.4g CPUs are shared out", tier, options_.cpus);
    case ProvisionEnd::kThreadsSpent:
      return absl::StrFormat("%s has %d threads, the most", tier, options_.threads);
    case ProvisionEnd::kGenerator:
      return "the load generator was late too often to go on";
    case ProvisionEnd::kRounds:
      return absl::StrCat(options_.max_rounds, " rounds are over");
    case ProvisionEnd::kTime:
      return "the time is over";
    case ProvisionEnd::kInterrupted:
      return "it was interrupted";
  }
  return "";
}

}  // namespace curtail::tool
