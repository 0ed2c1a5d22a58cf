// SPDX-License-Identifier: Apache-2.0
//
// messages.h - gRPC's length-prefixed messages on one stream: taking them out of DATA, and putting them into
// it.
//
// Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "curtail/base/string_bytes.h"
#include "curtail/wire/internal/frame.h"
#include "curtail/wire/session.h"

namespace curtail::wire::internal {

// Compressed flag (1 byte), then the length (4 bytes, big endian).
inline constexpr size_t kPrefixBytes = 5;

// A MessageReader cuts a stream of bytes, which arrive in arbitrary pieces, into messages.
class MessageReader {
 public:
  enum class Result {
    kNeedMore,   // the chunk is used up
    kMessage,    // *message is whole; the chunk may hold more
    kTooLong,    // the prefix announces more than the limit
    kMalformed,  // the compressed flag is neither 0 nor 1
  };

  // Takes bytes from the front of `chunk`. After one of the last two results the reader is beyond use.
  Result Next(std::string_view* chunk, size_t max_message_bytes, std::string* message) {
    // Most messages come whole.
    if (prefix_have_ == 0 && chunk->size() >= kPrefixBytes) [[likely]] {
      const size_t length = Get32(chunk->data() + 1);
      if (chunk->front() == 0 && length <= max_message_bytes && chunk->size() - kPrefixBytes >= length)
          [[likely]] {
        prefix_[0] = 0;
        if (length > message->capacity()) message->clear();  // growth would copy it
        ResizeForOverwrite(*message, length);
        std::memcpy(message->data(), chunk->data() + kPrefixBytes, length);
        chunk->remove_prefix(kPrefixBytes + length);
        return Result::kMessage;
      }
    }
    return NextPart(chunk, max_message_bytes, message);
  }

  // True if `content` is one message, not compressed and no longer than that.
  static bool IsWhole(std::string_view content, size_t max_message_bytes) {
    if (content.size() < kPrefixBytes || content.front() != 0) return false;
    const size_t length = Get32(content.data() + 1);
    return length == content.size() - kPrefixBytes && length <= max_message_bytes;
  }

  // A place for the next bytes of the message, up to `most` of them. Empty if no message has begun.
  std::span<char> Room(size_t most);
  // The first `bytes` of Room() hold what has come. Follow with Next(), which finds out whether the message is whole.
  void Filled(size_t bytes) { have_ += static_cast<uint32_t>(bytes); }

  // True if the last message, or the one that has begun, is compressed.
  bool compressed() const { return prefix_[0] == 1; }
  // True if the bytes so far end at a message's end.
  bool AtBoundary() const { return prefix_have_ == 0; }
  // Bytes of the unfinished message that are held.
  size_t held_bytes() const { return have_; }
  void Reset() {
    prefix_have_ = 0;
    have_ = 0;
    if (partial_.capacity() > std::string().capacity()) [[unlikely]]
      std::string().swap(partial_);
    partial_.clear();
  }

 private:
  // As Next(), of a message that comes in pieces, is compressed, or is too long.
  Result NextPart(std::string_view* chunk, size_t max_message_bytes, std::string* message);
  // Makes room for `bytes` more. Grows with what has arrived, so that a length alone reserves next to nothing.
  void Grow(size_t bytes);

  uint8_t prefix_[kPrefixBytes] = {};
  uint8_t prefix_have_ = 0;
  uint32_t length_ = 0;
  // The bytes of partial_ that have arrived; the others are room.
  uint32_t have_ = 0;
  std::string partial_;
};

// A Lender hands out long parts of messages where they lie, and keeps the messages until they are written.
struct Lender {
  // Those that are handed out now go here; null: they are copied.
  std::vector<Output::Piece>* pieces = nullptr;
  size_t lent_bytes = 0;
  // Messages of which parts were lent, and which their streams need no more.
  std::vector<std::string> kept;
  size_t kept_bytes = 0;
  // Counts up when what was lent is written.
  uint32_t number = 1;

  void Keep(std::string&& message) {
    kept_bytes += message.size();
    kept.push_back(std::move(message));
  }
  // All that was lent is written.
  void Return() {
    ++number;
    kept.clear();
    kept_bytes = 0;
  }
};

// A SendQueue holds the messages of one stream, or the content of another kind, that are not yet in DATA frames.
class SendQueue {
 public:
  void Push(std::string&& message, bool compressed = false);
  // Adds bytes that have no prefix. REQUIRES: the queue has only such, and none is lent.
  void Append(std::string&& bytes);
  // Appends the next `bytes` of prefixes and messages to `out`, but for what `lender` lends. REQUIRES: bytes <= size().
  // With `keep_last` the last message stays until Clear(), for TakeBack(). REQUIRES then: no Push() follows.
  void Take(size_t bytes, std::string* out, Lender& lender, bool keep_last);
  // The message, of a queue that only ever had this one.
  std::string TakeBack(Lender& lender);
  // Drops everything, but for what `lender` has lent; returns how many bytes that were.
  size_t Clear(Lender& lender) { return used_ ? Drop(&lender) : 0; }
  // REQUIRES: no part of a message is lent.
  size_t Clear() { return used_ ? Drop(nullptr) : 0; }

  // Bytes left to take, prefixes included.
  size_t size() const { return bytes_; }
  bool empty() const { return bytes_ == 0; }
  // True if a message has been taken in part.
  bool InsideMessage() const { return offset_ != 0; }

 private:
  size_t Drop(Lender* lender);

  // The next message; unary calls never use more than this one.
  std::string front_;
  // Lender::number when a part of front_ was lent; 0: none was.
  uint32_t lent_in_ = 0;
  bool front_compressed_ = false;
  bool has_front_ = false;
  // Since the last Clear().
  bool used_ = false;
  // Bytes of the prefix and of front_ that were taken.
  size_t offset_ = 0;
  // Messages after front_, from next_ on, and whether they are compressed.
  std::vector<std::pair<std::string, bool>> rest_;
  size_t next_ = 0;
  size_t bytes_ = 0;
};

}  // namespace curtail::wire::internal
