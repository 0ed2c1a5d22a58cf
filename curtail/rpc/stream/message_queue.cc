// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/stream/message_queue.h"

#include <cstdint>
#include <cstring>
#include <utility>

namespace curtail::internal {
namespace {

constexpr size_t kShort = 1024;
constexpr size_t kChunkBytes = 16u << 10;
constexpr size_t kPrefix = sizeof(uint32_t);

}  // namespace

void MessageQueue::Push(std::string&& message) {
  Count(static_cast<int64_t>(kPrefix + message.size()));
  if (message.size() > kShort) {
    chunks_.emplace_back().bytes.swap(message);
    return;
  }
  if (chunks_.empty() || !chunks_.back().shared || chunks_.back().bytes.size() >= kChunkBytes) {
    chunks_.push_back({.bytes = {}, .shared = true});
  }
  const auto length = static_cast<uint32_t>(message.size());
  char prefix[kPrefix];
  std::memcpy(prefix, &length, kPrefix);
  chunks_.back().bytes.append(prefix, kPrefix).append(message);
}

void MessageQueue::Pop(std::string* message) {
  if (chunks_.front().shared && chunks_.front().bytes.empty()) chunks_.pop_front();  // kept below
  Chunk& chunk = chunks_.front();
  if (!chunk.shared) {
    *message = std::move(chunk.bytes);
    Count(-static_cast<int64_t>(kPrefix + message->size()));
    chunks_.pop_front();
    return;
  }
  uint32_t length;
  std::memcpy(&length, chunk.bytes.data() + chunk.offset, kPrefix);
  message->assign(chunk.bytes, chunk.offset + kPrefix, length);
  chunk.offset += kPrefix + length;
  Count(-static_cast<int64_t>(kPrefix + length));
  if (chunk.offset < chunk.bytes.size()) return;
  if (chunks_.size() > 1) return chunks_.pop_front();
  chunk.bytes.clear();  // the next message uses its memory
  chunk.offset = 0;
}

void MessageQueue::Clear() {
  chunks_.clear();
  if (bytes_ > 0) Count(-static_cast<int64_t>(bytes_));
}

}  // namespace curtail::internal
