// SPDX-License-Identifier: Apache-2.0
//
// message_queue.h - serialized messages in their order. Short ones share memory: a peer that may send four
// million bytes may make a million messages of them.
//
// Thread-compatible.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

namespace curtail::internal {

class MessageQueue {
 public:
  // `total`, unless it is null, counts the bytes of this queue among others; it outlives the queue.
  explicit MessageQueue(std::atomic<int64_t>* total = nullptr) : total_(total) {}
  ~MessageQueue() { Clear(); }
  MessageQueue(const MessageQueue&) = delete;
  MessageQueue& operator=(const MessageQueue&) = delete;

  // Copies a short message, and takes the memory of a long one.
  void Push(std::string&& message);
  // Moves the oldest to `message`. REQUIRES: !empty()
  void Pop(std::string* message);
  void Clear();

  bool empty() const { return bytes_ == 0; }
  // The bytes that the messages take, with a few bytes for each.
  size_t bytes() const { return bytes_; }

 private:
  // A long message, or short ones, each behind its length.
  struct Chunk {
    std::string bytes;
    bool shared = false;
    size_t offset = 0;  // of the next one
  };

  void Count(int64_t change) {
    bytes_ += static_cast<size_t>(change);
    if (total_ != nullptr) total_->fetch_add(change, std::memory_order_relaxed);
  }

  std::atomic<int64_t>* const total_;
  std::deque<Chunk> chunks_;
  size_t bytes_ = 0;
};

}  // namespace curtail::internal
