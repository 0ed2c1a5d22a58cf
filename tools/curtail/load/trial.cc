// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/load/trial.h"

#include "absl/strings/str_join.h"

namespace curtail::tool {

TrialOutcome JudgeTrial(const LoadResult& result, const std::vector<Threshold>& conditions,
                        std::string* why) {
  bool met = true, undecided = true;
  std::vector<std::string> parts;
  for (const Threshold& condition : conditions) {
    const ThresholdOutcome outcome = Evaluate(condition, result);
    parts.push_back(Describe(outcome));
    met &= outcome.met;
    undecided &= outcome.met || outcome.undecided;
  }
  *why = absl::StrJoin(parts, ", ");
  if (!met && !undecided) return TrialOutcome::kNotMet;
  if (result.valid()) return met ? TrialOutcome::kMet : TrialOutcome::kVoid;
  *why = result.invalid.front();
  return TrialOutcome::kVoid;
}

}  // namespace curtail::tool
