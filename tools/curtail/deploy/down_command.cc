// SPDX-License-Identifier: Apache-2.0
//
// `curtail down`: ends an application that is up.
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "apps/shipped/application.h"
#include "curtail/base/clock.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/transport/socket.h"
#include "curtail/term/console.h"
#include "curtail/term/exit_code.h"
#include "tools/curtail/deploy/run_folder.h"
#include "tools/curtail/term/command.h"
#include "tools/curtail/term/flags.h"

namespace curtail::tool {
namespace {

struct DownFlags {
  std::string application;
  std::string timeout = "60s";  // to drain; what is left then is killed
};

constexpr int kLookMs = 50;
constexpr int kKillMs = 5000;

// True if the process ended until `deadline`; or `stop` was set.
bool AwaitEnd(const internal::UniqueFd& process, Deadline deadline, const std::atomic<bool>& stop) {
  pollfd ended{process.get(), POLLIN, 0};
  while (poll(&ended, 1, kLookMs) <= 0) {
    if (deadline.Expired() || stop.load(std::memory_order_relaxed)) return false;
  }
  return true;
}

// By its descriptor, as a number may be another process's by now.
void Send(const internal::UniqueFd& process, int signal) {
  syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0);
}

// Kills the process that looks after the application, with which the processes that it started die. These lead a group each,
// so what they have started in turn dies by its group.
void Kill(const std::string& application, const internal::UniqueFd& keeper) {
  const absl::StatusOr<UpState> state = ReadUpState(application);
  Send(keeper, SIGKILL);
  pollfd ended{keeper.get(), POLLIN, 0};
  poll(&ended, 1, kKillMs);
  if (!state.ok()) return;
  for (const ProcessState& process : state->processes) {
    if (process.pid > 1) kill(-process.pid, SIGKILL);
  }
}

// Returns the exit code.
int RunDown(const DownFlags& flags, Console& console, const std::atomic<bool>& stop) {
  const absl::StatusOr<Nanos> timeout = DurationOf("--timeout", flags.timeout);
  if (!timeout.ok()) {
    console.Error(std::string(Message(timeout.status())), "");
    return kBadConfig;
  }
  if (const std::string wrong = NotAnApplication("down", flags.application); !wrong.empty()) {
    console.Error(wrong, "");
    return kBadConfig;
  }
  const absl::StatusOr<pid_t> keeper = KeeperOf(flags.application);
  const internal::UniqueFd process(keeper.ok() ? static_cast<int>(syscall(SYS_pidfd_open, *keeper, 0)) : -1);
  // Still the keeper now that its number is held: then it was when the descriptor was opened.
  const absl::StatusOr<pid_t> still = KeeperOf(flags.application);
  if (!process || !still.ok() || *still != *keeper) {
    // That nothing has to be ended is what the caller wants; a name that cannot be is the caller's mistake.
    if (apps::IsApplication(flags.application) || WasUp(flags.application)) {
      console.Note(absl::StrCat(flags.application, " is not up"));
      return kOk;
    }
    console.Error(std::string(Message(NotUp(flags.application))), "");
    return kBadConfig;
  }
  Send(process, SIGTERM);
  Send(process, SIGCONT);  // a stopped process acts on nothing but SIGKILL
  if (AwaitEnd(process, Deadline::In(*timeout), stop)) {
    console.Print(absl::StrCat(flags.application, " is down\n"));
    return kOk;
  }
  if (stop.load(std::memory_order_relaxed)) {
    console.Error("interrupted", absl::StrCat(flags.application, " goes on ending"));
    return kInterrupted;
  }
  Kill(flags.application, process);
  console.Error(absl::StrCat(flags.application, " did not end in ", flags.timeout, " and was killed"),
                "give it longer with --timeout");
  return kFailed;
}

}  // namespace

Command AddDown(CLI::App& app) {
  const auto f = std::make_shared<DownFlags>();
  CLI::App* command = app.add_subcommand("down", "End an application that is up");
  command->add_option("APP", f->application, "Its name")->required();
  command->add_option("--timeout", f->timeout, "For requests in flight; what is left then is killed")
      ->capture_default_str();
  command->footer("Example: curtail down hdsearch");
  return {command, [f](const Invocation& given) { return RunDown(*f, given.console, given.stop); }};
}

}  // namespace curtail::tool
