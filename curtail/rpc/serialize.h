// SPDX-License-Identifier: Apache-2.0
//
// serialize.h - a message as bytes, written once.
//
// Any thread; the message does not change meanwhile.
#pragma once

#include <climits>
#include <cstdint>
#include <string>

#include "curtail/base/string_bytes.h"
#include "google/protobuf/message_lite.h"

namespace curtail::internal {

// As message.SerializeToString(bytes), which fills the string with zeros first. False: it is larger than 2 GiB.
inline bool Serialize(const google::protobuf::MessageLite& message, std::string* bytes) {
  const size_t size = message.ByteSizeLong();
  if (size > INT_MAX) return false;
  if (size > bytes->capacity()) bytes->clear();  // growth would copy it
  ResizeForOverwrite(*bytes, size);
  message.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(bytes->data()));
  return true;
}

}  // namespace curtail::internal
