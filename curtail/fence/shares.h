// SPDX-License-Identifier: Apache-2.0
//
// shares.h - kStrict: how the permits of a server are divided among its path classes.
//
// Thread safety: none of its own. The executor's mutex guards every call.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "curtail/fence/fence.h"

namespace curtail {

// The permits of all blocking classes where `runners` requests can run at once: all but the
// reserve, a tenth and at least one. At least one, whatever `runners` is.
uint32_t PermitsOf(uint32_t runners);

// Divides `total` among claims: each gets its claim if the sum fits; else the largest claims are
// cut to one level, give or take one. Each gets at least one, even if the sum then exceeds `total`.
// REQUIRES: at most Fence::kMaxClasses.
void FitClaims(std::span<uint32_t> claims, uint32_t total);

// A FenceShares is each class's part of the permits: equal ones, or the limits of its Fence.
class FenceShares {
 public:
  explicit FenceShares(Fence* fence);

  // Order::SetThreads().
  void SetThreads(uint32_t threads);
  // Takes new limits into account.
  void Refresh() {
    const uint32_t version = fence_.version_.load(std::memory_order_acquire);
    if (version != version_) Divide(version);
  }

  uint32_t share(uint8_t path_class) const { return shares_[path_class]; }
  uint32_t permits() const { return permits_; }

  // FencedOrder asks these of permits (lending.h has the contracts).
  static constexpr bool kLends = false;
  static uint32_t Beside(uint32_t /*threads*/) { return 0; }
  bool Take(uint8_t path_class, TimePoint /*now*/) const {  // F3
    return fence_.InUse(path_class) < shares_[path_class];
  }
  bool TakeOwn(uint8_t path_class, TimePoint now) const { return Take(path_class, now); }
  void Waits(uint8_t /*path_class*/, size_t /*waiting*/) {}
  static constexpr Nanos kStands{0};

 private:
  void Divide(uint32_t version);

  Fence& fence_;
  uint32_t version_ = 0;  // of the limits at the last Divide()
  uint32_t permits_ = 1;
  std::array<uint32_t, Fence::kMaxClasses> shares_;
};

}  // namespace curtail
