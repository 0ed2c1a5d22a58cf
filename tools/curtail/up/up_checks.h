// SPDX-License-Identifier: Apache-2.0
//
// up_checks.h - finds mistakes before anything is started: what the services, or the machine, would refuse.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "curtail/deploy/topology.h"

namespace curtail::tool {

// Checks the policies, profiles and CPUs of all services that this machine starts. Relative paths start at the current
// folder. Only policies of the library are known: an unknown name is wrong where `shipped`, and where it is near a known
// one. Errors: INVALID_ARGUMENT that names the service.
absl::Status CheckServices(const deploy::Topology& topology, bool shipped);

// Looks for the programs of these services, and for those of --exec. Errors: NOT_FOUND, which says where they are missing.
absl::Status CheckPrograms(const deploy::Topology& topology);

// "8080", "HOST:PORT". Errors: INVALID_ARGUMENT.
absl::Status CheckDashboard(const std::string& text);

}  // namespace curtail::tool
