// SPDX-License-Identifier: Apache-2.0
#include "curtail/deploy/process/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "curtail/base/boundary.h"

namespace curtail::deploy {
namespace {

constexpr Nanos kLongestWait = std::chrono::milliseconds(50);
constexpr Nanos kDefaultGrace = std::chrono::seconds(2);
constexpr size_t kLogTailBytes = 2000;
constexpr size_t kMaxLine = 64u << 10;

std::string ErrorText(int error) { return std::generic_category().message(error); }

// The part of the parent that the child needs.
struct Inherited {
  pid_t parent;
  int go;      // readable once the parent has attached its counters
  int out;     // becomes standard output
  int log;     // becomes standard error
  int report;  // takes errno of an exec that fails
};

bool SetLimits(const ProcessOptions& options) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  for (const int cpu : options.cpus) CPU_SET(static_cast<size_t>(cpu), &cpus);
  if (!options.cpus.empty() && sched_setaffinity(0, sizeof(cpus), &cpus) != 0) return false;
  if (options.max_file_bytes != 0) {
    const rlimit limit{options.max_file_bytes, options.max_file_bytes};
    std::signal(SIGXFSZ, SIG_IGN);  // so that the write fails instead
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
  }
  return options.nice == 0 || setpriority(PRIO_PROCESS, 0, options.nice) == 0;
}

// Ends with a null pointer.
std::vector<char*> Pointers(std::vector<std::string>& argv) {
  std::vector<char*> pointers;
  for (std::string& arg : argv) pointers.push_back(arg.data());
  pointers.push_back(nullptr);
  return pointers;
}

absl::Status CannotRun(const std::string& program, int error) {
  const std::string text = absl::StrCat("cannot run ", program, ": ", ErrorText(error));
  if (error == ENOENT) return absl::NotFoundError(text);
  return error == EACCES ? absl::PermissionDeniedError(text) : absl::InternalError(text);
}

// The child's side of fork(); only async-signal-safe calls until it runs what it is for.
[[noreturn]] void BecomeChild(const ProcessOptions& options, char* const* argv, const Inherited& inherited) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != inherited.parent) _exit(127);  // the parent died before that took effect
  char byte = 0;
  if (read(inherited.go, &byte, 1) != 1) _exit(127);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_DFL);
  dup2(inherited.out, STDOUT_FILENO);
  dup2(inherited.log, STDERR_FILENO);
  const int null = open("/dev/null", O_RDONLY);
  if (null >= 0) dup2(null, STDIN_FILENO);
  if (SetLimits(options)) {
    if (options.run) {
      close(inherited.report);
      options.run();
      _exit(0);
    }
    std::signal(SIGPIPE, SIG_DFL);
    execvp(argv[0], argv);
  }
  const int error = errno;
  (void)!write(inherited.report, &error, sizeof(error));
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

Nanos FromTimeval(const timeval& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
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
  const std::vector<char*> argv = Pointers(options.argv);
  Pipe out, report, go;
  if (!out.Open() || !report.Open() || !go.Open()) {
    return absl::InternalError(absl::StrCat("pipe: ", ErrorText(errno)));
  }
  int log = STDERR_FILENO;
  if (!options.log_path.empty()) {
    log = open(options.log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log < 0)
      return absl::InternalError(absl::StrCat("cannot open ", options.log_path, ": ", ErrorText(errno)));
  }
  const Inherited inherited{getpid(), go.read_end, options.out_to_log ? log : out.write_end, log,
                            report.write_end};
  const pid_t pid = fork();
  if (pid == 0) BecomeChild(options, argv.data(), inherited);
  const int fork_error = errno;
  if (log != STDERR_FILENO) close(log);
  if (pid < 0) return absl::InternalError(absl::StrCat("fork: ", ErrorText(fork_error)));
  out.CloseWriteEnd();
  report.CloseWriteEnd();
  std::unique_ptr<Process> process(new Process(std::move(options), pid, out.TakeReadEnd()));
  if (process->options_.counted) process->counters_.Attach(pid);
  if (const std::string& group = process->options_.cgroup_procs; !group.empty()) {
    if (!(std::ofstream(group) << pid << std::flush)) {
      return absl::InternalError(absl::StrCat("cannot put a process into the group of ", group));
    }
  }
  if (write(go.write_end, "g", 1) != 1) return absl::InternalError(absl::StrCat("write: ", ErrorText(errno)));
  const int error = ExecResult(report.read_end);
  if (error == 0) return process;
  return CannotRun(process->options_.run ? process->options_.name : process->options_.argv[0], error);
}

Process::~Process() {
  Terminate(kDefaultGrace);
  if (discarding_.joinable()) {
    eventfd_write(enough_.get(), 1);  // what the child started may hold the output open
    discarding_.join();
  }
  close(out_);
}

bool Process::Running() {
  if (reaped_) return false;
  siginfo_t ended{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0) {
    if (ended.si_pid == 0) return true;
    kill(-pid_, SIGKILL);  // what is left of its group, while the number is certainly still its
  }
  rusage used{};
  const pid_t result = wait4(pid_, &wait_status_, WNOHANG, &used);
  if (result == pid_) cpu_at_end_ = FromTimeval(used.ru_utime) + FromTimeval(used.ru_stime);
  // ECHILD cannot be, as only this object waits for the child; but if it were, there is no child to wait for.
  if (result == pid_ || (result < 0 && errno == ECHILD)) reaped_ = true;
  return !reaped_;
}

