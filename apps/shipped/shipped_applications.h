// SPDX-License-Identifier: Apache-2.0
//
// shipped_applications.h - the applications of apps/, made part of this program by the build.
#pragma once

#include <span>
#include <string_view>

#include "apps/kit/load/requests.h"

namespace curtail::apps {

struct ShippedApplication {
  std::string_view name;
  std::string_view topology;  // its topology.yaml
  AppRequests (*requests)();
};

std::span<const ShippedApplication> ShippedApplications();

}  // namespace curtail::apps
