// SPDX-License-Identifier: Apache-2.0
//
// strand.h - lets many threads feed one connection while none waits for another.
//
// Whoever signals an idle strand becomes its holder and works; whoever signals a held one goes away at once,
// and the holder does that work too before it lets go. (Combining, as in flat combining, Hendler et al., SPAA
// 2010.)
//
// Thread safety: all methods from any thread, but Leave() only by the holder.
// Memory ordering: what happened before Enter() is visible to the holder that gets its bits; what a holder did is visible
// to the next.
#pragma once

#include <atomic>
#include <cstdint>

namespace curtail::internal {

class Strand {
 public:
  // Leaves `*bits` (not bit 31) for the holder. True: there was none, and the caller now holds the strand and must run
  //   do { work(bits); } while (!Leave(&bits));
  bool Enter(uint32_t* bits) {
    uint32_t idle = 0;
    if (state_.compare_exchange_strong(idle, kHeld, std::memory_order_acq_rel)) return true;
    if ((state_.fetch_or(*bits | kHeld, std::memory_order_acq_rel) & kHeld) != 0) return false;
    *bits = Take();
    return true;
  }
  // Lets go, unless new bits have come: these are in `*bits` then, and the caller still holds the strand.
  bool Leave(uint32_t* bits) {
    uint32_t held = kHeld;
    if (state_.compare_exchange_strong(held, 0, std::memory_order_acq_rel)) return true;
    *bits = Take();
    return false;
  }

 private:
  static constexpr uint32_t kHeld = 1u << 31;

  uint32_t Take() { return state_.exchange(kHeld, std::memory_order_acq_rel) & ~kHeld; }

  // Atomic: held bit and pending bits; zero while nobody holds it.
  std::atomic<uint32_t> state_{0};
};

}  // namespace curtail::internal
