// SPDX-License-Identifier: Apache-2.0
//
// version.h - the release that this library belongs to.
#pragma once

#include <string_view>

namespace curtail {

// "0.2.0", as CMake's project() has it. "curtail/0.2.0" for user-agent fields.
std::string_view Version();
std::string_view UserAgent();

}  // namespace curtail
