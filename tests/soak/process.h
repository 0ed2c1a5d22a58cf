// SPDX-License-Identifier: Apache-2.0
//
// process.h - a server of the soak test in a process of its own.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/deploy/process/process.h"

namespace curtail::soak {

// The memory and descriptors of a process.
struct Held {
  double resident_mib = 0;
  double heap_mib = 0;  // given out by malloc(); 0: not known
  int descriptors = 0;
};
// Without the heap.
Held HeldBy(pid_t pid);

// A ServerProcess starts a program, and starts it again at the same addresses. It is killed with this object.
// Thread-compatible.
class ServerProcess {
 public:
  // `arguments[0]` is the program. Its stderr goes to the end of the file `log`.
  ServerProcess(std::string name, std::vector<std::string> arguments, std::string log);
  ~ServerProcess() { Kill(); }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  // Returns once it listens. Tries again for kMaxTestWait, as its port may have been taken meanwhile.
  // Errors: UNAVAILABLE, with the end of its log.
  absl::Status Start();
  void Kill();
  // By SIGTERM. Errors: those of deploy::Process::End().
  absl::Status Terminate(Nanos bound) { return process_->End(bound); }
  // INTERNAL if it has ended by itself.
  absl::Status CheckRuns();

  const std::string& name() const { return name_; }
  pid_t pid() const { return process_->pid(); }
  // The first address that it listens on; with its port, for which the arguments had 0.
  const std::string& address() const { return address_; }

 private:
  absl::Status TryStart();

  const std::string name_;
  const std::string log_;
  std::vector<std::string> arguments_;
  std::string address_;
  std::unique_ptr<deploy::Process> process_;
};

}  // namespace curtail::soak
