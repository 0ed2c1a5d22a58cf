// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/client/connection/outgoing_interception.h"

#include <algorithm>
#include <utility>

namespace curtail::internal {

absl::Status OutgoingInterception::Before(const ClientInterceptors& all, OutgoingCall call,
                                          Metadata& metadata) {
  if (passed_ == 0) began_ = Now();
  call.began = began_;
  uint32_t passed = 0;
  for (ClientInterceptor* interceptor : all) {
    absl::Status refused = interceptor->Before(call, metadata);
    // One that let an earlier attempt pass is owed the end, too.
    passed_ = std::max(passed_, passed + refused.ok());
    if (!refused.ok()) return refused;
    ++passed;
  }
  return absl::OkStatus();
}

void OutgoingInterception::After(const ClientInterceptors& all, OutgoingCall call,
                                 const absl::Status& status) {
  call.began = began_;
  const Nanos took = Now() - began_;
  for (uint32_t i = std::exchange(passed_, 0); i > 0; --i) all[i - 1]->After(call, status, took);
}

}  // namespace curtail::internal
