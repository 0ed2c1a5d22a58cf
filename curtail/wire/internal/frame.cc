// SPDX-License-Identifier: Apache-2.0

#include "curtail/wire/internal/frame.h"

#include <iterator>

namespace curtail::wire::internal {

std::string_view ErrorName(ErrorCode code) {
  static constexpr std::string_view kNames[] = {"NO_ERROR",
                                                "PROTOCOL_ERROR",
                                                "INTERNAL_ERROR",
                                                "FLOW_CONTROL_ERROR",
                                                "SETTINGS_TIMEOUT",
                                                "STREAM_CLOSED",
                                                "FRAME_SIZE_ERROR",
                                                "REFUSED_STREAM",
                                                "CANCEL",
                                                "COMPRESSION_ERROR",
                                                "CONNECT_ERROR",
                                                "ENHANCE_YOUR_CALM",
                                                "INADEQUATE_SECURITY",
                                                "HTTP_1_1_REQUIRED"};
  const auto index = static_cast<uint32_t>(code);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

void AppendNumberFrame(FrameType type, int32_t stream, uint32_t number, std::string* out) {
  char bytes[kFrameHeaderBytes + 4];
  FrameHeader{4, type, 0, stream}.Write(bytes);
  Put32(bytes + kFrameHeaderBytes, number);
  out->append(bytes, sizeof bytes);
}

}  // namespace curtail::wire::internal
