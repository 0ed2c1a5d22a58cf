// SPDX-License-Identifier: Apache-2.0
//
// host_testing.h - runs a host on a command line that does not come to serving.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "curtail/rpc/host.h"

namespace curtail {

struct HostRun {
  int code = 0;
  std::string out;
  std::string err;
};

// REQUIRES: the program ends by itself, as it does for a command, --memory or an error.
inline HostRun RunHost(const HostProgram& program, std::vector<std::string> args) {
  args.insert(args.begin(), program.name);
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  HostRun run;
  run.code = HostMain(static_cast<int>(argv.size()), argv.data(), program);
  run.out = testing::internal::GetCapturedStdout();
  run.err = testing::internal::GetCapturedStderr();
  return run;
}

}  // namespace curtail
