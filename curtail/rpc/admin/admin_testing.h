// SPDX-License-Identifier: Apache-2.0
//
// admin_testing.h - calls of the admin interface, for tests of servers that have one.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "curtail/base/testing.h"
#include "curtail/rpc/admin/admin.curtail.h"
#include "curtail/rpc/channel.h"

namespace curtail {

using admin::v1::Admin;

// One call of `method` to the server at `address`, which need not be its admin address.
template <class Request, class Reply>
absl::StatusOr<Reply> AskAdmin(const std::string& address, const Method<Request, Reply>& method,
                               const Request& request = {}) {
  Client client;
  Channel channel(&client, address);
  Context ctx(kMaxTestWait);
  Reply reply;
  if (absl::Status status = channel.Call(ctx, method.path, request, &reply); !status.ok()) return status;
  return reply;
}

inline admin::v1::SwitchRequest SwitchToConfig(std::string config) {
  admin::v1::SwitchRequest request;
  request.set_config(std::move(config));
  return request;
}

}  // namespace curtail
