// SPDX-License-Identifier: Apache-2.0
//
// render_testing.h - an example topology, and what is rendered of it as YAML.
#pragma once

#include <yaml-cpp/yaml.h>

#include <map>
#include <string>
#include <vector>

#include "tools/curtail/render/manifests.h"
#include "tools/curtail/render/workloads.h"

namespace curtail::tool {

// A topology that has one of everything that a topology can say.
extern const char kShop[];

// Any problem of the topology fails the test.
Plan PlanOf(const std::string& yaml, RenderOptions options = {.image = "registry.example/shop:1.2"});

// All objects, by "KIND NAME". One that is there twice fails the test.
std::map<std::string, YAML::Node> ObjectsOf(const std::vector<RenderedFile>& files);

// Of the first container.
std::vector<std::string> ArgsOf(const YAML::Node& object);

// A load test of the example, in JSON.
std::string LoadJobOf(const Plan& plan);

}  // namespace curtail::tool
