// SPDX-License-Identifier: Apache-2.0
//
// verification.h - tests the choices of a profile at loads that it was not trained at.
//
// At each of some held-out loads the envelope's choice is compared with the best of all configs
// that keep up according to the profile. The lowest of many noisy numbers is too low by chance (the
// winner's curse). One stage therefore finds the best, and another one compares it, with fresh
// measurements:
//
//   search   every config a few times in turns; the one with the lowest median p99 is the best
//   duel     the chosen config and the best one in turns; only this gives the ratio. Spared if both
//            are one
//
// A right profile would still lose an occasional duel, so a loss has to be confirmed. The duel then
// goes on for as many rounds again and one more. A Verification knows no clock or server. muTune's
// section 7.2 compares with an exhaustive search at other loads as well, without the second stage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/adapt/envelope.h"
#include "curtail/adapt/profile.h"
#include "curtail/exec/config.h"

namespace curtail {

// Up to `count` loads, ascending, each the geometric mean of two neighbouring trained loads. They
// are rounded to two significant digits if such a number lies between the two. They spread evenly
// from the lowest trained load to the highest one that any config passing `filter` sustains. Fewer
// if the profile has fewer; empty if it has fewer than two such loads.
std::vector<double> HeldOutLoads(const Profile& profile, int count, const ConfigFilter& filter = nullptr);

struct VerificationOptions {
  std::vector<double> loads;  // ascending, not trained; empty: HeldOutLoads()
  int count = 6;              // of those
  int search_repeats = 3;
  int duel_rounds = 5;     // odd
  double max_loss = 0.10;  // the p99 of the chosen config may exceed the best one's by this share
};

enum class VerificationStage { kSearch, kDuel };

// One measurement to be made.
struct VerificationCell {
  Config config;
  double load_per_s = 0;
  // Of the arrivals: one for all configs of a round, never one of the training's
  uint64_t seed = 0;
  VerificationStage stage = VerificationStage::kSearch;
  int round = 0;
};

enum class VerificationVerdict {
  kAgrees,  // the chosen config is the best
  kWithin,  // it loses no more than max_loss
  kNoise,   // it loses more at the median, but the interval of the ratio includes 1
  kLoses,   // it loses more, or did not keep up in most rounds of the duel
  kBeyond,  // no config kept up with the load in the search, so there was no choice
};
// "agrees", "within", ...
std::string_view VerdictName(VerificationVerdict verdict);

// The interval of the median of a ratio.
struct RatioInterval {
  double low = 1;
  double high = 1;
  // The probability that the median lies in it, by order statistics: at least 0.95 from six rounds
  // on. Fewer rounds give their whole range, 0.9375 for five rounds.
  double confidence = 1;
};

// The result at a load.
struct VerificationRow {
  double load_per_s = 0;
  Config chosen;
  double predicted_us = 0;  // its p99 by the profile
  Config best;
  // Medians of the p99 in the duel, or in the search if there was none; infinite: saturated.
  double chosen_us = 0;
  double best_us = 0;
  // Median of chosen/best by round. A round in which only one of them kept up counts as infinite or
  // 0.
  double ratio = 1;
  RatioInterval interval;
  int rounds = 0;  // of the duel
  VerificationVerdict verdict = VerificationVerdict::kAgrees;
};

// A Verification gives the next measurement and judges the results. Thread-compatible.
class Verification {
 public:
  // Errors: INVALID_ARGUMENT if no config passes the filter, an option is out of range, or the
  // profile has no held-out loads. The same if a load was trained at, or is beyond the load that
  // any config sustains.
  static absl::StatusOr<Verification> Make(const Profile& profile, const ConfigFilter& filter,
                                           const VerificationOptions& options);

  // The next measurement; none when all loads are judged.
  std::optional<VerificationCell> Next() const;
  // The result of that measurement. A p99 that is not a number counts as saturated. REQUIRES:
  // Next() has a value.
  void Tell(double p99_us, bool saturated);

  size_t done() const { return done_; }
  // Duels may be spared, and are confirmed only if lost.
  size_t left_at_most() const;
  std::span<const double> loads() const { return options_.loads; }
  // The rows of the loads judged so far, ascending.
  std::span<const VerificationRow> rows() const { return rows_; }
  // True if all loads are judged, none was lost, and at least one has a verdict other than kBeyond.
  bool passed() const;

 private:
  explicit Verification(Envelope envelope) : envelope_(std::move(envelope)) {}
  // The configs that the search measures at a load, the chosen one first.
  std::vector<Config> Candidates(double load_per_s) const;
  // The rounds of a confirmed duel.
  int MostRounds() const { return 2 * options_.duel_rounds + 1; }
  size_t ConfigAt(size_t slot) const;
  void BeginStage(VerificationStage stage, std::vector<Config> configs);
  void BeginLoad();
  void EndRound();
  void EndSearch();
  void EndLoad(VerificationVerdict verdict);
  // By the rounds of the duel so far; fills the row.
  VerificationVerdict Judge();

  // Immutable after Make().
  Envelope envelope_;
  VerificationOptions options_;
  uint64_t seed_ = 0;

  std::vector<VerificationRow> rows_;
  size_t done_ = 0;
  // The present load and stage. found_[config] has the p99 of each round, infinite where it was
  // saturated.
  VerificationRow row_;
  VerificationStage stage_ = VerificationStage::kSearch;
  std::vector<Config> configs_;
  std::vector<std::vector<double>> found_;
  int round_ = 0;
  size_t slot_ = 0;
};

// A line for each row under a line of titles, times in milliseconds.
std::string VerificationText(std::span<const VerificationRow> rows);

}  // namespace curtail
