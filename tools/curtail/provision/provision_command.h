// SPDX-License-Identifier: Apache-2.0
//
// provision_command.h - `curtail provision`: how an application's services should share this machine.
#pragma once

#include <atomic>
#include <string>

#include "apps/shipped/application.h"
#include "curtail/term/console.h"
#include "tools/curtail/load/load_flags.h"

namespace curtail::tool {

struct ProvisionFlags {
  ProvisionFlags() { load.rps = 50, load.judged = 0; }

  std::string application;  // a name, or the path of a topology file
  deploy::TopologyChanges changes;
  LoadFlags load;  // the requests, the load at the start, the seed
  std::string qos = "p99<50ms";
  std::string levers;  // empty: those that this machine has
  double cpu = 0;      // of each instance at the start; 0: a quarter of `cpus` in equal parts
  double cpus = 0;     // that instances may have together; 0: those of this machine
  std::string config;  // of every curtail service at the start; empty: the topology's
  int threads = 32;    // that a pool may have
  double step = 2;     // the factor of a step
  double bound_percent = 10;
  double seconds = 1;  // of a turn
  std::string time = "10m";
  std::string start_timeout = "2m";
  std::string out;  // empty: APP-provisioned.yaml
  std::string json;
  std::string html;
  std::string command;  // the command line, without secrets
  bool dry_run = false;
};

// Starts the application, provisions it, ends it. The exit code.
int RunProvision(const ProvisionFlags& flags, Console& console, const std::atomic<bool>& stop);

}  // namespace curtail::tool
