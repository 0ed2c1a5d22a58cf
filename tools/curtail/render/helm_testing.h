// SPDX-License-Identifier: Apache-2.0
//
// helm_testing.h - fills in a template of a chart as Helm does, for tests: it reads what Helm reads and shares no code with
// what renders. It knows the part of Helm's language that our charts use; anything else fails the test.
#pragma once

#include <yaml-cpp/yaml.h>

#include <string>

namespace curtail::tool {

// The document that Helm makes of `text`. `known` has what Helm knows: the maps Values and Release.
std::string FillInTemplate(const std::string& text, const YAML::Node& known);

}  // namespace curtail::tool
