// SPDX-License-Identifier: Apache-2.0
//
// status_text.h - a server's answer to GetStatus, for people.
#pragma once

#include <string>

namespace curtail::admin::v1 {
class GetStatusReply;
}  // namespace curtail::admin::v1

namespace curtail::tool {

// Lines for a terminal: config, policy with its last ten switches, pools, queue, process.
std::string StatusText(const admin::v1::GetStatusReply& status);

}  // namespace curtail::tool
