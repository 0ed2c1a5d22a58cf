// SPDX-License-Identifier: Apache-2.0
//
// serialize.h - a message as bytes, written once, and read.
//
// Any thread; the message does not change meanwhile, or belongs to the caller.
#pragma once

#include <climits>
#include <cstdint>
#include <string>
#include <string_view>

#include "curtail/base/string_bytes.h"
#include "google/protobuf/message_lite.h"

namespace curtail::internal {

// From this size on, no long string of a message is copied with one memcpy(): see base/copy_bytes.h.
inline constexpr size_t kLongMessage = 16u << 10;

// Writes `message`, whose cached size it is, over `bytes`.
void SerializeLong(const google::protobuf::MessageLite& message, std::string* bytes);

// As message.SerializeToString(bytes), which fills the string with zeros first. False: it is larger than 2 GiB.
inline bool Serialize(const google::protobuf::MessageLite& message, std::string* bytes) {
  const size_t size = message.ByteSizeLong();
  if (size > INT_MAX) return false;
  if (size > bytes->capacity()) bytes->clear();  // growth would copy it
  ResizeForOverwrite(*bytes, size);
  if (size >= kLongMessage) [[unlikely]] {
    SerializeLong(message, bytes);
  } else {
    message.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(bytes->data()));
  }
  return true;
}

// The same for longer `bytes`.
bool ParseLong(std::string_view bytes, google::protobuf::MessageLite* message);

// As message->ParseFromString(bytes). False too for more than 2 GiB.
inline bool Parse(std::string_view bytes, google::protobuf::MessageLite* message) {
  if (bytes.size() >= kLongMessage) [[unlikely]]
    return ParseLong(bytes, message);
  return message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

}  // namespace curtail::internal
