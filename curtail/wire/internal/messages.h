// SPDX-License-Identifier: Apache-2.0
//
// messages.h - gRPC's length-prefixed messages on one stream: taking them out of DATA, and putting them into
// it.
//
// Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
  Result Next(std::string_view* chunk, size_t max_message_bytes, std::string* message);

  // True if the last message, or the one that has begun, is compressed.
  bool compressed() const { return prefix_[0] == 1; }
  // True if the bytes so far end at a message's end.
  bool AtBoundary() const { return prefix_have_ == 0; }
  // Bytes of the unfinished message that are held.
  size_t held_bytes() const { return partial_.size(); }
  void Reset();

 private:
  // Grows with what has arrived, so that a length alone reserves next to nothing.
  void Append(std::string_view bytes);

  uint8_t prefix_[kPrefixBytes] = {};
  uint8_t prefix_have_ = 0;
  uint32_t length_ = 0;
  std::string partial_;
};

// A SendQueue holds the messages of one stream that are not yet in DATA frames.
class SendQueue {
 public:
  void Push(std::string&& message, bool compressed = false);
  // Appends the next `bytes` of prefixes and messages to `out`. REQUIRES: bytes <= size(). The last message stays
  // until Clear() or the next Push(), for TakeBack().
  void Take(size_t bytes, std::string* out);
  // The message, of a queue that only ever had this one.
  std::string TakeBack() { return std::move(front_); }
  // Drops everything; returns how many bytes that were.
  size_t Clear();

  // Bytes left to take, prefixes included.
  size_t size() const { return bytes_; }
  bool empty() const { return bytes_ == 0; }
  // True if a message has been taken in part.
  bool InsideMessage() const { return offset_ != 0; }

 private:
  // The next message; unary calls never use more than this one.
  std::string front_;
  bool front_compressed_ = false;
  // Bytes of the prefix and of front_ that were taken.
  size_t offset_ = 0;
  bool has_front_ = false;
  // Since the last Clear().
  bool used_ = false;
  // Messages after front_, from next_ on, and whether they are compressed.
  std::vector<std::pair<std::string, bool>> rest_;
  size_t next_ = 0;
  size_t bytes_ = 0;
};

}  // namespace curtail::wire::internal
