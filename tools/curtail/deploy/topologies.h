// SPDX-License-Identifier: Apache-2.0
//
// topologies.h - the topology files of apps/, made part of this program by the build.
#pragma once

#include <span>
#include <string_view>

namespace curtail::tool {

struct ShippedTopology {
  std::string_view name;
  std::string_view yaml;
};

std::span<const ShippedTopology> ShippedTopologies();

}  // namespace curtail::tool
