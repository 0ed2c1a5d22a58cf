// SPDX-License-Identifier: Apache-2.0
//
// process.h - runs a program to its end and tells what it printed and what CPU time it took; and processes that only
// take CPU time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/deploy/process/process.h"

namespace curtail::bench {

struct ProgramOptions {
  std::vector<std::string> argv;  // the first word is the path of the program
  std::optional<int> cpu;         // the only one it may use; by default as this process
  int nice = 0;
  Nanos timeout = std::chrono::seconds(60);  // after which it is killed
};

struct ProgramResult {
  int exit_code = -1;  // 128 + N: signal N ended it
  std::string out;
  std::string err;
  Nanos cpu{0};  // user and system, all threads and its own children
};

// Blocks until the program has ended; it does not outlive the calling thread. Errors: DEADLINE_EXCEEDED when it had to
// be killed; those of Process::Spawn().
absl::StatusOr<ProgramResult> RunProgram(const ProgramOptions& options);

// A process that takes all it can get of one CPU, at normal priority.
absl::StatusOr<std::unique_ptr<deploy::Process>> StartBusyProcess(int cpu);

// A CPU that this process may use.
int AnyCpu();

}  // namespace curtail::bench
