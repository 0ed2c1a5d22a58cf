// SPDX-License-Identifier: Apache-2.0
//
// process.h - a server of the soak test in a process of its own.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "curtail/base/clock.h"

namespace curtail::soak {

// The memory and descriptors of a process.
struct Held {
  double resident_mib = 0;
  double heap_mib = 0;  // given out by malloc(); 0: not known
  int descriptors = 0;
};
// Without the heap.
Held HeldBy(pid_t pid);

// A ServerProcess starts a program, and starts it again at the same addresses. Thread-compatible.
class ServerProcess {
 public:
  // `arguments[0]` is the program. Its stderr goes to the end of the file `log`.
  ServerProcess(std::string name, std::vector<std::string> arguments, std::string log);
  // Kills it.
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  // Returns once it listens. Tries again for kMaxTestWait, as its port may have been taken meanwhile.
  // Errors: UNAVAILABLE, with the end of its log.
  absl::Status Start();
  // By SIGKILL.
  void Kill();
  // By SIGTERM. Errors: DEADLINE_EXCEEDED if it has not ended within `bound`; INTERNAL for another code than 0.
  absl::Status Terminate(Nanos bound);
  // INTERNAL if it has ended by itself.
  absl::Status CheckRuns();

  const std::string& name() const { return name_; }
  pid_t pid() const { return pid_; }
  // The first address that it listens on; with its port, for which the arguments had 0.
  const std::string& address() const { return address_; }

 private:
  bool TryStart();
  // True if it has ended, within `bound`; `code_` then is its wait status.
  bool AwaitEnd(Nanos bound);
  std::string LogEnd() const;

  const std::string name_;
  const std::string log_;
  std::vector<std::string> arguments_;
  std::string address_;
  pid_t pid_ = -1;
  int code_ = 0;
};

}  // namespace curtail::soak
