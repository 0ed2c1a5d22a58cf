// SPDX-License-Identifier: Apache-2.0
//
// frame.h - the layout of HTTP/2 frames (RFC 9113, sections 4, 6 and 7).
//
// Stateless; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace curtail::wire::internal {

inline constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
inline constexpr size_t kFrameHeaderBytes = 9;
// The largest frame that any peer takes, and the largest that we send but for DATA: HTTP/2's default.
inline constexpr uint32_t kMaxFrameBytes = 16384;
// The largest that we take, and the largest DATA that we send if the peer takes them. A message of 64 KiB fits.
inline constexpr uint32_t kMaxLongFrameBytes = 128u << 10;
// The window of the connection and of a stream until somebody says otherwise.
inline constexpr uint32_t kDefaultWindow = 65535;
inline constexpr uint32_t kMaxWindow = 0x7fffffff;

enum class FrameType : uint8_t {
  kData = 0,
  kHeaders = 1,
  kPriority = 2,
  kRstStream = 3,
  kSettings = 4,
  kPushPromise = 5,
  kPing = 6,
  kGoaway = 7,
  kWindowUpdate = 8,
  kContinuation = 9,
};

inline constexpr uint8_t kAck = 0x1;  // SETTINGS, PING
inline constexpr uint8_t kEndStream = 0x1;
inline constexpr uint8_t kEndHeaders = 0x4;
inline constexpr uint8_t kPadded = 0x8;
inline constexpr uint8_t kPriorityFields = 0x20;

enum class Setting : uint16_t {
  kHeaderTableSize = 1,
  kEnablePush = 2,
  kMaxConcurrentStreams = 3,
  kInitialWindowSize = 4,
  kMaxFrameSize = 5,
  kMaxHeaderListSize = 6,
  kNoRfc7540Priorities = 9,  // RFC 9218, 2.1
};

enum class ErrorCode : uint32_t {
  kNoError = 0,
  kProtocolError = 1,
  kInternalError = 2,
  kFlowControlError = 3,
  kSettingsTimeout = 4,
  kStreamClosed = 5,
  kFrameSizeError = 6,
  kRefusedStream = 7,
  kCancel = 8,
  kCompressionError = 9,
  kConnectError = 10,
  kEnhanceYourCalm = 11,
  kInadequateSecurity = 12,
  kHttp11Required = 13,
};

// "PROTOCOL_ERROR"; "unknown" for a code that RFC 9113 does not have.
std::string_view ErrorName(ErrorCode code);

inline uint32_t Get16(const char* p) {
  const auto* b = reinterpret_cast<const uint8_t*>(p);
  return uint32_t{b[0]} << 8 | b[1];
}
inline uint32_t Get24(const char* p) {
  const auto* b = reinterpret_cast<const uint8_t*>(p);
  return uint32_t{b[0]} << 16 | uint32_t{b[1]} << 8 | b[2];
}
inline uint32_t Get32(const char* p) { return Get16(p) << 16 | Get16(p + 2); }
inline void Put32(char* p, uint32_t value) {
  p[0] = static_cast<char>(value >> 24);
  p[1] = static_cast<char>(value >> 16);
  p[2] = static_cast<char>(value >> 8);
  p[3] = static_cast<char>(value);
}

struct FrameHeader {
  uint32_t length = 0;
  FrameType type = FrameType::kData;
  uint8_t flags = 0;
  int32_t stream = 0;

  bool Has(uint8_t flag) const { return (flags & flag) != 0; }

  // REQUIRES: kFrameHeaderBytes at `p`.
  [[gnu::always_inline]] static FrameHeader Parse(const char* p) {
    return {Get24(p), static_cast<FrameType>(p[3]), static_cast<uint8_t>(p[4]),
            static_cast<int32_t>(Get32(p + 5) & kMaxWindow)};
  }
  void Write(char* p) const {
    Put32(p, length << 8 | static_cast<uint8_t>(type));
    p[4] = static_cast<char>(flags);
    SetStream(p, stream);
  }
  // Writes `stream` into the header at `p`.
  static void SetStream(char* p, int32_t stream) { Put32(p + 5, static_cast<uint32_t>(stream)); }
};

inline void AppendFrameHeader(const FrameHeader& header, std::string* out) {
  char bytes[kFrameHeaderBytes];
  header.Write(bytes);
  out->append(bytes, sizeof bytes);
}

// A frame whose payload is one number: RST_STREAM, WINDOW_UPDATE.
void AppendNumberFrame(FrameType type, int32_t stream, uint32_t number, std::string* out);

}  // namespace curtail::wire::internal
