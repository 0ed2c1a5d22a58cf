// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/version.h"

namespace curtail {

std::string_view Version() { return CURTAIL_VERSION; }
std::string_view UserAgent() { return "curtail/" CURTAIL_VERSION; }

}  // namespace curtail
