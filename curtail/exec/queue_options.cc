// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/queue_options.h"

#include "absl/strings/str_cat.h"
#include "curtail/base/strings.h"

namespace curtail {
namespace {

// "0.5 ms".
std::string AsMillis(Nanos time) { return absl::StrCat(InMillis(time), " ms"); }

}  // namespace

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
    return absl::InvalidArgumentError("the target of a queue's wait must be above 0");
  if (interval / 2 >= target) return absl::OkStatus();
  return absl::InvalidArgumentError(Join("the interval of a queue's wait, ", AsMillis(interval),
                                         ", must be at least twice its target, ", AsMillis(target)));
}

}  // namespace curtail
