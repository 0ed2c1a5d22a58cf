// SPDX-License-Identifier: Apache-2.0
//
// top_k.h - keeps the k nearest of a stream of neighbours.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace curtail::hdsearch {

// An image and its squared distance to the query. Ordered by distance, equal distances by id, so that every
// tier and the brute-force answer agree on ties.
struct Neighbor {
  float distance = 0;
  uint32_t id = 0;
  friend bool operator==(const Neighbor&, const Neighbor&) = default;
  friend bool operator<(const Neighbor& a, const Neighbor& b) {
    return a.distance != b.distance ? a.distance < b.distance : a.id < b.id;
  }
};

// A TopK holds at most k neighbours, as a heap whose top is the worst of them. Thread-compatible.
class TopK {
 public:
  explicit TopK(size_t k) : k_(k) {}

  void Add(Neighbor n) {
    if (heap_.size() < k_) {
      heap_.push_back(n);
      std::push_heap(heap_.begin(), heap_.end());
    } else if (k_ > 0 && n < heap_.front()) {
      std::pop_heap(heap_.begin(), heap_.end());
      heap_.back() = n;
      std::push_heap(heap_.begin(), heap_.end());
    }
  }

  // Nearest first; leaves the TopK empty.
  std::vector<Neighbor> TakeSorted() {
    std::sort_heap(heap_.begin(), heap_.end());
    return std::move(heap_);
  }

 private:
  const size_t k_;
  std::vector<Neighbor> heap_;
};

}  // namespace curtail::hdsearch
