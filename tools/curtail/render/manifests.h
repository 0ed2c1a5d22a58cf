// SPDX-License-Identifier: Apache-2.0
//
// manifests.h - a plan as files: plain manifests of Kubernetes, a chart of Helm, a file of Docker Compose. Pure functions.
//
// The manifests are the chart with its values filled in.
#pragma once

#include <string>
#include <vector>

#include "tools/curtail/render/workloads.h"

namespace curtail::tool {

struct RenderedFile {
  std::string path;  // below the folder of the output
  std::string text;
};

// The job of a load test with this command. REQUIRES: no word of it HasMarkers().
std::string LoadJobManifest(const Plan& plan, const std::vector<std::string>& command);

std::vector<RenderedFile> PlainManifests(const Plan& plan);
std::vector<RenderedFile> HelmChart(const Plan& plan);
std::vector<RenderedFile> ComposeFile(const Plan& plan);

}  // namespace curtail::tool
