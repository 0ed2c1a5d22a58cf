// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/server/parts/limit_counters.h"

#include <chrono>

#include "curtail/base/log.h"
#include "curtail/base/strings.h"

namespace curtail::internal {
namespace {

constexpr Nanos kBetweenLines = std::chrono::seconds(10);

std::string_view NameOf(size_t limit) {
  constexpr std::array<std::string_view, kAllLimits - wire::kLimits> kNames = {
      "handshake time",    "header time", "stalled write", "idle time",   "deadline",
      "held bytes in all", "parsed size", "queue",         "queue share", "connections",
      "descriptors",       "priority",    "refused"};
  if (limit < wire::kLimits) return wire::LimitName(static_cast<wire::Limit>(limit));
  return kNames[limit - wire::kLimits];
}

}  // namespace

void LimitCounters::Count(size_t limit, std::string_view peer) {
  Counter& counter = counters_[limit];
  const uint64_t times = counter.times.fetch_add(1, std::memory_order_relaxed) + 1;
  const int64_t now = Nanos(Now().time_since_epoch()).count();
  int64_t told = counter.told.load(std::memory_order_relaxed);
  if (told != 0 && now - told < kBetweenLines.count()) return;
  if (!counter.told.compare_exchange_strong(told, now, std::memory_order_relaxed)) return;
  Log(Severity::kWarning,
      Join("a client has reached the limit of ", NameOf(limit), ": ", peer, "; ", times, " so far"),
      {{"limit", NameOf(limit)}, {"peer", peer}, {"times", times}});
}

std::vector<LimitCount> LimitCounters::Sample() const {
  std::vector<LimitCount> reached;
  for (size_t i = 0; i < kAllLimits; ++i) {
    const uint64_t times = counters_[i].times.load(std::memory_order_relaxed);
    if (times > 0) reached.push_back({std::string(NameOf(i)), times});
  }
  return reached;
}

}  // namespace curtail::internal
