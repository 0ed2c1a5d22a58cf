// SPDX-License-Identifier: Apache-2.0
//
// instances.h - where the services are that clients outside of the application call.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "apps/kit/load/target.h"

namespace curtail::media {

struct InstancesOptions {
  apps::Target target;  // the service `service-discovery`
  std::string service;  // empty: all
};

// Prints a line an instance, its service and its address. Errors: INVALID_ARGUMENT (the target's flags); NOT_FOUND: there is no instance of
// this service; those of the call.
absl::Status PrintInstances(const InstancesOptions& options);

}  // namespace curtail::media
