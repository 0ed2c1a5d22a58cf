// SPDX-License-Identifier: Apache-2.0
//
// occupancy.h - the time integral of a count, in one atomic addition for each change.
//
// Times are ticks of the caller's, since a moment of its choice.
//
// Protocol:
//  P1  The word is N * kUnit + S. N requests are in. S is the sum of the times at which requests
//      left, less the sum of those at which they came. Come() adds kUnit - t, and Leave() adds
//      t - kUnit, so one read sees both parts as they were at one moment.
//  P2  The integral at time t is S + N * t, so word = N * (kUnit - t) + integral. The integral has
//      grown little since the last reading, compared with kUnit - t. So the quotient is N, and the
//      rest the growth.
//  P3  A thread may bring a time that is a little older or newer than the reader's. Then the
//      integral seems to shrink; kSlack keeps the quotient right.
#pragma once

#include <atomic>
#include <cstdint>

namespace curtail {

// An Occupancy sums how long requests were in. Come() and Leave() from any thread, and never block;
// Read() from one thread at a time. REQUIRES: fewer than 2^15 requests are in, and times are below
// 2^46.
class Occupancy {
 public:
  // Relaxed: each word is whole in itself.
  void Come(uint64_t now) { word_.fetch_add(kUnit - now, std::memory_order_relaxed); }
  void Leave(uint64_t now) { word_.fetch_add(now - kUnit, std::memory_order_relaxed); }

  // Adds up since the last Read(): requests times ticks. Divided by the interval, the mean count.
  uint64_t Read(uint64_t now) {
    const uint64_t word = word_.load(std::memory_order_relaxed);
    const uint64_t each = kUnit - now;
    const uint64_t in = (word - integral_ + kSlack) / each;
    const uint64_t integral = word - in * each;
    const auto grown = static_cast<int64_t>(integral - integral_);
    if (grown <= 0) return 0;  // P3: the next reading has it
    integral_ = integral;
    return static_cast<uint64_t>(grown);
  }

 private:
  static constexpr uint64_t kUnit = uint64_t{1} << 48;
  static constexpr uint64_t kSlack = uint64_t{1} << 40;

  // Atomic: see P1.
  std::atomic<uint64_t> word_{0};
  uint64_t integral_ = 0;  // owned by the reader
};

}  // namespace curtail
