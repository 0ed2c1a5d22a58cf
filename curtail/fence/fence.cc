// SPDX-License-Identifier: Apache-2.0
#include "curtail/fence/fence.h"

#include <algorithm>
#include <utility>

namespace curtail {
namespace {

constexpr std::pair<std::string_view, FenceMode> kModes[] = {{"off", FenceMode::kOff},
                                                             {"dry-run", FenceMode::kDryRun},
                                                             {"strict", FenceMode::kStrict},
                                                             {"on", FenceMode::kOn}};

}  // namespace

std::optional<FenceMode> ParseFenceMode(std::string_view text) {
  for (const auto& [name, mode] : kModes) {
    if (name == text) return mode;
  }
  return std::nullopt;
}

std::string_view FenceModeName(FenceMode mode) { return kModes[static_cast<size_t>(mode)].first; }

void Fence::EndTurn(State& state) const {
  const int64_t now = time_.Now().time_since_epoch().count();
  const int64_t took = now - state.turn_began.load(std::memory_order_relaxed);
  state.turn_took.store(std::max<int64_t>(took, 1), std::memory_order_release);
}

void Fence::SetLimit(uint8_t path_class, uint32_t limit) {
  states_[path_class].limit.store(limit, std::memory_order_relaxed);
  version_.fetch_add(1, std::memory_order_release);
}

void Fence::SetPresent(uint64_t classes) {
  present_.store(classes, std::memory_order_relaxed);
  version_.fetch_add(1, std::memory_order_release);
}

FenceClassStats Fence::Sample(uint8_t path_class) const {
  const State& state = states_[path_class];
  const auto read = [](const auto& counter) { return counter.load(std::memory_order_relaxed); };
  FenceClassStats stats{.limit = read(state.share), .waiting = read(state.waiting)};
  const uint64_t ended = read(state.ended);  // before `begun`, which is at least as many
  stats.begun = read(state.begun);
  if (path_class != kLocal && stats.begun > ended) stats.in_use = stats.begun - ended;
  stats.queued = read(state.queued);
  stats.refused = read(state.refused);
  stats.borrowed = read(state.borrowed);
  stats.shed = read(state.shed);
  return stats;
}

}  // namespace curtail
