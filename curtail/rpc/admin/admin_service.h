// SPDX-License-Identifier: Apache-2.0
//
// admin_service.h - curtail.admin.v1.Admin over a server, and its statistics as messages.
#pragma once

#include <memory>
#include <string_view>

#include "curtail/base/clock.h"
#include "curtail/rpc/admin/admin.pb.h"
#include "curtail/rpc/server.h"
#include "curtail/rpc/service.h"

namespace curtail::internal {

class ServerCore;

// Serves curtail.admin.v1.Admin (admin.proto) over a server, which outlives it.
std::unique_ptr<Service> NewAdminService(ServerCore* core);

// Puts the level of that name in force. Errors: INVALID_ARGUMENT.
absl::Status ChangeLogLevel(std::string_view text);

// The answers of GetStatus and GetDecisions at the time `now`. In text that comes from flags and files a question mark
// replaces each byte that is not printable ASCII. One string with invalid UTF-8 would make the whole message unreadable.
admin::v1::GetStatusReply StatusMessage(const ServerStats& stats, TimePoint now);
admin::v1::GetDecisionsReply DecisionsMessage(const PolicyStats& stats, TimePoint now);

}  // namespace curtail::internal
