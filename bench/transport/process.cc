// SPDX-License-Identifier: Apache-2.0
//
// The child waits for one byte until its counters are attached, so that they count the threads it starts.
#include "process.h"

#include <linux/perf_event.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <iostream>

#include <fstream>
#include <string>

#include "mid.h"

namespace curtail::bench {
namespace {

constexpr size_t kSharedBytes = kCounterSlots * sizeof(Counters);

// Counts for `pid` and the threads it will start. An empty Fd where that is not possible.
Fd Count(pid_t pid, uint32_t type, uint64_t what, bool user, bool kernel) {
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = type;
  attributes.config = what;
  attributes.inherit = 1;
  attributes.exclude_user = !user;
  attributes.exclude_kernel = !kernel;
  attributes.exclude_hv = 1;
  return Fd(static_cast<int>(syscall(SYS_perf_event_open, &attributes, pid, -1, -1, PERF_FLAG_FD_CLOEXEC)));
}

std::optional<double> ReadCounter(const Fd& counter) {
  uint64_t value = 0;
  if (counter.get() < 0 || read(counter.get(), &value, sizeof(value)) != sizeof(value)) return std::nullopt;
  return static_cast<double>(value);
}

[[noreturn]] void BecomeServer(pid_t parent, int go, const std::function<void(Counters*)>& run,
                               Counters* counters) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before the line above
  char byte = 0;
  if (read(go, &byte, 1) != 1) _exit(1);
  run(counters);
  _exit(0);
}

// Fields 14 and 15 of /proc/PID/stat, counted from behind the name in parentheses.
void ReadTicks(pid_t pid, Usage* usage) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string word;
  while (file >> word && word.back() != ')') {
  }
  for (int field = 3; field < 14 && file >> word; ++field) {
  }
  file >> usage->user_ticks >> usage->system_ticks;
}

}  // namespace

void Die(const absl::Status& status) {
  std::cerr << "transport_bench: a server failed: " << status.ToString() << "\n";
  _exit(1);
}

absl::StatusOr<std::unique_ptr<Process>> Process::Start(const std::function<void(Counters*)>& run) {
  void* shared = mmap(nullptr, kSharedBytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_SHARED, -1, 0);
  if (shared == MAP_FAILED) return ErrnoStatus("mmap");
  auto* counters = static_cast<Counters*>(shared);
  for (size_t i = 0; i < kCounterSlots; ++i) new (&counters[i]) Counters;
  std::unique_ptr<Process> process(new Process(counters));
  int ends[2];
  if (pipe(ends) != 0) return ErrnoStatus("pipe");
  const Fd go_read(ends[0]), go_write(ends[1]);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return ErrnoStatus("fork");
  if (pid == 0) BecomeServer(parent, go_read.get(), run, counters);
  process->pid_ = pid;
  process->user_counter_ = Count(pid, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, true, false);
  process->kernel_counter_ = Count(pid, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, false, true);
  process->switch_counter_ = Count(pid, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, true, true);
  if (write(go_write.get(), "g", 1) != 1) return ErrnoStatus("write");
  return process;
}

Process::~Process() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  munmap(counters_, kSharedBytes);
}

Usage Process::ReadUsage() const {
  Usage usage;
  clockid_t clock;
  timespec time{};
  if (clock_getcpuclockid(pid_, &clock) == 0 && clock_gettime(clock, &time) == 0) {
    usage.cpu_us = static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
  }
  ReadTicks(pid_, &usage);
  usage.context_switches = ReadCounter(switch_counter_).value_or(0);
  for (size_t i = 0; i < kCounterSlots; ++i) {
    usage.system_calls += static_cast<double>(counters_[i].system_calls.load(std::memory_order_relaxed));
    usage.copied += static_cast<double>(counters_[i].zero_copies_copied.load(std::memory_order_relaxed));
  }
  usage.user_instructions = ReadCounter(user_counter_);
  usage.kernel_instructions = ReadCounter(kernel_counter_);
  return usage;
}

}  // namespace curtail::bench
