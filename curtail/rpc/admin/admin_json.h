// SPDX-License-Identifier: Apache-2.0
//
// admin_json.h - the JSON documents of the admin interfaces. Each ends with a line end.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "curtail/observe/metrics/metrics_process.h"
#include "curtail/rpc/admin/admin.pb.h"
#include "curtail/rpc/server_stats.h"

namespace curtail::internal {

// `curtail status --json`, and /status.json: schema_version and the fields of the message. Decisions tell how long ago they
// were. "policy" is null for a server without one. The dashboard's type of it is in
// web/dashboard/document.ts.
std::string StatusJson(const admin::v1::GetStatusReply& status);
// /config: the config in force and the policy that chooses it, or null.
std::string ConfigJson(const ServerStats& stats);
// The answer to a POST of /config.
std::string SwitchedJson(std::string_view previous, std::string_view config);
// /threads.
std::string ThreadsJson(const std::vector<observe::ThreadUsage>& threads);

}  // namespace curtail::internal
