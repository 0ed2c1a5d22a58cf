// SPDX-License-Identifier: Apache-2.0
#include "process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "curtail/base/testing.h"

extern char** environ;

namespace curtail::soak {
namespace {

constexpr std::string_view kListening = "listening on ";

// Sleeps; what it waits for cannot wake it.
void Pause(int milliseconds) { poll(nullptr, 0, milliseconds); }

// The rest of the line after kListening; empty if the writer ends, or is silent for kMaxTestWait.
std::string ReadAddress(int fd) {
  std::string text;
  const Deadline until = Deadline::In(kMaxTestWait);
  while (!until.Expired()) {
    const size_t at = text.find(kListening);
    const size_t end = at == std::string::npos ? at : text.find('\n', at);
    if (end != std::string::npos) {
      const size_t from = at + kListening.size();
      return text.substr(from, end - from);
    }
    pollfd readable{fd, POLLIN, 0};
    if (poll(&readable, 1, 100) <= 0) continue;
    char bytes[512];
    const ssize_t n = read(fd, bytes, sizeof(bytes));
    if (n <= 0) return {};
    text.append(bytes, static_cast<size_t>(n));
  }
  return {};
}

}  // namespace

Held HeldBy(pid_t pid) {
  Held held;
  const std::string folder = absl::StrCat("/proc/", pid);
  std::ifstream statm(folder + "/statm");
  double pages = 0;
  statm >> pages >> pages;
  held.resident_mib = pages * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
  std::error_code error;
  const std::filesystem::directory_iterator descriptors(folder + "/fd", error);
  if (!error) held.descriptors = static_cast<int>(std::distance(begin(descriptors), end(descriptors)));
  return held;
}

ServerProcess::ServerProcess(std::string name, std::vector<std::string> arguments, std::string log)
    : name_(std::move(name)), log_(std::move(log)), arguments_(std::move(arguments)) {}

ServerProcess::~ServerProcess() { Kill(); }

absl::Status ServerProcess::Start() {
  for (const Deadline until = Deadline::In(kMaxTestWait); !until.Expired(); Pause(50)) {
    if (TryStart()) return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat(name_, " does not start: ", LogEnd()));
}

bool ServerProcess::TryStart() {
  int out[2];
  if (pipe2(out, O_CLOEXEC) != 0) return false;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log_.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                   0600);
  std::vector<char*> argv;
  for (std::string& argument : arguments_) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const int failed = posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(out[1]);
  if (failed != 0) pid_ = -1;
  const std::string address = failed != 0 ? "" : ReadAddress(out[0]);
  close(out[0]);
  if (address.empty()) {
    Kill();
    return false;
  }
  // From now on at this port.
  std::replace_if(
      arguments_.begin(), arguments_.end(), [](const std::string& a) { return a.ends_with(":0"); }, address);
  address_ = address;
  return true;
}

void ServerProcess::Kill() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  waitpid(std::exchange(pid_, -1), &code_, 0);
}

absl::Status ServerProcess::Terminate(Nanos bound) {
  kill(pid_, SIGTERM);
  if (!AwaitEnd(bound)) return absl::DeadlineExceededError(absl::StrCat(name_, " does not end by SIGTERM"));
  if (code_ == 0) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(name_, " ended by SIGTERM with wait status ", code_, ": ", LogEnd()));
}

absl::Status ServerProcess::CheckRuns() {
  if (pid_ < 0 || !AwaitEnd(Nanos(0))) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(name_, " died with wait status ", code_, ": ", LogEnd()));
}

bool ServerProcess::AwaitEnd(Nanos bound) {
  const Deadline until = Deadline::In(bound);
  while (waitpid(pid_, &code_, WNOHANG) == 0) {
    if (until.Expired()) return false;
    Pause(5);
  }
  pid_ = -1;
  return true;
}

std::string ServerProcess::LogEnd() const {
  std::ifstream file(log_);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return text.substr(text.size() - std::min<size_t>(text.size(), 4000));
}

}  // namespace curtail::soak
