// SPDX-License-Identifier: Apache-2.0
//
// The child is forked, waits for one byte until its instruction counters are attached, and then executes its
// program, so that nothing of the parent's state leaks into the server.
#include "child.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "curtail/base/clock.h"

namespace curtail::bench {
namespace {

struct Pipe {
  Fd read;
  Fd write;
};

absl::StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus("pipe");
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

// Counts for `pid` and the threads it will start. An empty Fd where that is not possible, as instructions are
// not in many virtual machines.
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

std::optional<uint64_t> ReadCounter(const Fd& counter) {
  uint64_t value = 0;
  if (counter.get() < 0 || read(counter.get(), &value, sizeof(value)) != sizeof(value)) return std::nullopt;
  return value;
}

// Between fork and exec: only calls that are safe there.
[[noreturn]] void BecomeServer(pid_t parent, int go, int ready, const char* file, char* const* argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before the line above
  char byte = 0;
  if (read(go, &byte, 1) != 1) _exit(1);
  fcntl(ready, F_SETFD, 0);
  execv(file, argv);
  _exit(127);
}

// Of the threads still alive: what there is without a counter.
uint64_t ContextSwitches(pid_t pid) {
  uint64_t total = 0;
  std::error_code ignored;
  for (const auto& task :
       std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/task"), ignored)) {
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);) {
      uint64_t value = 0;
      const size_t colon = line.find(':');
      if (absl::StrContains(line, "ctxt_switches") && absl::SimpleAtoi(line.substr(colon + 1), &value))
        total += value;
    }
  }
  return total;
}

double ResidentMib(pid_t pid) {
  std::ifstream statm(absl::StrCat("/proc/", pid, "/statm"));
  double size = 0, resident = 0;
  statm >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Child>> Child::Launch(Command command) {
  absl::StatusOr<Pipe> go = MakePipe();
  if (!go.ok()) return go.status();
  absl::StatusOr<Pipe> ready = MakePipe();
  if (!ready.ok()) return ready.status();
  command.argv.insert(command.argv.end(), {kReadyFdFlag, absl::StrCat(ready->write.get())});
  std::vector<char*> argv;
  for (std::string& word : command.argv) argv.push_back(word.data());
  argv.push_back(nullptr);

  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return ErrnoStatus("fork");
  if (pid == 0) BecomeServer(parent, go->read.get(), ready->write.get(), command.file.c_str(), argv.data());
  // The child's end closes here, so that its death shows as the end of the pipe.
  std::unique_ptr<Child> child(new Child(pid, std::move(ready->read)));
  child->user_counter_ = Count(pid, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, true, false);
  child->kernel_counter_ = Count(pid, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, false, true);
  child->switch_counter_ = Count(pid, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, true, true);
  if (write(go->write.get(), "g", 1) != 1) return ErrnoStatus("write");
  return child;
}

absl::Status Child::AwaitAddress(Nanos timeout) {
  const Deadline deadline = Deadline::In(timeout);
  while (!absl::EndsWith(address_, "\n")) {
    pollfd event{.fd = ready_.get(), .events = POLLIN};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.Remaining());
    if (poll(&event, 1, static_cast<int>(left.count())) == 0) {
      return absl::DeadlineExceededError("a server did not start in time");
    }
    char buffer[128];
    const ssize_t n = read(ready_.get(), buffer, sizeof(buffer));
    if (n <= 0) return absl::UnavailableError("a server ended before it served; see its message above");
    address_.append(buffer, static_cast<size_t>(n));
  }
  address_.pop_back();
  return absl::OkStatus();
}

void Child::Pause() {
  kill(pid_, SIGSTOP);
  siginfo_t stopped;
  // Nothing can ignore that signal, so one of the two comes.
  waitid(P_PID, static_cast<id_t>(pid_), &stopped, WSTOPPED | WEXITED | WNOWAIT);
}

void Child::Resume() { kill(pid_, SIGCONT); }

absl::Status Child::Terminate(Nanos timeout) {
  const Fd ended(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  if (ended.get() < 0) return ErrnoStatus("pidfd_open");
  kill(pid_, SIGTERM);
  pollfd event{.fd = ended.get(), .events = POLLIN};
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(timeout);
  if (poll(&event, 1, static_cast<int>(wait.count())) == 1) return absl::OkStatus();
  return absl::DeadlineExceededError("a server does not end on SIGTERM");
}

Child::~Child() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

Usage Child::ReadUsage() const {
  Usage usage;
  clockid_t clock;
  timespec time{};
  if (clock_getcpuclockid(pid_, &clock) == 0 && clock_gettime(clock, &time) == 0) {
    usage.cpu_us = static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
  }
  usage.resident_mib = ResidentMib(pid_);
  const std::optional<uint64_t> switches = ReadCounter(switch_counter_);
  usage.context_switches = switches ? *switches : ContextSwitches(pid_);
  usage.user_instructions = ReadCounter(user_counter_);
  usage.kernel_instructions = ReadCounter(kernel_counter_);
  return usage;
}

}  // namespace curtail::bench
