// SPDX-License-Identifier: Apache-2.0
//
// poller_table.h - an object for each event loop that uses something, found without a lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace curtail::internal {

// A PollerTable finds the T of a poller's number, making it on first use. Thread-safe.
template <class T>
class PollerTable {
 public:
  PollerTable() = default;
  PollerTable(const PollerTable&) = delete;
  PollerTable& operator=(const PollerTable&) = delete;
  ~PollerTable() {
    for (auto& entry : blocks_) {
      Block* const block = entry.load(std::memory_order_acquire);
      for (size_t i = 0; block != nullptr && i < kBlock; ++i)
        delete (*block)[i].load(std::memory_order_acquire);
      delete block;
    }
  }

  // make() -> std::unique_ptr<T>. Null when there are more pollers than the table has room for (kBlocks * kBlock).
  template <class Make>
  T* For(uint32_t id, const Make& make) {
    if (id >= kBlocks * kBlock) return nullptr;
    std::atomic<Block*>& entry = blocks_[id / kBlock];
    Block* block = entry.load(std::memory_order_acquire);
    if (block == nullptr) {
      auto fresh = std::make_unique<Block>();
      if (entry.compare_exchange_strong(block, fresh.get(), std::memory_order_acq_rel))
        block = fresh.release();
    }
    std::atomic<T*>& place = (*block)[id % kBlock];
    T* object = place.load(std::memory_order_acquire);
    if (object == nullptr) {
      std::unique_ptr<T> fresh = make();
      if (place.compare_exchange_strong(object, fresh.get(), std::memory_order_acq_rel))
        object = fresh.release();
    }
    return object;
  }
  // The T of poller `id` if there is one, else null.
  T* Find(uint32_t id) const {
    if (id >= kBlocks * kBlock) return nullptr;
    Block* const block = blocks_[id / kBlock].load(std::memory_order_acquire);
    return block == nullptr ? nullptr : (*block)[id % kBlock].load(std::memory_order_acquire);
  }
  // Calls visit(object) for each there is.
  template <class Visit>
  void ForEach(Visit visit) const {
    for (const auto& entry : blocks_) {
      Block* const block = entry.load(std::memory_order_acquire);
      for (size_t i = 0; block != nullptr && i < kBlock; ++i) {
        if (T* const object = (*block)[i].load(std::memory_order_acquire)) visit(*object);
      }
    }
  }

 private:
  static constexpr size_t kBlocks = 64;
  static constexpr size_t kBlock = 64;
  using Block = std::array<std::atomic<T*>, kBlock>;

  // Atomic: filled in once (release), never changed (acquire).
  std::array<std::atomic<Block*>, kBlocks> blocks_{};
};

}  // namespace curtail::internal
