// SPDX-License-Identifier: Apache-2.0
//
// utf8.h - tells UTF-8 from other bytes.
#pragma once

#include <string_view>

namespace curtail::gateway::internal {

bool IsUtf8(std::string_view text);

}  // namespace curtail::gateway::internal
