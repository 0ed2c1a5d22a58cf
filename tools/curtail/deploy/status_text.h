// SPDX-License-Identifier: Apache-2.0
//
// status_text.h - a server's answer to GetStatus, for people.
#pragma once

#include <string>
#include <vector>

#include "curtail/exec/config.h"

namespace curtail::admin::v1 {
class GetStatusReply;
}  // namespace curtail::admin::v1

namespace curtail::tool {

// Lines for a terminal: config, policy with its last ten switches, pools, queue, process.
std::string StatusText(const admin::v1::GetStatusReply& status);

// A sentence for each method that sleeps in a thread, if `config` has only so many of them. Only a server that has run under
// auto knows such methods.
std::vector<std::string> BlockingNotes(const admin::v1::GetStatusReply& status, const Config& config);

}  // namespace curtail::tool
