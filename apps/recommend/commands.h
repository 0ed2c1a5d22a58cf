// SPDX-License-Identifier: Apache-2.0
//
// commands.h - the commands of `recommend` that serve nothing.
#pragma once

#include <vector>

#include "curtail/rpc/host.h"

namespace curtail::recommend {

std::vector<HostCommand> Commands();

}  // namespace curtail::recommend
