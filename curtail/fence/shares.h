// SPDX-License-Identifier: Apache-2.0
//
// shares.h - how the permits of a server are divided among its path classes.
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

// A FenceShares is each class's part of the permits, and decides which class may begin another
// request. It follows the limits of its Fence.
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
  // True if the class may begin a request with a permit of its own (rule F3).
  bool HasOwn(uint8_t path_class) const {
    const uint64_t in_use = fence_.InUse(path_class);
    if (in_use < floors_[path_class]) [[likely]]
      return true;
    return in_use < shares_[path_class] && Committed() < permits_;
  }
  // True if any class may begin a request with a permit that none needs. For kBorrow only.
  bool HasIdle() const { return borrow_ && Committed() < permits_; }
  // True if the next request of the class borrows its permit.
  bool Borrows(uint8_t path_class) const { return fence_.InUse(path_class) >= shares_[path_class]; }

 private:
  void Divide(uint32_t version);
  // The permits in use, and permits that are kept for their classes.
  uint64_t Committed() const;

  Fence& fence_;
  const bool borrow_;
  uint32_t version_ = 0;  // of the limits at the last Divide()
  uint32_t permits_ = 1;
  uint64_t present_ = 0;
  uint64_t known_ = 0;  // classes that have been present, as bits
  std::array<uint32_t, Fence::kMaxClasses> shares_;
  // The part of its share that a class never lends: strict, all of it.
  std::array<uint32_t, Fence::kMaxClasses> floors_;
};

}  // namespace curtail
