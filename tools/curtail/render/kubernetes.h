// SPDX-License-Identifier: Apache-2.0
//
// kubernetes.h - a plan as objects of Kubernetes, with markers (markers.h) for the values of a chart. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "tools/curtail/render/workloads.h"
#include "tools/curtail/render/yaml.h"

namespace curtail::tool {

// One object, and the values that must all be true for it to exist.
struct Object {
  Yaml yaml;
  std::vector<std::string> conditions = {};
};

// Those of one service; `file` is "leaf.yaml".
struct ObjectFile {
  std::string file;
  std::vector<Object> objects;
};

// A job that runs `command` once, in the image of the application.
Yaml LoadJob(const Plan& plan, const std::vector<std::string>& command);

// A file for each service, and one for what fills its stores.
std::vector<ObjectFile> KubernetesObjects(const Plan& plan);

}  // namespace curtail::tool
