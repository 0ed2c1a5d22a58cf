// SPDX-License-Identifier: Apache-2.0
//
// process.h - a server in a process of its own, and what it consumes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "net.h"

namespace curtail::bench {

// What a process has consumed since it started, all threads together.
struct Usage {
  double cpu_us = 0;
  double user_ticks = 0;  // coarse: the kernel samples which half the time goes to
  double system_ticks = 0;
  double context_switches = 0;
  double system_calls = 0;
  double copied = 0;  // MSG_ZEROCOPY sends that were copied
  // Retired instructions; nothing where the kernel does not let us count.
  std::optional<double> user_instructions;
  std::optional<double> kernel_instructions;
};

// For a server in a process of its own: says why it failed, and ends the process.
[[noreturn]] void Die(const absl::Status& status);

// A Process dies with the object, and with this process.
class Process {
 public:
  // REQUIRES: this process has one thread. `run` gets the counters, which this process reads, too.
  static absl::StatusOr<std::unique_ptr<Process>> Start(const std::function<void(Counters*)>& run);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  Usage ReadUsage() const;

 private:
  explicit Process(Counters* counters) : counters_(counters) {}

  pid_t pid_ = -1;
  Counters* const counters_;  // kCounterSlots of them, shared with the child
  Fd user_counter_;
  Fd kernel_counter_;
  Fd switch_counter_;
};

}  // namespace curtail::bench
