// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/strings.h"
#include "curtail/fence/fence.h"
#include "curtail/fence/limiter/limiter.h"

namespace curtail {

absl::Status FenceOptions::Check() const {
  if (!IsLimiter(limit)) {
    return absl::InvalidArgumentError(Join("a fence's limit is one of ", LimiterNames(), ", not ", limit));
  }
  if (!follows()) return absl::OkStatus();
  if (mode != FenceMode::kStrict && mode != FenceMode::kBorrow) {
    return absl::InvalidArgumentError(Join("the limit ", limit,
                                           " needs a fence that gives permits out: strict or borrow, not ",
                                           FenceModeName(mode)));
  }
  if (permits < kMaxFollowed) return absl::OkStatus();
  return absl::InvalidArgumentError(
      Join("the limit ", limit, " follows fewer than ", kMaxFollowed, " permits, not ", permits));
}

}  // namespace curtail
