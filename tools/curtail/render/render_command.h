// SPDX-License-Identifier: Apache-2.0
//
// render_command.h - `curtail render`: writes a topology for Kubernetes, Helm or Docker Compose.
#pragma once

#include <string>

#include "apps/shipped/application.h"
#include "curtail/term/console.h"
#include "tools/curtail/render/workloads.h"

namespace curtail::tool {

struct RenderFlags {
  std::string application;  // a name, or the path of a topology file
  std::string to;           // kubernetes, helm or compose
  std::string output;       // a folder; empty: stdout
  deploy::TopologyChanges changes;
  RenderOptions options;
};

// Returns the exit code.
int RunRender(const RenderFlags& flags, Console& console);

}  // namespace curtail::tool
