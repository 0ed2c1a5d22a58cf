// SPDX-License-Identifier: Apache-2.0
//
// admin_client.h - calls of a server's admin interface, for the commands that use it.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "curtail/rpc/channel.h"
#include "tools/curtail/cli/console.h"

namespace curtail::tool {

// An AdminClient calls methods of curtail.admin.v1.Admin, whose messages hold one string each. Thread-compatible.
class AdminClient {
 public:
  explicit AdminClient(std::string target) : channel_(&client_, std::move(target)) {}
  absl::Status Call(std::string_view method, const std::string& in, std::string* out,
                    Nanos timeout = std::chrono::seconds(5));

 private:
  Client client_;
  Channel channel_;
};

// Prints why such a call failed; returns the exit code.
int AdminFailure(const absl::Status& status, Console& console);

}  // namespace curtail::tool
