// SPDX-License-Identifier: Apache-2.0
//
// limit.h - the limits that a session sets to its peer, by name.
//
// Stateless; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace curtail::wire {

// A limit that a peer has reached. Events::OnLimit() hears each time.
enum class Limit : uint8_t {
  kResets,        // RST_STREAM frames a second, the peer's and RST_STREAM that it provokes
  kMalformed,     // malformed header blocks and stream errors a second
  kSettings,      // SETTINGS frames a second
  kEmptyFrames,   // frames a second that carry nothing: PING, PRIORITY, WINDOW_UPDATE, empty DATA
  kReactions,     // frames to be written that the peer provoked
  kHeaderBlock,   // bytes and frames of one header block
  kHeaderFields,  // bytes of one call's header fields
  kStreams,       // calls open at once
  kMessage,       // bytes of one message
  kHeld,          // bytes held of unfinished requests
  kInflating,     // bytes inflated at a stretch
};
inline constexpr size_t kLimits = 11;

// "resets", "malformed", ...
std::string_view LimitName(Limit limit);

}  // namespace curtail::wire
