// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/deploy/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace curtail::tool {
namespace {

constexpr Nanos kLongestWait = std::chrono::milliseconds(50);
constexpr Nanos kDefaultGrace = std::chrono::seconds(2);
constexpr size_t kLogTailBytes = 2000;
constexpr size_t kMaxLine = 64u << 10;

std::string ErrorText(int error) { return std::generic_category().message(error); }

// What the child's side of fork() does; only async-signal-safe calls. An exec that fails reports errno
// through `report`.
[[noreturn]] void BecomeChild(const std::vector<char*>& argv, const cpu_set_t* cpus, pid_t parent, int out,
                              int log, int report) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // the parent died before that took effect
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) std::signal(signal, SIG_DFL);
  dup2(out, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  const int null = open("/dev/null", O_RDONLY);
  if (null >= 0) dup2(null, STDIN_FILENO);
  if (cpus == nullptr || sched_setaffinity(0, sizeof(*cpus), cpus) == 0) execv(argv[0], argv.data());
  const int error = errno;
  (void)!write(report, &error, sizeof(error));
  _exit(127);
}

// Readable once the process has ended; -1 when the kernel has no pidfds. By number, as glibc 2.36 declares
// the function with C++ linkage by mistake.
int PidFd(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

// Waits for an exec: 0 when it happened (the pipe closed), or its errno.
int ExecResult(int report) {
  int error = 0;
  ssize_t n;
  do {
    n = read(report, &error, sizeof(error));
  } while (n < 0 && errno == EINTR);
  return n == sizeof(error) ? error : 0;
}

struct Pipe {
  int read_end = -1;
  int write_end = -1;
  bool Open() {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) return false;
    read_end = fds[0], write_end = fds[1];
    return true;
  }
  ~Pipe() {
    if (read_end >= 0) close(read_end);
    if (write_end >= 0) close(write_end);
  }
  void CloseWriteEnd() { close(write_end), write_end = -1; }
  int TakeReadEnd() { return std::exchange(read_end, -1); }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Process>> Process::Spawn(ProcessOptions options) {
  std::vector<char*> argv;
  for (std::string& arg : options.argv) argv.push_back(arg.data());
  argv.push_back(nullptr);
  Pipe out, report;
  if (!out.Open() || !report.Open()) return absl::InternalError(absl::StrCat("pipe: ", ErrorText(errno)));
  const int log = open(options.log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log < 0)
    return absl::InternalError(absl::StrCat("cannot open ", options.log_path, ": ", ErrorText(errno)));
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  for (const int cpu : options.cpus) CPU_SET(static_cast<size_t>(cpu), &cpus);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0)
    BecomeChild(argv, options.cpus.empty() ? nullptr : &cpus, parent,
                options.out_to_log ? log : out.write_end, log, report.write_end);
  const int fork_error = errno;
  close(log);
  if (pid < 0) return absl::InternalError(absl::StrCat("fork: ", ErrorText(fork_error)));
  out.CloseWriteEnd();
  report.CloseWriteEnd();
  const int error = ExecResult(report.read_end);
  std::unique_ptr<Process> process(new Process(std::move(options), pid, out.TakeReadEnd()));
  if (error == 0) return process;
  const std::string text = absl::StrCat("cannot run ", process->options_.argv[0], ": ", ErrorText(error));
  if (error == ENOENT) return absl::NotFoundError(text);
  return error == EACCES ? absl::PermissionDeniedError(text) : absl::InternalError(text);
}

Process::~Process() {
  Terminate(kDefaultGrace);
  close(out_);
}

bool Process::Running() {
  if (reaped_) return false;
  siginfo_t ended{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0) {
    if (ended.si_pid == 0) return true;
    kill(-pid_, SIGKILL);  // what is left of its group, while the number is certainly still its
  }
  const pid_t result = waitpid(pid_, &wait_status_, WNOHANG);
  // ECHILD cannot be, as only this object waits for the child; but if it were, there is nobody to wait for.
  if (result == pid_ || (result < 0 && errno == ECHILD)) reaped_ = true;
  return !reaped_;
}

