// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/observe/service_share.h"

#include <algorithm>

namespace curtail::tool {

void ServiceShare::AddCounts(const OsCounts& before, const OsCounts& after, double seconds) {
  ++processes_;
  seconds_ = seconds;
  for (const auto& [name, count] : after.counts) {
    const auto begun = before.counts.find(name);
    if (begun == before.counts.end() || counts_.denied.contains(name)) continue;
    counts_.counts[name] += std::max(0.0, count - begun->second);
  }
  for (const auto& [name, why] : after.denied) {
    counts_.denied.emplace(name, why);
    counts_.counts.erase(name);
  }
}

void ServiceShare::AddRequests(std::optional<double> requests) {
  some_count_no_requests_ |= !requests;
  if (some_count_no_requests_) {
    requests_.reset();
  } else {
    requests_ = requests_.value_or(0) + *requests;
  }
}

void ServiceShare::AddWakeups(const Histogram& latencies, uint64_t events_lost) {
  if (counts_.denied.contains(kWakeupLatency)) return;
  wakeup_latency_.Merge(latencies);
  events_lost_ += events_lost;
}

void ServiceShare::DenyWakeups(const std::string& why) {
  counts_.denied.emplace(kWakeupLatency, why);
  wakeup_latency_ = Histogram();
  events_lost_ = 0;
}

}  // namespace curtail::tool
