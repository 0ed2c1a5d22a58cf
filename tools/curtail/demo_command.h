// SPDX-License-Identifier: Apache-2.0
//
// demo_command.h - `curtail demo`: image search on this machine under each threading model, at several loads.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "console.h"

namespace curtail::tool {

inline constexpr char kQuickLoads[] = "100,400";  // of --quick

struct DemoFlags {
  std::string configs = "SIB1,SIP1,SDB1-16,SDP1-16,FIB1";
  std::string loads = "100,250,500,1000";
  std::string data = "fashion-mnist";
  std::string queries;   // those of the corpus when empty
  std::string hdsearch;  // the executable; found beside this one when empty
  std::string json;
  size_t k = 10;
  uint64_t seed = 1;
  bool quick = false;
};

// Runs it. Returns the exit code. No process that it starts is left when it returns, or when this process
// dies.
int RunDemo(const DemoFlags& flags, Console& console, const std::atomic<bool>& stop);

}  // namespace curtail::tool
