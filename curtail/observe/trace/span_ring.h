// SPDX-License-Identifier: Apache-2.0
//
// span_ring.h - a bounded queue from one thread that answers calls to the thread that exports.
//
// The protocol, for one producer and one consumer:
//
//  S1  One thread pushes: the one that claimed the ring. One thread pops: the exporter's, or, once all producers have
//      stopped, the thread that destroys the tracer.
//  S2  The producer writes a slot, then publishes it: tail_ (release). The consumer sees it by tail_ (acquire).
//  S3  The consumer reads a slot, then frees it: head_ (release). The producer writes it again only once it has seen that
//      (acquire). So no slot is read and written at a time.
//  S4  A push into a full ring fails, and the producer keeps its item. It never waits, and never takes items out.
//  S5  An item belongs to the ring from a push that succeeded, and to the consumer from its pop.
//  S6  A push that leaves the ring half full or fuller says so, and its producer rings the bell. The first to ring wakes
//      the consumer. That hears the bell before it looks into the rings, and pops until they are empty: so an item that
//      comes too late for it finds a bell that wakes the consumer again.
//
// tests/model checks all of it under every schedule; slots are atomic, relaxed, for its sake, which costs nothing.
// `Atom` is std::atomic, or a model checker's.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace curtail::observe {

template <class T, size_t kSize, template <class> class Atom = std::atomic>
class SpanRing {
 public:
  static_assert((kSize & (kSize - 1)) == 0, "a power of two");

  enum class Pushed : uint8_t { kFull, kFine, kHalfFull };

  // Producer only (S1).
  Pushed Push(T* item) {
    const uint32_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - seen_head_ == kSize) {
      seen_head_ = head_.load(std::memory_order_acquire);    // S3
      if (tail - seen_head_ == kSize) return Pushed::kFull;  // S4
    }
    slots_[tail % kSize].store(item, std::memory_order_relaxed);
    tail_.store(tail + 1, std::memory_order_release);  // S2
    if (tail + 1 - seen_head_ < kSize / 2) return Pushed::kFine;
    seen_head_ = head_.load(std::memory_order_acquire);
    return tail + 1 - seen_head_ >= kSize / 2 ? Pushed::kHalfFull : Pushed::kFine;  // S6
  }

  // Consumer only (S1). Null when there is none.
  T* Pop() {
    const uint32_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_.load(std::memory_order_acquire)) return nullptr;  // S2
    T* const item = slots_[head % kSize].load(std::memory_order_relaxed);
    head_.store(head + 1, std::memory_order_release);  // S3
    return item;
  }

 private:
  // Owned by the producer, but for tail_, which the consumer reads.
  alignas(64) Atom<uint32_t> tail_{0};
  uint32_t seen_head_ = 0;
  // Written by the consumer.
  alignas(64) Atom<uint32_t> head_{0};
  // By S2 and S3.
  std::array<Atom<T*>, kSize> slots_{};
};

// A SpanBell is what the producers of all rings wake their consumer with. Any thread.
template <template <class> class Atom = std::atomic>
class SpanBell {
 public:
  // True: the caller is to wake the consumer (S6).
  bool Ring() { return !rung_.exchange(true, std::memory_order_acq_rel); }
  // Consumer only, before it looks.
  void Hear() { rung_.exchange(false, std::memory_order_acq_rel); }

 private:
  Atom<bool> rung_{false};
};

}  // namespace curtail::observe
