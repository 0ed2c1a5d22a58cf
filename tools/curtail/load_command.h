// SPDX-License-Identifier: Apache-2.0
//
// load_command.h - `curtail load`: an honest load test of one method of any gRPC server.
#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdint>
#include <string>

#include "console.h"

namespace curtail::tool {

// The flags as given; RunLoad() checks and converts them.
struct LoadFlags {
  std::string target;
  double rps = 0;
  int closed = 0;
  std::string arrivals = "poisson";
  std::string duration = "10s";
  std::string warmup = "2s";
  std::string timeout = "1s";
  std::string spin = "120us";
  uint64_t seed = 1;
  int connections = 1;
  bool realtime = true;

  std::string workload;
  std::string data = "fashion-mnist";
  std::string queries;
  size_t k = 10;
  std::string method;
  std::string data_hex;
  std::string data_file;

  std::string json;
  std::string fail_if;
  bool dry_run = false;
};

// Declares the sub-command; `flags` outlives the parsing.
CLI::App* AddLoadCommand(CLI::App& app, LoadFlags* flags);

// Runs it. Returns the exit code.
int RunLoad(const LoadFlags& flags, Console& console, const std::atomic<bool>& stop);

}  // namespace curtail::tool
