// SPDX-License-Identifier: Apache-2.0
//
// outgoing_interception.h - how far a call has come through the interceptors of its channel.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/rpc/interceptor.h"

namespace curtail::internal {

using ClientInterceptors = std::vector<ClientInterceptor*>;

// An OutgoingInterception lies in a call. Owned by the thread that has the call.
class OutgoingInterception {
 public:
  // Asks each interceptor of the channel for `call`, of which it sets when it began; they may add to `metadata`. Errors:
  // the first that one returns.
  absl::Status Before(const ClientInterceptors& all, OutgoingCall call, Metadata& metadata);
  // True if After() is owed.
  bool passed() const { return passed_ > 0; }
  // Tells those that let the call pass, once.
  void After(const ClientInterceptors& all, OutgoingCall call, const absl::Status& status);

 private:
  uint32_t passed_ = 0;  // this many interceptors
  TimePoint began_;      // the first attempt
};

}  // namespace curtail::internal
