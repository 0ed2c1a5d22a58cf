// SPDX-License-Identifier: Apache-2.0
//
// commands.h - the commands of `router` that serve nothing.
#pragma once

#include <vector>

#include "curtail/rpc/host.h"

namespace curtail::router {

std::vector<HostCommand> Commands();

}  // namespace curtail::router
