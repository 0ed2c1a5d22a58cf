// SPDX-License-Identifier: Apache-2.0
//
// frame.h - what the raw stacks send: a length, an id, a payload.
//
// The length counts what follows and is in network byte order, as Thrift's framed transport has it, so that one loop
// serves both. The id is chosen by the caller and returned with the reply; it never leaves the machine and is in
// host byte order.
#pragma once

#include <arpa/inet.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace curtail::bench {

inline constexpr size_t kFrameHeaderBytes = sizeof(uint32_t);
inline constexpr size_t kFrameIdOffset = kFrameHeaderBytes;
// Beyond what any stack sends; a longer one is not of ours.
inline constexpr size_t kMaxFrameBytes = 4u << 20;

// Of the whole frame whose first kFrameHeaderBytes are at `data`.
inline size_t FrameBytes(const char* data) {
  uint32_t length = 0;
  std::memcpy(&length, data, sizeof(length));
  return kFrameHeaderBytes + ntohl(length);
}

// The body with its length before it.
inline std::string MakeFrame(std::string_view body) {
  const uint32_t length = htonl(static_cast<uint32_t>(body.size()));
  std::string frame(reinterpret_cast<const char*>(&length), sizeof(length));
  return frame.append(body);
}

inline uint32_t FrameId(std::string_view frame, size_t offset = kFrameIdOffset) {
  uint32_t id = 0;
  std::memcpy(&id, frame.data() + offset, sizeof(id));
  return id;
}

inline void SetFrameId(std::string* frame, uint32_t id, size_t offset = kFrameIdOffset) {
  std::memcpy(frame->data() + offset, &id, sizeof(id));
}

}  // namespace curtail::bench
