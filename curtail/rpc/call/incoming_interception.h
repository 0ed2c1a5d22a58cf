// SPDX-License-Identifier: Apache-2.0
//
// incoming_interception.h - how far a call of a server has come through the server's interceptors.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/rpc/interceptor.h"

namespace curtail::internal {

using ServerInterceptors = std::vector<ServerInterceptor*>;

// An IncomingInterception lies in a call. Owned by the thread that has the call.
class IncomingInterception {
 public:
  // Asks each interceptor. Errors: the first that one returns; the later ones are not asked.
  absl::Status Before(const ServerInterceptors& all, std::string_view path, Context& context);
  // Tells those that let the call pass, once. Costs a branch if there are none.
  void After(const ServerInterceptors& all, std::string_view path, Context& context,
             const absl::Status& status) {
    if (passed_ > 0) [[unlikely]]
      TellAfter(all, path, context, status);
  }

 private:
  void TellAfter(const ServerInterceptors& all, std::string_view path, Context& context,
                 const absl::Status& status);

  uint32_t passed_ = 0;  // this many interceptors
  TimePoint began_;
};

}  // namespace curtail::internal
