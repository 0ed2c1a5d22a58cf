// SPDX-License-Identifier: Apache-2.0
//
// places.h - a bound of how much of something goes on at once.
#pragma once

#include <atomic>

namespace curtail::social {

// A Places has so many places. A request that finds none goes away instead of waiting. Thread-safe.
class Places {
 public:
  // A Hold has a place, or not, until its end.
  class Hold {
   public:
    explicit Hold(Places& places)
        : places_(places), has_(places.held_.fetch_add(1, std::memory_order_relaxed) < places.most_) {}
    ~Hold() { places_.held_.fetch_sub(1, std::memory_order_relaxed); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

    explicit operator bool() const { return has_; }

   private:
    Places& places_;
    const bool has_;
  };

  explicit Places(int most) : most_(most) {}

 private:
  const int most_;
  // Atomic; relaxed, a count.
  std::atomic<int> held_{0};
};

}  // namespace curtail::social
