// SPDX-License-Identifier: Apache-2.0
//
// topology_flags.h - the flags by which a command line changes a topology.
#pragma once

#include <CLI/CLI.hpp>

#include "curtail/deploy/topology.h"

namespace curtail::tool {

// Parsing writes into `changes`, which outlive `command`.
void AddTopologyFlags(CLI::App& command, deploy::TopologyChanges* changes);

}  // namespace curtail::tool
