// SPDX-License-Identifier: Apache-2.0
//
// servers.h - the processes of one stack: its mid-tier and its leaves.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/deploy/process/process.h"
#include "options.h"
#include "stack.h"

namespace curtail::bench {

// A process that serves until this ends.
struct ServerProcess {
  std::unique_ptr<deploy::Process> process;
  std::string address;
};

// The mid-tier goes first at the end, before what it calls.
struct Servers {
  std::vector<ServerProcess> leaves;
  ServerProcess mid;
};

// Starts all of them; they serve when this returns. `mid_wrapper` is a command that runs the mid-tier's, such as
// valgrind, by its full path; mostly empty.
absl::StatusOr<Servers> StartServers(const StackInfo& stack, const Setup& setup,
                                     const std::string& leaf_config,
                                     const std::vector<std::string>& mid_wrapper = {});

}  // namespace curtail::bench
