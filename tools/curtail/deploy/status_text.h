// SPDX-License-Identifier: Apache-2.0
//
// status_text.h - a server's answer to GetStatus, for people and for programs.
#pragma once

#include <string>

namespace curtail::admin::v1 {
class GetStatusReply;
}  // namespace curtail::admin::v1

namespace curtail::tool {

// Lines for a terminal: config, policy with its last ten switches, pools, queue, process.
std::string StatusText(const admin::v1::GetStatusReply& status);
// A JSON object with schema_version and the fields of the message. Decisions tell how long ago they were. "policy" is null
// for a server without one.
std::string StatusJson(const admin::v1::GetStatusReply& status);

}  // namespace curtail::tool
