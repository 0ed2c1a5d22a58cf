// SPDX-License-Identifier: Apache-2.0
//
// shapes.h - the shapes of load that ship with curtail. The build makes their source from shapes/*.csv.
#pragma once

#include <span>
#include <string_view>

namespace curtail::internal {

struct ShippedShape {
  std::string_view name;  // as in a spec: "large-variation"
  std::string_view csv;   // rates relative to the peak; the times start at 0
};

// In alphabetical order.
std::span<const ShippedShape> ShippedShapes();

}  // namespace curtail::internal
