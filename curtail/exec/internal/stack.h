// SPDX-License-Identifier: Apache-2.0
//
// stack.h - stacks for fibers, with a guard below that turns an overrun into a diagnosed abort.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"

namespace curtail {

// A FiberStack is anonymous memory: untouched pages cost address space only. Below it lies a guard
// that no code may touch. It is wide enough that a large frame does not step across it.
class FiberStack {
 public:
  static constexpr size_t kGuardBytes = 64u << 10;

  // `bytes` is rounded up to whole pages. Errors: RESOURCE_EXHAUSTED without memory, or when the
  // process has too many mappings (vm.max_map_count; each stack takes two).
  static absl::StatusOr<FiberStack> New(size_t bytes);
  FiberStack(FiberStack&& other) noexcept;
  FiberStack& operator=(FiberStack&&) = delete;
  ~FiberStack();

  char* top() const { return mapping_ + kGuardBytes + size_; }
  char* bottom() const { return mapping_ + kGuardBytes; }
  size_t size() const { return size_; }
  bool InGuard(const void* address) const {
    return reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(mapping_) < kGuardBytes;
  }

 private:
  FiberStack(char* mapping, size_t size) : mapping_(mapping), size_(size) {}
  char* mapping_;
  const size_t size_;
};

// Installs, once for the process, a handler of SIGSEGV and SIGBUS for faults in guards. `describe`
// writes a description, async-signal-safely, and returns true if the fault is its own; then the
// process aborts. All other faults go on to the handler that was there before.
void InstallOverrunHandler(bool (*describe)(const void* fault));

// Gives the present thread a stack for signal handlers. Without one the handler above could not
// run.
void EnsureSignalStack();

}  // namespace curtail
