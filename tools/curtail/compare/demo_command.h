// SPDX-License-Identifier: Apache-2.0
//
// demo_command.h - `curtail demo`: image search on this machine learns which threading model suits which load, and is
// then compared with configs and policies that do not.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "apps/shipped/application.h"
#include "curtail/term/console.h"

namespace curtail::tool {

struct DemoFlags {
  std::string configs = "auto,SIB1,SIP1,SDB1-16,SDB1-50";
  std::string loads = "200,500,1k,2k,4k";
  std::string policies;  // empty: those of DemoPolicies()
  apps::ApplicationOptions application{{.judged = 500}};
  std::string html = "curtail-demo.html";
  std::string json;
  std::string profile;  // keeps the profile here
  uint64_t seed = 1;
  bool quick = false;
};

// Runs it. Returns the exit code. No process that it starts is left when it returns, or when this process
// dies.
int RunDemo(const DemoFlags& flags, Console& console, const std::atomic<bool>& stop);

}  // namespace curtail::tool
