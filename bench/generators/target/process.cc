// SPDX-License-Identifier: Apache-2.0
#include "process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace curtail::bench {
namespace {

// Owns a descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() { Close(); }
  int get() const { return fd_; }
  void Close() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

struct Pipe {
  Descriptor read;
  Descriptor write;
};

absl::Status ErrnoError(const char* what) {
  return absl::InternalError(absl::StrCat(what, ": ", std::strerror(errno)));
}

absl::StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoError("pipe");
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

// Between fork and exec: only calls that are safe there.
void StayOnCpu(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof(set), &set) != 0) _exit(126);
}

void DieWith(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(126);  // it died before the line above
}

[[noreturn]] void Become(pid_t parent, const ProcessOptions& options, int out, int err, char* const* argv) {
  DieWith(parent);
  if (options.cpu) StayOnCpu(*options.cpu);
  if (options.nice != 0 && setpriority(PRIO_PROCESS, 0, options.nice) != 0) _exit(126);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  execv(argv[0], argv);
  _exit(127);
}

// Appends what there is; false at the end of the stream.
bool ReadSome(int fd, std::string* to) {
  char buffer[16384];
  const ssize_t n = read(fd, buffer, sizeof(buffer));
  if (n > 0) to->append(buffer, static_cast<size_t>(n));
  return n > 0 || (n < 0 && errno == EINTR);
}

// Reads both streams until the process has ended. False at the deadline.
bool Follow(int process, Descriptor& out, Descriptor& err, Deadline deadline, ProcessResult* result) {
  while (true) {
    // A negative descriptor is ignored.
    pollfd events[3] = {{out.get(), POLLIN, 0}, {err.get(), POLLIN, 0}, {process, POLLIN, 0}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.Remaining()).count();
    const int ready = poll(events, 3, static_cast<int>(std::min<int64_t>(left, 1'000'000)));
    if (ready == 0) return false;
    if (ready < 0) continue;  // EINTR
    if (events[0].revents != 0 && !ReadSome(out.get(), &result->out)) out.Close();
    if (events[1].revents != 0 && !ReadSome(err.get(), &result->err)) err.Close();
    const bool drained = events[0].revents == 0 && events[1].revents == 0;
    if (events[2].revents != 0 && drained) return true;
  }
}

Nanos FromTimeval(const timeval& t) {
  return std::chrono::seconds(t.tv_sec) + std::chrono::microseconds(t.tv_usec);
}

}  // namespace

absl::StatusOr<ProcessResult> RunProcess(const ProcessOptions& options) {
  std::vector<char*> argv;
  for (const std::string& word : options.argv) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  absl::StatusOr<Pipe> out = MakePipe();
  if (!out.ok()) return out.status();
  absl::StatusOr<Pipe> err = MakePipe();
  if (!err.ok()) return err.status();
  const TimePoint began = Now();
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return ErrnoError("fork");
  if (pid == 0) Become(parent, options, out->write.get(), err->write.get(), argv.data());
  out->write.Close();
  err->write.Close();
  const Descriptor process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  ProcessResult result;
  const bool ended = process.get() >= 0 &&
                     Follow(process.get(), out->read, err->read, Deadline::In(options.timeout), &result);
  if (!ended) kill(pid, SIGKILL);
  int status = 0;
  rusage usage{};
  if (wait4(pid, &status, 0, &usage) != pid) return ErrnoError("wait4");
  result.wall = Now() - began;
  result.cpu = FromTimeval(usage.ru_utime) + FromTimeval(usage.ru_stime);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (!ended) {
    return absl::DeadlineExceededError(absl::StrCat(
        options.argv[0], " was killed because it did not end in time; it wrote: ", result.out, result.err));
  }
  return result;
}

absl::StatusOr<std::unique_ptr<BusyProcess>> BusyProcess::Start(int cpu) {
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return ErrnoError("fork");
  if (pid == 0) {
    DieWith(parent);
    StayOnCpu(cpu);
    volatile bool busy = true;
    while (busy) {
    }
    _exit(0);
  }
  return std::unique_ptr<BusyProcess>(new BusyProcess(pid));
}

BusyProcess::~BusyProcess() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

int AnyCpu() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 0;
  for (int cpu = CPU_SETSIZE - 1; cpu > 0; --cpu) {
    if (CPU_ISSET(cpu, &set)) return cpu;
  }
  return 0;
}

}  // namespace curtail::bench
