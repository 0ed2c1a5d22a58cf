// SPDX-License-Identifier: Apache-2.0
//
// child.h - the server processes of one measurement, and what they consumed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "net.h"

namespace curtail::bench {

// What a process has consumed since it started, all threads together.
struct Usage {
  double cpu_us = 0;
  double resident_mib = 0;  // what it holds in memory now
  uint64_t context_switches = 0;
  // Retired instructions; nothing where the kernel does not let us count.
  std::optional<uint64_t> user_instructions;
  std::optional<uint64_t> kernel_instructions;
};

// What to execute: `file` with `argv`, whose first word is a name.
struct Command {
  std::string file;
  std::vector<std::string> argv;
};

// A Child is a process that serves. It dies with the object, and with this process.
class Child {
 public:
  // Starts `command`, which is told by kReadyFdFlag where to write the address that it serves.
  static absl::StatusOr<std::unique_ptr<Child>> Launch(Command command);
  // Kills, by pid, and waits for the end. The servers hold nothing that is worth a graceful stop.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Waits for the address, no longer than `timeout`.
  absl::Status AwaitAddress(Nanos timeout);
  // REQUIRES: AwaitAddress() was OK.
  const std::string& address() const { return address_; }
  Usage ReadUsage() const;
  // Stops the process from running, all of its threads when this returns; and lets it run again.
  void Pause();
  void Resume();
  // SIGTERM, then waits for the end. DEADLINE_EXCEEDED when that does not come.
  absl::Status Terminate(Nanos timeout);

 private:
  Child(pid_t pid, Fd ready) : pid_(pid), ready_(std::move(ready)) {}

  const pid_t pid_;
  Fd ready_;
  std::string address_;
  Fd user_counter_;
  Fd kernel_counter_;
  Fd switch_counter_;
};

// The descriptor on which a child writes its address, as its command line names it.
inline constexpr char kReadyFdFlag[] = "--ready-fd";

}  // namespace curtail::bench
