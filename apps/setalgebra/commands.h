// SPDX-License-Identifier: Apache-2.0
//
// commands.h - the commands of `setalgebra` that serve nothing.
#pragma once

#include <vector>

#include "curtail/rpc/host.h"

namespace curtail::setalgebra {

std::vector<HostCommand> Commands();

}  // namespace curtail::setalgebra
