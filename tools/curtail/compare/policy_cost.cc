// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/compare/policy_cost.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/curtail/compare/policy_judge.h"
#include "tools/curtail/compare/policy_summary.h"

namespace curtail::tool {
namespace {

bool RanEverywhere(const PolicyComparison& c, size_t policy) {
  if (c.scenarios.empty()) return false;
  for (size_t s = 0; s < c.scenarios.size(); ++s) {
    if (ValidRuns(c, s, policy).empty()) return false;
  }
  return true;
}

// The medians of the policy in all cells; 0 where it has none.
std::vector<double> Medians(const PolicyComparison& c, size_t policy) {
  std::vector<double> medians;
  for (size_t s = 0; s < c.scenarios.size(); ++s) {
    for (size_t p = 0; p < c.scenarios[s].phases.size(); ++p) {
      const std::optional<RoundSpread> p99 = P99Us(c, s, policy, p);
      medians.push_back(p99 ? p99->median : 0);
    }
  }
  return medians;
}

double CpuSeconds(const PolicyComparison& c, size_t policy) {
  double sum = 0;
  for (size_t s = 0; s < c.scenarios.size(); ++s) {
    const std::optional<RoundSpread> cpu = SpreadOver(ValidRuns(c, s, policy), [](const PolicyRun& run) {
      return std::optional(InSeconds(run.server_cpu));
    });
    if (cpu) sum += cpu->median;
  }
  return sum;
}

void MarkFront(std::vector<std::optional<PolicyCost>>& costs) {
  for (std::optional<PolicyCost>& cost : costs) {
    if (!cost) continue;
    cost->on_front = std::none_of(costs.begin(), costs.end(), [&](const std::optional<PolicyCost>& other) {
      return other && other->p99_us <= cost->p99_us && other->cpu_s <= cost->cpu_s &&
             (other->p99_us < cost->p99_us || other->cpu_s < cost->cpu_s);
    });
  }
}

}  // namespace

namespace {

// Policies that had the same config in force are one, "mutune = static:auto": the difference between them is chance.
struct Merged {
  PolicyComparison comparison;
  std::vector<size_t> of;  // the policy of it that each one given has become
};

Merged MergeSame(const PolicyComparison& c) {
  Merged merged{.comparison = c, .of = {}};
  std::vector<std::string>& names = merged.comparison.policies;
  names.clear();
  std::vector<size_t> first;  // of those that each is made of
  for (size_t policy = 0; policy < c.policies.size(); ++policy) {
    const auto same = std::ranges::find_if(first, [&](size_t other) {
      return JudgePair(c, policy, other).overall.finding == Finding::kSameConfig;
    });
    merged.of.push_back(static_cast<size_t>(same - first.begin()));
    if (same == first.end()) {
      first.push_back(policy);
      names.push_back(c.policies[policy]);
    } else {
      absl::StrAppend(&names[merged.of.back()], " = ", c.policies[policy]);
    }
  }
  for (PolicyRun& run : merged.comparison.runs) {
    const auto policy = std::ranges::find(c.policies, run.policy);
    if (policy != c.policies.end())
      run.policy = names[merged.of[static_cast<size_t>(policy - c.policies.begin())]];
  }
  return merged;
}

std::vector<std::optional<PolicyCost>> CostsOfEach(const PolicyComparison& c) {
  std::vector<std::optional<PolicyCost>> costs(c.policies.size());
  std::vector<std::vector<double>> medians(c.policies.size());
  for (size_t policy = 0; policy < c.policies.size(); ++policy) {
    if (RanEverywhere(c, policy)) medians[policy] = Medians(c, policy);
  }
  const auto has = [&](size_t cell) {
    return std::all_of(medians.begin(), medians.end(),
                       [&](const std::vector<double>& of) { return of.empty() || of[cell] > 0; });
  };
  for (size_t policy = 0; policy < c.policies.size(); ++policy) {
    double logs = 0, cells = 0;
    for (size_t cell = 0; cell < medians[policy].size(); ++cell) {
      if (!has(cell)) continue;
      logs += std::log(medians[policy][cell]);
      ++cells;
    }
    if (cells > 0) costs[policy] = PolicyCost{std::exp(logs / cells), CpuSeconds(c, policy)};
  }
  MarkFront(costs);
  return costs;
}

}  // namespace

std::vector<std::optional<PolicyCost>> CostsOf(const PolicyComparison& given) {
  const Merged merged = MergeSame(given);
  const std::vector<std::optional<PolicyCost>> costs = CostsOfEach(merged.comparison);
  std::vector<std::optional<PolicyCost>> all;
  for (const size_t policy : merged.of) all.push_back(costs[policy]);
  return all;
}

std::string FrontText(const PolicyComparison& given) {
  const PolicyComparison c = MergeSame(given).comparison;
  const std::vector<std::optional<PolicyCost>> costs = CostsOfEach(c);
  std::vector<std::string> front;
  size_t known = 0;
  for (size_t policy = 0; policy < costs.size(); ++policy) {
    if (!costs[policy]) continue;
    ++known;
    if (!costs[policy]->on_front) continue;
    front.push_back(absl::StrFormat("%s (%s ms, %.3g s)", c.policies[policy],
                                    MsText(std::min(costs[policy]->p99_us, 999'000.0)),
                                    costs[policy]->cpu_s));
  }
  if (known < 2) return {};
  return absl::StrCat("By the medians, no other policy has both a lower p99 and less CPU than ",
                      absl::StrJoin(front, ", "), ".");
}

std::string ReachText(const PolicyComparison& given) {
  const PolicyComparison c = MergeSame(given).comparison;
  const std::vector<std::optional<PolicyCost>> costs = CostsOfEach(c);
  double lowest_us = INFINITY;
  for (const std::optional<PolicyCost>& cost : costs) {
    if (cost) lowest_us = std::min(lowest_us, cost->p99_us);
  }
  const auto there = [&](size_t policy) {
    return costs[policy] && costs[policy]->p99_us <= lowest_us * kLevelFactor;
  };
  std::optional<size_t> cheapest;
  for (size_t policy = 0; policy < costs.size(); ++policy) {
    if (there(policy) && (!cheapest || costs[policy]->cpu_s < costs[*cheapest]->cpu_s)) cheapest = policy;
  }
  std::vector<std::string> others, behind;
  for (size_t policy = 0; policy < costs.size(); ++policy) {
    if (!costs[policy] || policy == *cheapest) continue;
    const std::string times = RatioText(costs[policy]->cpu_s / std::max(costs[*cheapest]->cpu_s, 1e-9));
    if (there(policy)) {
      others.push_back(absl::StrCat(c.policies[policy], " takes ", times, " times its CPU"));
    } else {
      behind.push_back(absl::StrCat(c.policies[policy], " (", RatioText(costs[policy]->p99_us / lowest_us),
                                    " times the lowest p99, ", times, " times the CPU)"));
    }
  }
  if (others.empty() && behind.empty()) return {};
  std::string text =
      absl::StrFormat("Within 10 %% of the lowest p99 (%s ms) %s is the cheapest (%.3g s of CPU)",
                      MsText(std::min(lowest_us, 999'000.0)), c.policies[*cheapest], costs[*cheapest]->cpu_s);
  if (!others.empty()) absl::StrAppend(&text, "; ", absl::StrJoin(others, ", "));
  if (!behind.empty()) absl::StrAppend(&text, ". Not there: ", absl::StrJoin(behind, ", "));
  return text + ".";
}

}  // namespace curtail::tool
