// SPDX-License-Identifier: Apache-2.0
//
// request_places.h - the places of requests that a server has accepted and not yet begun; counts its open calls.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace curtail::internal {

// RequestPlaces refuses what exceeds the limits of the queue. Thread-safe; no method blocks.
class RequestPlaces {
 public:
  RequestPlaces(size_t max_requests, size_t max_bytes) : max_requests_(max_requests), max_bytes_(max_bytes) {}
  RequestPlaces(const RequestPlaces&) = delete;
  RequestPlaces& operator=(const RequestPlaces&) = delete;

  // Counts a request of `bytes` as queued; false when the queue is full, in number or in bytes. One request always
  // fits, however large. Left() gives its place back: see ServerCall::LeaveQueue().
  bool TryQueue(size_t bytes) {
    const size_t requests = queued_.fetch_add(1, std::memory_order_relaxed);
    const size_t queued = queued_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    if (requests < max_requests_ && (requests == 0 || queued + bytes <= max_bytes_)) return true;
    Left(bytes);
    return false;
  }
  void Left(size_t bytes) {
    queued_.fetch_sub(1, std::memory_order_relaxed);
    queued_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  }
  // A queued request will not run: gives its place back at once, although its task stays where it is. False: there are
  // too many such tasks, and it keeps its place. AbandonedGone() follows when the task's turn has come.
  bool TryAbandon(size_t bytes) {
    if (abandoned_.fetch_add(1, std::memory_order_relaxed) >= max_requests_) {
      AbandonedGone();
      return false;
    }
    Left(bytes);
    return true;
  }
  void AbandonedGone() { abandoned_.fetch_sub(1, std::memory_order_relaxed); }
  // Undoes it: the task's turn had come before.
  void NotAbandoned(size_t bytes) {
    AbandonedGone();
    queued_.fetch_add(1, std::memory_order_relaxed);
    queued_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  // The places that one connection may have: half as many as are free, so that newcomers find some however many
  // connections take their part. Of a short queue it may have all.
  size_t share() const {
    constexpr size_t kShort = 1024;
    if (max_requests_ <= kShort) return SIZE_MAX;
    return (max_requests_ - std::min(queued_.load(std::memory_order_relaxed), max_requests_)) / 2;
  }

  // A client began a call, or its stream ended.
  void CallOpened() { open_calls_.fetch_add(1, std::memory_order_relaxed); }
  void CallClosed() { open_calls_.fetch_sub(1, std::memory_order_relaxed); }
  size_t open_calls() const { return open_calls_.load(std::memory_order_relaxed); }

 private:
  // Immutable after construction.
  const size_t max_requests_;
  const size_t max_bytes_;

  // Atomic counters; they order nothing.
  std::atomic<size_t> queued_{0};
  std::atomic<size_t> queued_bytes_{0};
  std::atomic<size_t> open_calls_{0};
  std::atomic<size_t> abandoned_{0};
};

}  // namespace curtail::internal
