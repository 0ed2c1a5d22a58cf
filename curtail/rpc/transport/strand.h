// SPDX-License-Identifier: Apache-2.0
//
// strand.h - lets many threads feed one connection while none waits for another.
//
// Whoever signals an idle strand becomes its holder and works; whoever signals a held one goes away at once,
// and the holder does that work too before it lets go. (Combining, as in flat combining, Hendler et al., SPAA
// 2010.)
//
// Thread safety: all methods from any thread, but Take() and Leave() only by the holder.
// Memory ordering: what happened before Enter(bits) is visible to the holder whose Take() returns those bits;
// what a holder did is visible to the next.
#pragma once

#include <atomic>
#include <cstdint>

namespace curtail::internal {

class Strand {
 public:
  // Leaves `bits` (not bit 31) for the holder. True: there was none, the caller now holds the strand and must
  // run
  //   do { work(Take()); } while (!Leave());
  bool Enter(uint32_t bits) {
    return (state_.fetch_or(bits | kHeld, std::memory_order_acq_rel) & kHeld) == 0;
  }
  // The bits left since the last Take().
  uint32_t Take() { return state_.exchange(kHeld, std::memory_order_acq_rel) & ~kHeld; }
  // Lets go, unless new bits have come: then the caller still holds the strand.
  bool Leave() {
    uint32_t expected = kHeld;
    return state_.compare_exchange_strong(expected, 0, std::memory_order_acq_rel);
  }

 private:
  static constexpr uint32_t kHeld = 1u << 31;
  // Atomic: held bit and pending bits.
  std::atomic<uint32_t> state_{0};
};

}  // namespace curtail::internal
