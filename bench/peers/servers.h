// SPDX-License-Identifier: Apache-2.0
//
// servers.h - the processes of one stack: its mid-tier and its leaves.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "child.h"
#include "options.h"
#include "stack.h"

namespace curtail::bench {

// The mid-tier goes first at the end, before what it calls.
struct Servers {
  std::vector<std::unique_ptr<Child>> leaves;
  std::unique_ptr<Child> mid;
};

// Starts all of them; they serve when this returns. `mid_wrapper` is a command that runs the mid-tier's, such as
// valgrind, by its full path; mostly empty.
absl::StatusOr<Servers> StartServers(const StackInfo& stack, const Setup& setup,
                                     const std::string& leaf_config,
                                     const std::vector<std::string>& mid_wrapper = {});

}  // namespace curtail::bench
