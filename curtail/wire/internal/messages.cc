// SPDX-License-Identifier: Apache-2.0

#include "curtail/wire/internal/messages.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "curtail/base/string_bytes.h"

namespace curtail::wire::internal {
namespace {

// The bytes that an announced length alone may reserve; untouched, they cost address space and no memory.
constexpr size_t kFirstReservation = 1u << 20;
// A queue that is empty keeps no more: a session keeps a thousand streams.
constexpr size_t kKeptFront = 1u << 10;
// A shorter part of a message is copied: that costs less than a part of its own in the system call.
constexpr size_t kMinLent = 4u << 10;

}  // namespace

MessageReader::Result MessageReader::NextPart(std::string_view* chunk, size_t max_message_bytes,
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
  const size_t take = std::min<size_t>(chunk->size(), length_ - have_);
  const std::string_view bytes = chunk->substr(0, take);
  chunk->remove_prefix(take);
  if (have_ == 0 && take == length_) {
    message->assign(bytes);
  } else {
    if (take > 0) {
      if (have_ + take > partial_.size()) Grow(take);
      std::memcpy(partial_.data() + have_, bytes.data(), take);
      have_ += static_cast<uint32_t>(take);
    }
    if (have_ < length_) return Result::kNeedMore;
    *message = std::exchange(partial_, {});
    have_ = 0;
  }
  prefix_have_ = 0;
  return Result::kMessage;
}

void MessageReader::Grow(size_t bytes) {
  const size_t needed = have_ + bytes;
  if (needed > partial_.capacity()) {
    partial_.reserve(std::min<size_t>(length_, std::max({needed, size_t{2} * have_, kFirstReservation})));
  }
  ResizeForOverwrite(partial_, needed);
}

std::span<char> MessageReader::Room(size_t most) {
  if (prefix_have_ < kPrefixBytes || have_ == length_) return {};
  most = std::min<size_t>(most, length_ - have_);
  if (have_ + most > partial_.size()) Grow(most);
  return {partial_.data() + have_, most};
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

void SendQueue::Append(std::string&& bytes) {
  if (bytes.empty()) return;
  bytes_ += bytes.size();
  if (!has_front_) {
    front_ = std::move(bytes);
    offset_ = kPrefixBytes;  // as if a prefix had been taken
    used_ = has_front_ = true;
    return;
  }
  // Once most of the string has been taken, that part is erased: a byte is moved at most once more.
  if (const size_t taken = offset_ - kPrefixBytes; taken > front_.size() / 2) {
    front_.erase(0, taken);
    offset_ = kPrefixBytes;
  }
  front_.append(bytes);
}

void SendQueue::Take(size_t bytes, std::string* out, Lender& lender, bool keep_last) {
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
    const std::string_view part =
        std::string_view(front_).substr(offset_ - std::min(offset_, kPrefixBytes), n);
    if (lender.pieces != nullptr && n >= kMinLent) {
      lender.pieces->push_back({out->size(), part});
      lender.lent_bytes += n;
      lent_in_ = lender.number;
    } else {
      out->append(part);
    }
    offset_ += n;
    bytes -= n;
    if (offset_ < kPrefixBytes + front_.size()) continue;
    offset_ = 0;
    has_front_ = next_ < rest_.size();
    if (lent_in_ != 0 && !(keep_last && !has_front_)) {
      if (lent_in_ == lender.number) lender.Keep(std::move(front_));
      lent_in_ = 0;
    }
    if (has_front_) std::tie(front_, front_compressed_) = std::move(rest_[next_++]);
    if (next_ * 2 >= rest_.size()) {  // amortised: each message is moved at most once more
      rest_.erase(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(next_));
      next_ = 0;
    }
  }
}

std::string SendQueue::TakeBack(Lender& lender) {
  if (lent_in_ == lender.number) return front_;
  return std::move(front_);
}

size_t SendQueue::Drop(Lender* lender) {
  const size_t dropped = bytes_;
  if (lender != nullptr && lent_in_ == lender->number) lender->Keep(std::move(front_));
  // An assignment alone keeps the memory of the last message.
  if (front_.capacity() > kKeptFront) std::string().swap(front_);
  *this = SendQueue();
  return dropped;
}

}  // namespace curtail::wire::internal
