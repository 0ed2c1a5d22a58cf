// SPDX-License-Identifier: Apache-2.0
//
// rate_search.h - finds the highest rate at which a condition holds, by trials that may go wrong.
//
// Use it as: while (auto rate = search.Next()) search.Tell(Try(*rate)). Pure and deterministic: no
// clock, no randomness.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace curtail {

enum class TrialOutcome {
  kMet,
  kNotMet,
  kVoid,  // the generator measured itself; says nothing about the server
};

struct RateTrial {
  double rate_per_s;
  TrialOutcome outcome;
};

struct RateSearchOptions {
  double start_per_s = 100;
  double lowest_per_s = 1;  // the search gives up below it
  double highest_per_s = 1e6;
  // Ends when the lowest refused rate is at most this share above the accepted one
  double tolerance = 0.05;
  int max_trials = 60;
  // From a rate that meets the condition to the next, as long as none has failed. REQUIRES: > 1
  double growth = 2;
};

// A RateSearch doubles the rate, or multiplies it by `growth`, until the condition fails. Then it
// halves, geometrically, the gap between the highest rate that met the condition and the lowest
// that did not.
//
// Two trials decide a rate, the third if those disagree, so that one hiccup of server or network
// does not mislead. While doubling, one success is enough to go on; the last such rate is confirmed
// later. If that fails, the search goes down from there.
//
// A void trial is repeated twice. After a third void trial the rate counts as refused by the
// generator, which was too slow or disturbed, and end() reports that. Rates are assumed to be
// monotonic: no rate above a refused rate is tried again. Thread-compatible.
class RateSearch {
 public:
  enum class End {
    kRunning,
    kConverged,        // the server's limit is found
    kGeneratorLimit,   // void trials end it; the server's limit is not below the highest rate
    kHighestAccepted,  // highest_per_s meets the condition
    kNothingAccepted,  // no rate down to lowest_per_s meets the condition
    kOutOfTrials,
  };

  // REQUIRES: 0 < lowest <= start <= highest; tolerance > 0; max_trials > 0.
  explicit RateSearch(const RateSearchOptions& options);

  // The rate to try now, the same until Tell(); absent at the end.
  std::optional<double> Next() const { return next_; }
  // The outcome of a trial at Next(). REQUIRES: the search has not ended.
  void Tell(TrialOutcome outcome);

  End end() const { return end_; }
  // The highest rate that two trials confirmed; absent if there is none.
  std::optional<double> highest() const;
  // The lowest rate that was refused, by the server or the generator.
  std::optional<double> refused() const;
  // True if void trials alone refused the lowest refused rate.
  bool generator_refused() const;
  // Rates at which trials disagreed. A high number means that trials are too short, or the machine
  // is not quiet.
  int disagreements() const;
  const std::vector<RateTrial>& trials() const { return trials_; }

  // One line: the rate, and the reason for the end of the search.
  std::string Describe() const;

 private:
  struct Votes {
    int met = 0;
    int not_met = 0;
    int unusable = 0;

    bool accepted() const { return met >= 2; }
    bool refused() const { return not_met >= 2 || unusable >= 3; }
    bool provisional() const { return met == 1 && not_met == 0; }
    bool decided() const { return accepted() || refused(); }
  };

  void Choose();
  void ChooseAbove(double low, const Votes& votes);
  void ChooseBelow(double high);
  void Finish(End end);
  std::map<double, Votes>::const_iterator LowestRefused() const;

  const RateSearchOptions options_;
  std::map<double, Votes> votes_;
  std::vector<RateTrial> trials_;
  std::optional<double> next_;
  End end_ = End::kRunning;
};

}  // namespace curtail
