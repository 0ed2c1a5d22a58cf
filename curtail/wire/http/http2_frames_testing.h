// SPDX-License-Identifier: Apache-2.0
//
// http2_frames_testing.h - for tests and benchmarks: HTTP/2 frames, HPACK literals and gRPC's messages byte by byte, whatever
// they break.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "curtail/wire/internal/frame.h"

namespace curtail::wire {

inline std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload) {
  std::string out;
  internal::AppendFrameHeader({static_cast<uint32_t>(payload.size()), static_cast<internal::FrameType>(type),
                               flags, static_cast<int32_t>(stream)},
                              &out);
  return out.append(payload);
}

// DATA frames of `bytes`, the last of which ends the stream if it is to `end`.
inline std::string DataOf(uint32_t stream, std::string_view bytes, bool end) {
  constexpr size_t kMost = 16384;
  std::string out;
  for (size_t at = 0; at < bytes.size(); at += kMost) {
    const bool last = at + kMost >= bytes.size();
    out += Frame(0, last && end ? 1 : 0, stream, bytes.substr(at, kMost));
  }
  return out;
}

// gRPC's prefix of a message of `size` bytes. `flag` is 1 if it is compressed.
inline std::string Prefix(size_t size, char flag = 0) {
  std::string out(1, flag);
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(size >> shift);
  return out;
}
// A message with its prefix.
inline std::string Framed(std::string_view message, char flag = 0) {
  return Prefix(message.size(), flag).append(message);
}

// A string of HPACK without Huffman coding.
inline std::string HpackText(std::string_view text) {
  constexpr size_t kPrefix = 127;
  if (text.size() < kPrefix) return std::string(1, static_cast<char>(text.size())).append(text);
  std::string out(1, static_cast<char>(kPrefix));
  size_t rest = text.size() - kPrefix;
  for (; rest >= 128; rest >>= 7) out += static_cast<char>(rest | 0x80);
  return (out += static_cast<char>(rest)).append(text);
}

// A field with a new name. `first` is '\x40' if it enters the table, or '\0'.
inline std::string Literal(char first, std::string_view name, std::string_view value) {
  return first + HpackText(name) + HpackText(value);
}

using HeaderList = std::vector<std::pair<std::string, std::string>>;

// A header block that leaves the table as it is.
inline std::string Block(const HeaderList& fields) {
  std::string out;
  for (const auto& [name, value] : fields) out += Literal('\0', name, value);
  return out;
}

}  // namespace curtail::wire
