// SPDX-License-Identifier: Apache-2.0
//
// leaving_call.h - how far a call has come through the interceptors of its channel.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/rpc/channel.h"

namespace curtail::internal {

// A LeavingCall lies in a call. Owned by the thread that has the call.
class LeavingCall {
 public:
  // Asks each interceptor of `channel`, which may add to `metadata`. Errors: the first that one returns.
  absl::Status Before(const Channel& channel, std::string_view path, Metadata& metadata);
  // True if After() is owed.
  bool passed() const { return passed_ > 0; }
  // Tells those that let the call pass, once.
  void After(const Channel& channel, std::string_view path, const absl::Status& status);

 private:
  uint32_t passed_ = 0;  // this many interceptors
  TimePoint began_;      // the first attempt
};

}  // namespace curtail::internal
