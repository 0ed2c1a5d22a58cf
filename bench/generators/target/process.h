// SPDX-License-Identifier: Apache-2.0
//
// process.h - runs a program to its end and tells what it printed and what CPU time it took; and processes that only
// take CPU time.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"

namespace curtail::bench {

struct ProcessOptions {
  std::vector<std::string> argv;  // the first word is the path of the program
  std::optional<int> cpu;         // the only one it may use; by default as this process
  int nice = 0;
  Nanos timeout = std::chrono::seconds(60);  // after which it is killed
};

struct ProcessResult {
  int exit_code = -1;  // 128 + N: signal N ended it
  std::string out;
  std::string err;
  Nanos cpu{0};  // user and system, all threads (wait4)
  Nanos wall{0};
};

// Blocks until the program has ended; it does not outlive the calling thread. Errors: DEADLINE_EXCEEDED when it had to
// be killed; INTERNAL when it could not be started. A program that does not exist ends with code 127.
absl::StatusOr<ProcessResult> RunProcess(const ProcessOptions& options);

// A BusyProcess takes all it can get of one CPU, at normal priority, until it is destroyed.
class BusyProcess {
 public:
  static absl::StatusOr<std::unique_ptr<BusyProcess>> Start(int cpu);
  ~BusyProcess();
  BusyProcess(const BusyProcess&) = delete;
  BusyProcess& operator=(const BusyProcess&) = delete;

 private:
  explicit BusyProcess(pid_t pid) : pid_(pid) {}
  const pid_t pid_;
};

// A CPU that this process may use.
int AnyCpu();

}  // namespace curtail::bench
