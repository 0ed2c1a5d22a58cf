// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/queue_options.h"

#include "curtail/base/strings.h"

namespace curtail {

std::optional<ShedMode> ParseShedMode(std::string_view text) {
  if (text == "off") return ShedMode::kOff;
  if (text == "codel") return ShedMode::kCodel;
  return std::nullopt;
}

std::optional<QueueMode> ParseQueueMode(std::string_view text) {
  if (text == "fifo") return QueueMode::kFifo;
  if (text == "lifo") return QueueMode::kLifo;
  return std::nullopt;
}

absl::Status QueueOptions::Check() const {
  if (target <= Nanos::zero())
    return absl::InvalidArgumentError("the target of a queue's wait is not above zero");
  if (interval / 2 >= target) return absl::OkStatus();
  return absl::InvalidArgumentError(
      Join("the interval of a queue's wait, ", interval / std::chrono::microseconds(1),
           " us, is shorter than twice its target, ", target / std::chrono::microseconds(1), " us"));
}

}  // namespace curtail
