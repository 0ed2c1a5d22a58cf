// SPDX-License-Identifier: Apache-2.0
//
// commands.h - the commands of `hdsearch` that serve nothing: offline.h on the command line.
#pragma once

#include <vector>

#include "curtail/rpc/host.h"

namespace curtail::hdsearch {

std::vector<HostCommand> Commands();

}  // namespace curtail::hdsearch
