// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/call/incoming_interception.h"

#include <utility>

namespace curtail::internal {

absl::Status IncomingInterception::Before(const ServerInterceptors& all, std::string_view path,
                                          Context& context) {
  began_ = Now();
  passed_ = 0;
  const IncomingCall call{path, context, began_};
  for (ServerInterceptor* interceptor : all) {
    if (absl::Status refused = interceptor->Before(call); !refused.ok()) return refused;
    ++passed_;
  }
  return absl::OkStatus();
}

void IncomingInterception::TellAfter(const ServerInterceptors& all, std::string_view path, Context& context,
                                     const absl::Status& status) {
  const IncomingCall call{path, context, began_};
  const Nanos took = Now() - began_;
  for (uint32_t i = std::exchange(passed_, 0); i > 0; --i) all[i - 1]->After(call, status, took);
}

}  // namespace curtail::internal
