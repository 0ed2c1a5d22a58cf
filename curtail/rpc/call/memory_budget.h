// SPDX-License-Identifier: Apache-2.0
//
// memory_budget.h - the bytes that a server holds for all its clients together.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

namespace curtail::internal {

// A MemoryBudget sums up what connections say they hold: requests, unfinished messages, header fields, replies that
// clients have not taken. It refuses nothing by itself. Thread-safe; no method blocks.
class MemoryBudget {
 public:
  // Connections that hold no more than their share go on when the budget is exceeded: so much, or an equal part of the
  // budget where there are many.
  static constexpr size_t kShare = 256u << 10;

  explicit MemoryBudget(size_t most) : most_(static_cast<int64_t>(most)) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  // Before connections use it: `rose` is called when the sum comes to exceed the budget or kMuch.
  void OnRise(std::function<void()> rose) { rose_ = std::move(rose); }

  void Add(int64_t bytes) {
    const int64_t before = held_.fetch_add(bytes, std::memory_order_relaxed);
    if (bytes > 0 && (Crosses(before, bytes, most_) || Crosses(before, bytes, kMuch))) rose_();
  }
  int64_t held() const { return held_.load(std::memory_order_relaxed); }
  bool over() const { return held() > most_; }
  size_t share() const {
    const int64_t all = std::max<int64_t>(1, connections_.load(std::memory_order_relaxed));
    return std::min(kShare, static_cast<size_t>(most_ / all));
  }
  // A connection has come, or gone.
  void AddConnections(int change) { connections_.fetch_add(change, std::memory_order_relaxed); }
  // The bytes that one message more may take: half of what is left.
  size_t room() const { return static_cast<size_t>(std::max<int64_t>(most_ - held(), 0)) / 2; }
  // The bytes that have to go so that an eighth of the budget is free again.
  int64_t excess() const { return held() - most_ / 8 * 7; }

  // Once so much was held, free memory goes back to the system when it is held no more.
  static constexpr int64_t kMuch = 64 << 20;

 private:
  static bool Crosses(int64_t before, int64_t bytes, int64_t line) {
    return before <= line && before + bytes > line;
  }

  // Immutable once there are connections.
  const int64_t most_;
  std::function<void()> rose_ = [] {};

  // Atomic: counters; they order nothing.
  std::atomic<int64_t> held_{0};
  std::atomic<int64_t> connections_{0};
};

// The messages of one connection, as they are parsed. Thread-safe.
class ParsedCharge {
 public:
  // A message may consist of one object for each so many bytes of the longest one: a quarter of a million by default.
  static constexpr size_t kBytesOfObject = 128;
  // The messages of a connection have so many, and two for each byte that came: only compression makes more of it.
  static constexpr uint64_t kFreeObjects = 16u << 10;

  ParsedCharge(MemoryBudget& budget, size_t max_message_bytes)
      : budget_(budget), most_objects_(max_message_bytes / kBytesOfObject) {}

  MemoryBudget& budget() { return budget_; }
  // By the connection: so many bytes have come in all.
  void Received(uint64_t bytes) { received_.store(bytes, std::memory_order_relaxed); }
  // The objects that the next message may consist of.
  size_t room() const {
    const uint64_t most = kFreeObjects + 2 * received_.load(std::memory_order_relaxed);
    return std::min(most_objects_, most - std::min(most, objects_.load(std::memory_order_relaxed)));
  }
  // A message takes so much.
  void Add(uint64_t bytes, uint64_t objects) {
    objects_.fetch_add(objects, std::memory_order_relaxed);
    grown_.fetch_add(bytes, std::memory_order_relaxed);
  }
  // A message of so many bytes is refused: parsed, it would take too much.
  void Refuse(uint64_t bytes) {
    refusals_.fetch_add(1, std::memory_order_relaxed);
    Add(bytes, 0);
  }
  // By the connection: whether messages took memory since it last asked, and how much.
  bool grew() const { return grown_.load(std::memory_order_relaxed) > 0; }
  uint64_t TakeGrown() { return grown_.exchange(0, std::memory_order_relaxed); }
  uint64_t TakeRefusals() { return refusals_.exchange(0, std::memory_order_relaxed); }

 private:
  MemoryBudget& budget_;
  const size_t most_objects_;

  // Atomic, relaxed: counters.
  std::atomic<uint64_t> received_{0};
  std::atomic<uint64_t> objects_{0};
  std::atomic<uint64_t> grown_{0};
  std::atomic<uint64_t> refusals_{0};
};

}  // namespace curtail::internal
