// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A saturated cell has an infinite p99. Then medians say by themselves what holds in most rounds,
// and no case is special but a ratio of two infinite numbers, which is 1.
//
// How often is a right profile refused? When all configs are equal, the chosen one is worse in all of five
// rounds once in 32 duels, and must then be worse in five of the six that confirm it (7 in 64) or more, and
// by more than max_loss at the median: less than one load in 290.
#include "curtail/adapt/verification.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "curtail/adapt/internal/limits.h"
#include "curtail/adapt/internal/median.h"
#include "curtail/adapt/training.h"

namespace curtail {
namespace {

using internal::kInfinite;
using internal::kMaxLoads;

using internal::Median;

constexpr double kConfidence = 0.95;
constexpr int kMaxRounds = 999;
// The training's seeds have indices below 2^32. Rounds are below 2^12 each.
constexpr uint64_t kFirstSeed = uint64_t{1} << 32;
constexpr int kRoundBits = 12;

// The k-th lowest and k-th highest value, k being the largest for which the median lies between them with
// the wanted confidence: the number of values below the median is binomial.
RatioInterval MedianInterval(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  double chance = std::exp2(-static_cast<double>(n));  // that just k are below the median
  double outside = chance;                             // that k or fewer are
  size_t k = 0;
  while (k + 1 < n - k) {
    const double more = chance * static_cast<double>(n - k) / static_cast<double>(k + 1);
    if (1 - 2 * (outside + more) < kConfidence) break;
    outside += more, chance = more, ++k;
  }
  return {values[k], values[n - 1 - k], 1 - 2 * outside};
}

double Ratio(double chosen_us, double best_us) {
  if (chosen_us == best_us) return 1;  // both infinite, too
  return chosen_us / best_us;
}

// The highest trained load that the config sustained; 0 if none.
double Sustained(const ConfigSummary& summary) {
  if (summary.saturation_per_s) return *summary.saturation_per_s;
  return summary.points.empty() ? 0 : summary.points.back().load_per_s;
}

double HighestSustained(const Profile& profile, const ConfigFilter& filter) {
  double highest = 0;
  for (const ConfigSummary& summary : profile.configs) {
    if (!filter || filter(summary.config)) highest = std::max(highest, Sustained(summary));
  }
  return highest;
}

double Between(double low, double high) {
  const double mean = std::sqrt(low) * std::sqrt(high);
  const double unit = std::pow(10, std::floor(std::log10(mean)) - 1);
  const double rounded = std::round(mean / unit) * unit;
  return rounded > low && rounded < high ? rounded : mean;
}

absl::Status CheckOptions(const VerificationOptions& options) {
  if (options.search_repeats < 1 || options.search_repeats > kMaxRounds) {
    return absl::InvalidArgumentError(
        absl::StrCat("the search takes 1 to ", kMaxRounds, " repeats, not ", options.search_repeats));
  }
  if (options.duel_rounds < 1 || options.duel_rounds > kMaxRounds || options.duel_rounds % 2 == 0) {
    return absl::InvalidArgumentError(absl::StrCat("a duel takes an odd number of rounds from 1 to ",
                                                   kMaxRounds, ", not ", options.duel_rounds));
  }
  if (options.max_loss >= 0 && options.max_loss <= 1000) return absl::OkStatus();
  return absl::InvalidArgumentError("the loss that is allowed must not be negative; 0.1 is 10 %");
}

absl::Status CheckLoads(const std::vector<double>& loads, const Profile& profile, double highest) {
  if (loads.empty()) {
    return absl::InvalidArgumentError(
        "the profile has no two neighbouring loads that a config sustains, between which it could be "
        "verified; "
        "train it at lower loads or at more of them");
  }
  if (loads.size() > kMaxLoads) {
    return absl::InvalidArgumentError(absl::StrCat("more than ", kMaxLoads, " loads to verify at"));
  }
  for (size_t i = 0; i < loads.size(); ++i) {
    const double load = loads[i];
    if (!(load > 0) || (i > 0 && load <= loads[i - 1])) {
      return absl::InvalidArgumentError(
          absl::StrCat("the loads must be positive and ascend; ", load, "/s does not"));
    }
    if (load > highest) {
      return absl::InvalidArgumentError(absl::StrCat("by the profile no config sustains ", load,
                                                     "/s; the highest load it knows one for is ", highest,
                                                     "/s"));
    }
    if (std::find(profile.loads.begin(), profile.loads.end(), load) != profile.loads.end()) {
      return absl::InvalidArgumentError(absl::StrCat("the profile was trained at ", load,
                                                     "/s; verify it at loads between the trained ones"));
    }
  }
  return absl::OkStatus();
}

std::string Milliseconds(double us) {
  return us < kInfinite ? absl::StrFormat("%.2f", us / 1e3) : std::string("saturated");
}

std::string Times(double ratio) {
  return ratio < kInfinite ? absl::StrFormat("%.2f", ratio) : std::string("inf");
}

}  // namespace

std::vector<double> HeldOutLoads(const Profile& profile, int count, const ConfigFilter& filter) {
  const double highest = HighestSustained(profile, filter);
  std::vector<double> all;
  for (size_t i = 0; i + 1 < profile.loads.size() && profile.loads[i + 1] <= highest; ++i) {
    all.push_back(Between(profile.loads[i], profile.loads[i + 1]));
  }
  const size_t wanted = static_cast<size_t>(std::max(count, 0));
  if (all.size() <= wanted) return all;
  if (wanted == 1) return {all[all.size() / 2]};
  std::vector<double> loads;
  for (size_t i = 0; i < wanted; ++i)
    loads.push_back(all[(i * (all.size() - 1) + (wanted - 1) / 2) / (wanted - 1)]);
  return loads;
}

std::string_view VerdictName(VerificationVerdict verdict) {
  switch (verdict) {
    case VerificationVerdict::kAgrees:
      return "agrees";
    case VerificationVerdict::kWithin:
      return "within";
    case VerificationVerdict::kNoise:
      return "noise";
    case VerificationVerdict::kLoses:
      return "loses";
    case VerificationVerdict::kBeyond:
      break;
  }
  return "beyond all";
}

absl::StatusOr<Verification> Verification::Make(const Profile& profile, const ConfigFilter& filter,
                                                const VerificationOptions& options) {
  absl::StatusOr<Envelope> envelope = Envelope::Make(profile, filter);
  if (!envelope.ok()) return envelope.status();
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  Verification verification(*std::move(envelope));
  verification.options_ = options;
  std::vector<double>& loads = verification.options_.loads;
  if (loads.empty()) loads = HeldOutLoads(profile, options.count, filter);
  if (absl::Status status = CheckLoads(loads, profile, HighestSustained(profile, filter)); !status.ok()) {
    return status;
  }
  verification.seed_ = profile.seed;
  verification.BeginLoad();
  return verification;
}

std::vector<Config> Verification::Candidates(double load_per_s) const {
  std::vector<Config> configs = {envelope_.Best(load_per_s)};
  for (const Config& config : envelope_.configs()) {
    if (config != configs[0] && *envelope_.Predict(config, load_per_s) < kInfinite) configs.push_back(config);
  }
  return configs;
}

size_t Verification::ConfigAt(size_t slot) const {
  const size_t count = configs_.size(), round = static_cast<size_t>(round_);
  // In a duel they begin in turns. In the search the direction changes besides, as in a Training.
  if (stage_ == VerificationStage::kDuel) return (slot + round) % 2;
  return (round + (round % 2 == 1 ? count - slot : slot)) % count;
}

std::optional<VerificationCell> Verification::Next() const {
  if (rows_.size() == options_.loads.size()) return std::nullopt;
  const bool duel = stage_ == VerificationStage::kDuel;
  const uint64_t index =
      kFirstSeed + ((uint64_t{rows_.size()} * 2 + duel) << kRoundBits) + static_cast<uint64_t>(round_);
  return VerificationCell{configs_[ConfigAt(slot_)], row_.load_per_s, ArrivalsSeed(seed_, index), stage_,
                          round_};
}

void Verification::Tell(double p99_us, bool saturated) {
  // No reply takes less than a nanosecond; without this a ratio might be one of zeros.
  const double p99 = saturated || !(p99_us < kInfinite) ? kInfinite : std::max(p99_us, 1e-3);
  found_[ConfigAt(slot_)].push_back(p99);
  ++done_;
  if (++slot_ < configs_.size()) return;
  slot_ = 0;
  ++round_;
  EndRound();
}

void Verification::BeginStage(VerificationStage stage, std::vector<Config> configs) {
  stage_ = stage;
  found_.assign(configs.size(), {});
  configs_ = std::move(configs);
  round_ = 0;
  slot_ = 0;
}

void Verification::BeginLoad() {
  const double load = options_.loads[rows_.size()];
  std::vector<Config> configs = Candidates(load);
  row_ = {.load_per_s = load,
          .chosen = configs[0],
          .predicted_us = *envelope_.Predict(configs[0], load),
          .best = configs[0]};
  BeginStage(VerificationStage::kSearch, std::move(configs));
}

void Verification::EndRound() {
  if (stage_ == VerificationStage::kSearch) {
    if (round_ == options_.search_repeats) EndSearch();
    return;
  }
  if (round_ != options_.duel_rounds && round_ != MostRounds()) return;
  const VerificationVerdict verdict = Judge();
  if (verdict != VerificationVerdict::kLoses || round_ == MostRounds()) EndLoad(verdict);
}

void Verification::EndSearch() {
  row_.chosen_us = row_.best_us = Median(found_[0]);
  for (size_t i = 1; i < configs_.size(); ++i) {
    const double p99_us = Median(found_[i]);
    if (p99_us >= row_.best_us) continue;
    row_.best_us = p99_us;
    row_.best = configs_[i];
  }
  if (row_.best_us == kInfinite) return EndLoad(VerificationVerdict::kBeyond);
  if (row_.best == row_.chosen) return EndLoad(VerificationVerdict::kAgrees);
  BeginStage(VerificationStage::kDuel, {row_.chosen, row_.best});
}

VerificationVerdict Verification::Judge() {
  std::vector<double> ratios;
  for (size_t i = 0; i < found_[0].size(); ++i) ratios.push_back(Ratio(found_[0][i], found_[1][i]));
  row_.chosen_us = Median(found_[0]);
  row_.best_us = Median(found_[1]);
  row_.ratio = Median(ratios);
  row_.interval = MedianInterval(ratios);
  row_.rounds = round_;
  if (row_.chosen_us == kInfinite) return VerificationVerdict::kLoses;
  if (row_.ratio <= 1 + options_.max_loss) return VerificationVerdict::kWithin;
  return row_.interval.low <= 1 ? VerificationVerdict::kNoise : VerificationVerdict::kLoses;
}

void Verification::EndLoad(VerificationVerdict verdict) {
  row_.verdict = verdict;
  rows_.push_back(row_);
  if (rows_.size() < options_.loads.size()) BeginLoad();
}

size_t Verification::left_at_most() const {
  const size_t repeats = static_cast<size_t>(options_.search_repeats);
  const auto duel = [&](size_t candidates) {
    return candidates > 1 ? 2 * static_cast<size_t>(MostRounds()) : size_t{0};
  };
  size_t left = 0;
  for (size_t i = rows_.size(); i < options_.loads.size(); ++i) {
    const size_t candidates = Candidates(options_.loads[i]).size();
    left += repeats * candidates + duel(candidates);
  }
  if (rows_.size() == options_.loads.size()) return left;
  // Of the present load.
  size_t told = 0;
  for (const std::vector<double>& found : found_) told += found.size();
  const bool dueling = stage_ == VerificationStage::kDuel;
  return left - told - (dueling ? repeats * Candidates(row_.load_per_s).size() : 0);
}

bool Verification::passed() const {
  const auto is = [](VerificationVerdict verdict) {
    return [verdict](const VerificationRow& row) { return row.verdict == verdict; };
  };
  return rows_.size() == options_.loads.size() &&
         std::none_of(rows_.begin(), rows_.end(), is(VerificationVerdict::kLoses)) &&
         !std::all_of(rows_.begin(), rows_.end(), is(VerificationVerdict::kBeyond));
}

std::string VerificationText(std::span<const VerificationRow> rows) {
  std::string text = absl::StrFormat("%9s  %-11s %10s %10s  %-11s %10s %6s  %-13s %s\n", "load/s", "chosen",
                                     "predicted", "p99 ms", "best", "p99 ms", "ratio", "between", "verdict");
  for (const VerificationRow& row : rows) {
    const std::string between =
        row.rounds > 0 ? absl::StrCat(Times(row.interval.low), " to ", Times(row.interval.high)) : "no duel";
    text += absl::StrFormat("%9g  %-11s %10s %10s  %-11s %10s %6s  %-13s %s\n", row.load_per_s,
                            row.chosen.ToString(), Milliseconds(row.predicted_us),
                            Milliseconds(row.chosen_us), row.best.ToString(), Milliseconds(row.best_us),
                            Times(row.ratio), between, std::string(VerdictName(row.verdict)));
  }
  return text;
}

}  // namespace curtail
