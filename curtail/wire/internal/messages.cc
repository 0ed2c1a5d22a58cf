// SPDX-License-Identifier: Apache-2.0

#include "curtail/wire/internal/messages.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

namespace curtail::wire::internal {
namespace {

// The bytes that an announced length alone may reserve; untouched, they cost address space and no memory.
constexpr size_t kFirstReservation = 1u << 20;
// A queue that is empty keeps no more: a session keeps a thousand streams.
constexpr size_t kKeptFront = 1u << 10;

}  // namespace

MessageReader::Result MessageReader::Next(std::string_view* chunk, size_t max_message_bytes,
                                          std::string* message) {
  if (prefix_have_ < kPrefixBytes) {
    const size_t take = std::min(chunk->size(), kPrefixBytes - prefix_have_);
    std::memcpy(prefix_ + prefix_have_, chunk->data(), take);
    chunk->remove_prefix(take);
    prefix_have_ += static_cast<uint8_t>(take);
    if (prefix_have_ < kPrefixBytes) return Result::kNeedMore;
    length_ =
        uint32_t{prefix_[1]} << 24 | uint32_t{prefix_[2]} << 16 | uint32_t{prefix_[3]} << 8 | prefix_[4];
    if (prefix_[0] > 1) return Result::kMalformed;
    if (length_ > max_message_bytes) return Result::kTooLong;
  }
  const size_t take = std::min<size_t>(chunk->size(), length_ - partial_.size());
  const std::string_view bytes = chunk->substr(0, take);
  chunk->remove_prefix(take);
  if (partial_.empty() && take == length_) {
    message->assign(bytes);
  } else {
    Append(bytes);
    if (partial_.size() < length_) return Result::kNeedMore;
    *message = std::exchange(partial_, {});
  }
  prefix_have_ = 0;
  return Result::kMessage;
}

void MessageReader::Append(std::string_view bytes) {
  const size_t needed = partial_.size() + bytes.size();
  if (needed > partial_.capacity()) {
    partial_.reserve(std::min<size_t>(length_, std::max({needed, 2 * partial_.size(), kFirstReservation})));
  }
  partial_.append(bytes);
}

void MessageReader::Reset() {
  prefix_have_ = 0;
  if (partial_.capacity() > std::string().capacity()) std::string().swap(partial_);
  partial_.clear();
}

void SendQueue::Push(std::string&& message, bool compressed) {
  bytes_ += kPrefixBytes + message.size();
  used_ = true;
  if (has_front_) {
    rest_.emplace_back(std::move(message), compressed);
  } else {
    front_ = std::move(message);
    front_compressed_ = compressed;
    has_front_ = true;
  }
}

void SendQueue::Take(size_t bytes, std::string* out) {
  bytes_ -= bytes;
  while (bytes > 0) {
    if (offset_ < kPrefixBytes) {
      char prefix[kPrefixBytes] = {front_compressed_};
      const auto length = static_cast<uint32_t>(front_.size());
      for (size_t i = 0; i < 4; ++i) prefix[1 + i] = static_cast<char>(length >> (24 - 8 * i));
      const size_t n = std::min(bytes, kPrefixBytes - offset_);
      out->append(prefix + offset_, n);
      offset_ += n;
      bytes -= n;
    }
    const size_t n = std::min(bytes, kPrefixBytes + front_.size() - offset_);
    out->append(front_, offset_ - std::min(offset_, kPrefixBytes), n);
    offset_ += n;
    bytes -= n;
    if (offset_ < kPrefixBytes + front_.size()) continue;
    offset_ = 0;
    has_front_ = next_ < rest_.size();
    if (has_front_) std::tie(front_, front_compressed_) = std::move(rest_[next_++]);
    if (next_ * 2 >= rest_.size()) {  // amortised: each message is moved at most once more
      rest_.erase(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(next_));
      next_ = 0;
    }
  }
}

size_t SendQueue::Clear() {
  if (!used_) return 0;
  const size_t dropped = bytes_;
  // An assignment alone keeps the memory of the last message.
  if (front_.capacity() > kKeptFront) std::string().swap(front_);
  *this = SendQueue();
  return dropped;
}

}  // namespace curtail::wire::internal
