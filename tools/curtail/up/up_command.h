// SPDX-License-Identifier: Apache-2.0
//
// up_command.h - `curtail up`: starts an application's processes, looks after them, and ends them.
#pragma once

#include <atomic>
#include <string>

#include "apps/shipped/application.h"
#include "curtail/term/console.h"

namespace curtail::tool {

struct UpFlags {
  std::string application;  // a name, or the path of a topology file
  bool detach = false;
  // Of the service that clients call; empty: what the topology has.
  std::string config;
  std::string policy;
  std::string profile;
  deploy::TopologyChanges changes;
  std::string trace_sample;  // the share of requests; empty: the services' default
  std::string trace_to;      // of every curtail service whose command says nothing of traces
  std::string fence;         // of every curtail service whose command has none; empty: the services' default
  std::string dashboard;     // an address or a port; empty: none
  bool tls = false;
  bool force = false;
  bool dry_run = false;
  std::string start_timeout;  // empty: 2 min, at the scale of the paper 15
};

// Returns when the application is down again, or, detached, when it is up. The exit code.
int RunUp(const UpFlags& flags, Console& console, const std::atomic<bool>& stop);

}  // namespace curtail::tool
