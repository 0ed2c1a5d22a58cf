// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/provision/tier_load.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_format.h"

namespace curtail::tool {
namespace {

bool Has(const std::vector<Lever>& levers, Lever lever) {
  return std::find(levers.begin(), levers.end(), lever) != levers.end();
}

std::optional<Saturation> SaturationOf(const TierLoad& tier, const std::vector<Lever>& levers) {
  if (Has(levers, Lever::kCpu) && tier.throttled >= kSaturatedThrottled) {
    return Saturation{tier.name, Lever::kCpu, tier.throttled,
                      absl::StrFormat("out of CPU time in %.0f %% of periods", 100 * tier.throttled)};
  }
  if (Has(levers, Lever::kThreads) && tier.wait_share >= kSaturatedWait) {
    return Saturation{tier.name, Lever::kThreads, tier.wait_share,
                      absl::StrFormat("calls wait %.2f ms for a thread, %.0f %% of their time",
                                      1e3 * tier.queue_wait_s, 100 * tier.wait_share)};
  }
  return std::nullopt;
}

// All that `tier` calls, and that these call; not itself, even if it is called by them.
std::set<std::string> Reached(const std::string& tier, const TierCalls& calls) {
  std::set<std::string> reached;
  std::vector<std::string> due = {tier};
  while (!due.empty()) {
    const auto found = calls.find(due.back());
    due.pop_back();
    if (found == calls.end()) continue;
    for (const std::string& callee : found->second) {
      if (callee != tier && reached.insert(callee).second) due.push_back(callee);
    }
  }
  return reached;
}

}  // namespace

std::vector<TierLoad> TierLoads(const ApplicationVitals& before, const ApplicationVitals& now,
                                const std::map<std::string, double>& throttled) {
  std::vector<TierLoad> loads;
  for (const ServiceVitals& service : Compare(before, now)) {
    TierLoad& load = loads.emplace_back();
    load.name = service.name;
    load.cpus = service.cpus.value_or(0);
    if (const auto found = throttled.find(service.name); found != throttled.end())
      load.throttled = found->second;
    load.queue_wait_s = service.queue_wait_s.value_or(0);
    if (service.mean_s.value_or(0) > 0) load.wait_share = std::min(1.0, load.queue_wait_s / *service.mean_s);
  }
  return loads;
}

const char* NameOf(Lever lever) { return lever == Lever::kCpu ? "cpu" : "threads"; }

std::vector<Saturation> SaturatedTiers(const std::vector<TierLoad>& tiers, const TierCalls& calls,
                                       const std::vector<Lever>& levers) {
  std::vector<Saturation> found;
  std::set<std::string> names;
  for (const TierLoad& tier : tiers) {
    if (std::optional<Saturation> saturated = SaturationOf(tier, levers)) {
      names.insert(tier.name);
      found.push_back(*std::move(saturated));
    }
  }
  std::set<std::string> waits;
  for (const Saturation& of : found) {
    if (of.lever == Lever::kCpu) continue;
    const std::set<std::string> reached = Reached(of.tier, calls);
    if (std::any_of(reached.begin(), reached.end(), [&](const auto& tier) { return names.count(tier) > 0; }))
      waits.insert(of.tier);
  }
  std::sort(found.begin(), found.end(), [&](const Saturation& a, const Saturation& b) {
    const bool a_waits = waits.count(a.tier) > 0, b_waits = waits.count(b.tier) > 0;
    return std::tie(a_waits, b.share, a.tier) < std::tie(b_waits, a.share, b.tier);
  });
  return found;
}

}  // namespace curtail::tool
