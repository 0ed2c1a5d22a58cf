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

#include "absl/status/statusor.h"
#include "net.h"

namespace curtail::bench {

// What a process has consumed since it started, all threads together.
struct Usage {
  double cpu_us = 0;
  uint64_t context_switches = 0;
  // Retired instructions; nothing where the kernel does not let us count.
  std::optional<uint64_t> user_instructions;
  std::optional<uint64_t> kernel_instructions;
};

// A Child is a process running this program in another role. It dies with the object, and with this process.
class Child {
 public:
  // Runs this program with `args` and waits, 10 s at most, for the address that it serves.
  static absl::StatusOr<std::unique_ptr<Child>> Start(const std::vector<std::string>& args);
  // Kills, by pid, and waits for the end. The servers hold nothing that is worth a graceful stop.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  const std::string& address() const { return address_; }
  Usage ReadUsage() const;

 private:
  explicit Child(pid_t pid) : pid_(pid) {}
  absl::Status AwaitAddress(Fd ready);

  const pid_t pid_;
  std::string address_;
  Fd user_counter_;
  Fd kernel_counter_;
  Fd switch_counter_;
};

// The descriptor on which a child writes its address, as its command line names it.
inline constexpr char kReadyFdFlag[] = "--ready-fd";

}  // namespace curtail::bench
