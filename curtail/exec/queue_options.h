// SPDX-License-Identifier: Apache-2.0
//
// queue_options.h - a queue of waiting requests may shed, or serve the newest first, while it
// stands.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "curtail/base/clock.h"

namespace curtail {

enum class ShedMode : uint8_t {
  kOff,    // every request has its turn
  kCodel,  // in a queue that stands, requests that wait too long are refused (codel.h)
};

enum class QueueMode : uint8_t {
  kFifo,  // first come, first served; without a ShedMode, connections take turns (fair_order.h)
  kLifo,  // first come, first served, but the newest first while the queue stands
};

// "off", "codel"; "fifo", "lifo"; empty for other texts.
std::optional<ShedMode> ParseShedMode(std::string_view text);
std::optional<QueueMode> ParseQueueMode(std::string_view text);

// A queue stands if the least wait of an interval exceeds the target. The defaults are CoDel's (RFC
// 8289).
struct QueueOptions {
  ShedMode shed = ShedMode::kOff;
  QueueMode mode = QueueMode::kFifo;
  // Raise both for handlers that take longer than the target: half of the time that a client
  // waits, and a few requests' time.
  Nanos target = std::chrono::milliseconds(5);
  Nanos interval = std::chrono::milliseconds(100);

  // True if it differs from a plain queue.
  bool any() const { return shed != ShedMode::kOff || mode != QueueMode::kFifo; }
  // INVALID_ARGUMENT for a target that is not above zero, or an interval below twice the target.
  absl::Status Check() const;
};

}  // namespace curtail
