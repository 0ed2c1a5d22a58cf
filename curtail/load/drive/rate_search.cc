// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: the state is the votes of each rate; the next rate is a function of them alone. Rates below the lowest refused
// one are accepted, provisional (one success) or none, as every rate in question is tried until it is decided or
// provisional.
#include "curtail/load/drive/rate_search.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace curtail {
namespace {

std::string RateText(double per_s) {
  return per_s < 1000 ? absl::StrFormat("%.4g a second", per_s) : absl::StrFormat("%.0f a second", per_s);
}

}  // namespace

RateSearch::RateSearch(const RateSearchOptions& options) : options_(options), next_(options.start_per_s) {}

void RateSearch::Tell(TrialOutcome outcome) {
  const double rate = *next_;
  trials_.push_back({rate, outcome});
  Votes& votes = votes_[rate];
  ++(outcome == TrialOutcome::kMet      ? votes.met
     : outcome == TrialOutcome::kNotMet ? votes.not_met
                                        : votes.unusable);
  Choose();
  if (next_ && static_cast<int>(trials_.size()) >= options_.max_trials) Finish(End::kOutOfTrials);
}

void RateSearch::Choose() {
  const Votes& last = votes_.at(*next_);
  if (!last.decided() && !last.provisional()) return;  // once more
  const auto high = LowestRefused();
  if (high == votes_.begin()) return ChooseBelow(high->first);
  // Everything below the lowest refused rate has been met at least once.
  const auto low = std::prev(high);
  if (high == votes_.end()) return ChooseAbove(low->first, low->second);
  if (!low->second.accepted()) {
    next_ = low->first;
  } else if (high->first <= low->first * (1 + options_.tolerance)) {
    Finish(generator_refused() ? End::kGeneratorLimit : End::kConverged);
  } else {
    next_ = std::sqrt(low->first * high->first);
  }
}

void RateSearch::ChooseAbove(double low, const Votes& votes) {
  if (low < options_.highest_per_s) {
    next_ = std::min(low * options_.growth, options_.highest_per_s);
  } else if (votes.accepted()) {
    Finish(End::kHighestAccepted);
  } else {
    next_ = low;
  }
}

void RateSearch::ChooseBelow(double high) {
  if (high <= options_.lowest_per_s) return Finish(End::kNothingAccepted);
  next_ = std::max(high / 2, options_.lowest_per_s);
}

void RateSearch::Finish(End end) {
  end_ = end;
  next_.reset();
}

std::map<double, RateSearch::Votes>::const_iterator RateSearch::LowestRefused() const {
  return std::find_if(votes_.begin(), votes_.end(), [](const auto& entry) { return entry.second.refused(); });
}

std::optional<double> RateSearch::highest() const {
  std::optional<double> highest;
  for (auto it = votes_.begin(); it != LowestRefused(); ++it) {
    if (it->second.accepted()) highest = it->first;
  }
  return highest;
}

std::optional<double> RateSearch::refused() const {
  const auto high = LowestRefused();
  if (high == votes_.end()) return std::nullopt;
  return high->first;
}

bool RateSearch::generator_refused() const {
  const auto high = LowestRefused();
  return high != votes_.end() && high->second.not_met < 2;
}

int RateSearch::disagreements() const {
  return static_cast<int>(std::count_if(votes_.begin(), votes_.end(), [](const auto& entry) {
    return entry.second.met > 0 && entry.second.not_met > 0;
  }));
}

std::string RateSearch::Describe() const {
  const std::optional<double> found = highest();
  std::string text = found ? RateText(*found) : "no rate is confirmed";
  const double above = refused().value_or(0);
  switch (end_) {
    case End::kRunning:
      text += " so far";
      break;
    case End::kConverged:
      absl::StrAppend(&text, "; ", RateText(above), " does not meet the condition");
      break;
    case End::kGeneratorLimit:
      absl::StrAppend(&text, "; nothing is known above it: runs at ", RateText(above),
                      " are void, which is not the server's fault");
      break;
    case End::kHighestAccepted:
      text += "; this is the highest rate that was to be tried";
      break;
    case End::kNothingAccepted: {
      const std::string rate = RateText(above);
      absl::StrAppend(
          &text, !generator_refused()
                     ? absl::StrCat("; not even ", rate, " meets the condition")
                     : absl::StrCat("; even at ", rate, " runs are void, which is not the server's fault"));
      break;
    }
    case End::kOutOfTrials:
      absl::StrAppendFormat(&text, "; stopped after %d trials", trials_.size());
      if (above > 0) absl::StrAppend(&text, ", with ", RateText(above), " refused");
      break;
  }
  if (const int n = disagreements(); n > 0) {
    absl::StrAppendFormat(&text, " (trials disagreed at %d rate%s)", n, n == 1 ? "" : "s");
  }
  return text;
}

}  // namespace curtail