bool Process::AwaitEnd(Deadline deadline) {
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
  enough_ = internal::UniqueFd(eventfd(0, EFD_CLOEXEC));
  if (!enough_) return;
  const auto discard = [out = out_, enough = enough_.get()] {
    pollfd fds[] = {{out, POLLIN, 0}, {enough, POLLIN, 0}};
    char buffer[4096];
    while (poll(fds, 2, -1) > 0 && fds[1].revents == 0) {
      if (fds[0].revents != 0 && read(out, buffer, sizeof(buffer)) <= 0) fds[0].fd = -1;  // the end
    }
  };
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the thread takes no signals
  Contain("a process", [&] { discarding_ = std::thread(discard); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
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
  return AwaitEnd(Deadline::In(grace)) ? wait_status_ : Kill();
}

absl::Status Process::End(Nanos grace) {
  BeginToEnd();
  if (!AwaitEnd(Deadline::In(grace))) {
    Kill();
    return absl::DeadlineExceededError(absl::StrCat(name(), " did not end by SIGTERM", LogTail()));
  }
  if (wait_status_ == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(name(), " ", HowItEnded(), LogTail()));
}

int Process::Kill() {
  if (Running()) kill(pid_, SIGKILL);
  AwaitEnd(Deadline::Infinite());  // SIGKILL cannot be refused
  return wait_status_;
}

void Process::Pause() {
  if (!Running()) return;
  kill(pid_, SIGSTOP);
  siginfo_t stopped;
  // SIGSTOP cannot be ignored, so one of the two comes.
  waitid(P_PID, static_cast<id_t>(pid_), &stopped, WSTOPPED | WEXITED | WNOWAIT);
}

void Process::Resume() {
  if (Running()) kill(pid_, SIGCONT);
}

std::string Process::HowItEnded() const {
  if (!WIFSIGNALED(wait_status_)) return absl::StrCat("ended with code ", WEXITSTATUS(wait_status_));
  const int signal = WTERMSIG(wait_status_);
  const char* text = sigdescr_np(signal);
  return absl::StrCat("was killed by signal ", signal, text == nullptr ? "" : absl::StrCat(" (", text, ")"));
}

absl::Status Process::Ended() const {
  return absl::AbortedError(absl::StrCat(options_.name, " ", HowItEnded(), LogTail()));
}

ssize_t Process::ReadMore(Deadline deadline) {
  pollfd readable{out_, POLLIN, 0};
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::min(deadline.Remaining(), kLongestWait));
  if (poll(&readable, 1, static_cast<int>(left.count()) + 1) <= 0) return -1;
  char buffer[16384];
  const ssize_t n = read(out_, buffer, sizeof(buffer));
  if (n > 0) unread_.append(buffer, static_cast<size_t>(n));
  return n;
}

absl::StatusOr<std::string> Process::ReadToEnd(Deadline deadline) {
  for (ssize_t n = 1; n != 0 && !deadline.Expired();) {
    const bool running = Running();
    n = ReadMore(deadline);
    if (n < 0 && !running) break;  // a child of its own has taken over the output, and says nothing
  }
  if (AwaitEnd(deadline)) return std::exchange(unread_, {});
  return absl::DeadlineExceededError(absl::StrCat(options_.name, " did not end in time", LogTail()));
}

absl::StatusOr<std::string> Process::AwaitLine(std::string_view prefix, Deadline deadline,
                                               const std::atomic<bool>* stop) {
  return AwaitAnyLine({prefix}, deadline, stop);
}

absl::StatusOr<std::string> Process::AwaitAnyLine(const std::vector<std::string_view>& prefixes,
                                                  Deadline deadline, const std::atomic<bool>* stop) {
  while (true) {
    for (size_t end; (end = unread_.find('\n')) != std::string::npos;) {
      const std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      for (const std::string_view prefix : prefixes) {
        if (line.starts_with(prefix)) return line.substr(prefix.size());
      }
    }
    if (stop != nullptr && stop->load(std::memory_order_relaxed)) return absl::CancelledError("interrupted");
    if (deadline.Expired() || unread_.size() > kMaxLine) {
      return absl::DeadlineExceededError(absl::StrCat(options_.name, " was not ready in time", LogTail()));
    }
    const ssize_t n = ReadMore(deadline);
    if (n == 0) {  // it closed its output: it has ended, or will not say any more
      if (AwaitEnd(Deadline::In(kDefaultGrace))) return Ended();
      return absl::DeadlineExceededError(absl::StrCat(options_.name, " closed its output", LogTail()));
    }
  }
}

Nanos Process::Cpu() const { return reaped_ ? cpu_at_end_ : CpuOf(pid_); }

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

absl::Status BecomeProgram(std::vector<std::string> argv) {
  execvp(argv[0].c_str(), Pointers(argv).data());
  return CannotRun(argv[0], errno);
}

}  // namespace curtail::deploy