bool Process::WaitUntil(Deadline deadline) {
  const int fd = PidFd(pid_);
  while (Running() && !deadline.Expired()) {
    pollfd ended{fd, POLLIN, 0};
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::min(deadline.Remaining(), kLongestWait));
    poll(&ended, 1, static_cast<int>(left.count()) + 1);  // without a pidfd: just the time
  }
  if (fd >= 0) close(fd);
  return !Running();
}

void Process::DiscardOutput() {
  unread_.clear();
  pollfd readable{out_, POLLIN, 0};
  char buffer[4096];
  while (poll(&readable, 1, 0) > 0 && read(out_, buffer, sizeof(buffer)) > 0) {
  }
}

void Process::BeginToEnd() {
  if (!Running() || asked_to_end_) return;
  kill(pid_, SIGTERM);
  kill(pid_, SIGCONT);   // a paused process acts on nothing but SIGKILL
  asked_to_end_ = true;  // once: a server takes a second signal for impatience
}

int Process::Terminate(Nanos grace) {
  if (!Running()) return wait_status_;
  BeginToEnd();
  if (WaitUntil(Deadline::In(grace))) return wait_status_;
  kill(pid_, SIGKILL);
  WaitUntil(Deadline::Infinite());  // SIGKILL cannot be refused
  return wait_status_;
}

void Process::Pause() {
  if (Running()) kill(pid_, SIGSTOP);
}

void Process::Resume() {
  if (Running()) kill(pid_, SIGCONT);
}

absl::Status Process::Ended() const {
  std::string how = WIFSIGNALED(wait_status_) ? absl::StrCat("was killed by signal ", WTERMSIG(wait_status_))
                                              : absl::StrCat("ended with code ", WEXITSTATUS(wait_status_));
  return absl::AbortedError(absl::StrCat(options_.name, " ", how, LogTail()));
}

absl::StatusOr<std::string> Process::AwaitLine(std::string_view prefix, Deadline deadline,
                                               const std::atomic<bool>* stop) {
  while (true) {
    for (size_t end; (end = unread_.find('\n')) != std::string::npos;) {
      const std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      if (line.starts_with(prefix)) return line.substr(prefix.size());
    }
    if (stop != nullptr && stop->load(std::memory_order_relaxed)) return absl::CancelledError("interrupted");
    if (deadline.Expired() || unread_.size() > kMaxLine) {
      return absl::DeadlineExceededError(absl::StrCat(options_.name, " was not ready in time", LogTail()));
    }
    pollfd readable{out_, POLLIN, 0};
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::min(deadline.Remaining(), kLongestWait));
    if (poll(&readable, 1, static_cast<int>(left.count()) + 1) <= 0) continue;
    char buffer[4096];
    const ssize_t n = read(out_, buffer, sizeof(buffer));
    if (n > 0) unread_.append(buffer, static_cast<size_t>(n));
    if (n == 0) {  // it closed its output: it has ended, or will not say any more
      if (WaitUntil(Deadline::In(kDefaultGrace))) return Ended();
      return absl::DeadlineExceededError(absl::StrCat(options_.name, " closed its output", LogTail()));
    }
  }
}

Nanos Process::Cpu() const { return CpuOf(pid_); }

Nanos CpuOf(pid_t pid) {
  std::ifstream in(absl::StrCat("/proc/", pid, "/stat"));
  std::string text((std::istreambuf_iterator<char>(in)), {});
  const size_t name_end = text.rfind(')');  // the name may hold spaces
  if (name_end == std::string::npos) return Nanos::zero();
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;  // proc(5): 14 is utime, 15 stime
  int64_t user = 0, system = 0;
  fields >> user >> system;
  return Nanos((user + system) * (1'000'000'000 / sysconf(_SC_CLK_TCK)));
}

std::string Process::LogTail() const {
  std::ifstream in(options_.log_path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  if (text.size() > kLogTailBytes) text.erase(0, text.find('\n', text.size() - kLogTailBytes));
  std::string tail;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    absl::StrAppend(&tail, "\n    | ", line);
  }
  return tail;
}

}  // namespace curtail::tool
