// SPDX-License-Identifier: Apache-2.0
#include "curtail/fence/shares.h"

#include <algorithm>
#include <bit>

namespace curtail {
uint32_t PermitsOf(uint32_t runners) {
  const uint32_t reserve = std::max<uint32_t>(1, (runners + 9) / 10);
  return runners > reserve ? runners - reserve : 1;
}

void FitClaims(std::span<uint32_t> claims, uint32_t total) {
  std::array<uint32_t, Fence::kMaxClasses> rising;
  std::copy(claims.begin(), claims.end(), rising.begin());
  std::sort(rising.begin(), rising.begin() + claims.size());
  uint32_t left = total;
  uint32_t level = UINT32_MAX;
  uint32_t spare = 0;
  for (size_t i = 0; i < claims.size(); ++i) {
    const auto others = static_cast<uint32_t>(claims.size() - i);
    if (rising[i] > left / others) {
      level = left / others;
      spare = left % others;
      break;
    }
    left -= rising[i];
  }
  for (uint32_t& claim : claims) {
    if (claim > level) claim = level + (spare > 0 ? (--spare, 1) : 0);
    claim = std::max<uint32_t>(claim, 1);
  }
}

FenceShares::FenceShares(Fence* fence) : fence_(*fence) {
  // A class that no method has any more may have tasks that wait, and runs them one by one.
  shares_.fill(1);
  SetThreads(0);
}

void FenceShares::SetThreads(uint32_t threads) {
  permits_ = PermitsOf(threads == 0 ? std::max<uint32_t>(1, fence_.options().permits) : threads);
  fence_.permits_.store(permits_, std::memory_order_relaxed);
  Divide(fence_.version_.load(std::memory_order_acquire));
}

void FenceShares::Divide(uint32_t version) {
  version_ = version;
  const uint64_t present = fence_.present_.load(std::memory_order_relaxed) & ~Fence::Bit(Fence::kLocal);
  std::array<uint32_t, Fence::kMaxClasses> claims;
  size_t count = 0;
  for (uint64_t left = present; left != 0; left &= left - 1) {
    const auto path_class = static_cast<uint8_t>(std::countr_zero(left));
    const uint32_t limit = fence_.states_[path_class].limit.load(std::memory_order_relaxed);
    const bool small = path_class == Fence::kUnknown && limit == Fence::kNoLimit;
    claims[count++] = std::min(limit, small ? std::max<uint32_t>(1, permits_ / 4) : permits_);
  }
  FitClaims({claims.data(), count}, permits_);
  shares_.fill(1);
  count = 0;
  for (uint8_t path_class = 0; path_class < Fence::kMaxClasses; ++path_class) {
    const bool is_present = (present & Fence::Bit(path_class)) != 0;
    if (is_present) shares_[path_class] = claims[count++];
    fence_.states_[path_class].share.store(is_present ? shares_[path_class] : 0, std::memory_order_relaxed);
  }
}

}  // namespace curtail
