// SPDX-License-Identifier: Apache-2.0
#include "apps/router/recall.h"

#include <algorithm>
#include <utility>

#include "apps/router/stripes.h"

namespace curtail::router {
namespace {

constexpr int kStripes = static_cast<int>(Stripes::kCount);

// True if each write that `one` may hold is at `other`, too, or was forgotten there.
bool Holds(const StoreHistory& other, const StoreHistory& one) {
  for (int stripe = 0; stripe < kStripes; ++stripe) {
    if (one.begun(stripe) > std::max({one.flushed(), other.done(stripe), other.flushed()})) return false;
  }
  return true;
}

struct NewestWrite {
  uint64_t version = 0;
  uint32_t members = ~uint32_t{0};
};

NewestWrite NewestOf(std::span<const StoreHistory* const> histories) {
  NewestWrite newest;
  for (const StoreHistory* history : histories) {
    const uint64_t begun = history == nullptr ? 0 : *std::ranges::max_element(history->begun());
    if (begun > newest.version) newest = {.version = begun, .members = history->members()};
  }
  return newest;
}

}  // namespace

bool IsWhole(const StoreHistory& history) {
  return history.begun_size() == kStripes && history.done_size() == kStripes;
}

std::vector<bool> MayTakePart(std::span<const StoreHistory* const> histories) {
  const NewestWrite newest = NewestOf(histories);
  // Those whose content can be relied on, or, if none of them answered, whoever there is.
  std::vector<size_t> candidates, others;
  for (size_t i = 0; i < histories.size(); ++i) {
    if (histories[i] == nullptr) continue;
    const bool member = (newest.members >> i & 1u) != 0;
    (member || histories[i]->flushed() > newest.version ? candidates : others).push_back(i);
  }
  if (candidates.empty()) candidates = std::move(others);
  std::ranges::sort(candidates, {}, [&](size_t i) { return std::pair(histories[i]->since(), i); });

  std::vector<bool> may(histories.size());
  for (const size_t i : candidates) {
    may[i] = true;
    for (size_t other = 0; other < histories.size(); ++other) {
      if (!may[other] || other == i) continue;
      if (!Holds(*histories[other], *histories[i]) || !Holds(*histories[i], *histories[other]))
        may[i] = false;
    }
  }
  return may;
}

}  // namespace curtail::router
