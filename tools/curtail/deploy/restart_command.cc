// SPDX-License-Identifier: Apache-2.0
//
// `curtail restart`: ends the processes of a service, one after the other, and waits until each is back.
//
// DESIGN. The process that looks after an application starts each of its processes again that ends, at the same address. So
// it is enough to end one with SIGTERM, as which it drains, and to wait for its successor before the next.
#include <poll.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "curtail/base/clock.h"
#include "curtail/base/strings.h"
#include "curtail/deploy/deployment.h"
#include "curtail/term/console.h"
#include "curtail/term/exit_code.h"
#include "tools/curtail/deploy/run_folder.h"
#include "tools/curtail/deploy/target.h"
#include "tools/curtail/term/command.h"
#include "tools/curtail/term/flags.h"

namespace curtail::tool {
namespace {

struct RestartFlags {
  std::string target;           // APP/SERVICE or APP/SERVICE.INSTANCE
  std::string timeout = "60s";  // for each process to drain and to serve again
};

constexpr int kLookAgainMs = 20;

// Ends a process and waits until its successor serves. Errors: ABORTED, which says how far it came; CANCELLED.
absl::Status RestartOne(const std::string& application, const std::string& name, Nanos timeout,
                        const std::atomic<bool>& stop) {
  // Others may have taken minutes: it may have ended since, and its number be another process's.
  const absl::StatusOr<UpState> known = ReadUpState(application);
  if (!known.ok()) return known.status();
  const auto found = std::ranges::find(known->processes, name, &ProcessState::name);
  if (found == known->processes.end())
    return absl::AbortedError(absl::StrCat(name, " is not there any more"));
  const ProcessState& before = *found;
  if (before.pid <= 0) return absl::OkStatus();  // it is on its way already
  if (kill(before.pid, SIGTERM) != 0 && errno != ESRCH)
    return absl::InternalError(absl::StrCat(before.name, ": kill: ", std::strerror(errno)));
  kill(before.pid, SIGCONT);  // a stopped process acts on nothing but SIGKILL
  const Deadline deadline = Deadline::In(timeout);
  while (true) {
    const absl::StatusOr<UpState> state = ReadUpState(application);
    if (!state.ok()) return state.status();
    const auto now = std::ranges::find(state->processes, before.name, &ProcessState::name);
    if (now == state->processes.end())
      return absl::AbortedError(absl::StrCat(before.name, " is not there any more"));
    const bool fresh = now->pid > 0 && now->pid != before.pid;
    if (fresh && now->state == deploy::StateName(deploy::Instance::State::kReady)) return absl::OkStatus();
    if (stop.load(std::memory_order_relaxed)) return absl::CancelledError("interrupted");
    if (deadline.Expired()) {
      return absl::AbortedError(absl::StrCat(before.name, fresh ? " does not serve again" : " has not ended",
                                             ": it is ", now->state, now->problem.empty() ? "" : "; it ",
                                             now->problem));
    }
    poll(nullptr, 0, kLookAgainMs);
  }
}

// Returns the exit code.
int RunRestart(const RestartFlags& flags, Console& console, const std::atomic<bool>& stop) {
  const auto fail = [&console](const absl::Status& status, int code, const std::string& hint) {
    console.Progress({});
    console.Error(std::string(Message(status)), hint);
    return code;
  };
  const absl::StatusOr<Nanos> timeout = TimeLimitOf("--timeout", flags.timeout);
  if (!timeout.ok()) return fail(timeout.status(), kBadConfig, "");
  const size_t slash = flags.target.find('/');
  if (slash == std::string::npos || slash + 1 == flags.target.size()) {
    return fail(absl::InvalidArgumentError(absl::StrCat("'", flags.target, "' names no service")), kBadConfig,
                "write APP/SERVICE, such as hdsearch/leaf; curtail ps lists what is up");
  }
  const absl::StatusOr<std::vector<ProcessState>> processes = FindProcesses(flags.target);
  if (!processes.ok()) return fail(processes.status(), kBadConfig, "");
  const std::string application = flags.target.substr(0, slash);
  size_t done = 0;
  for (const ProcessState& process : *processes) {
    if (process.pid <= 0) continue;  // it is on its way already, or runs elsewhere
    console.Progress(absl::StrCat(process.name, ": ", done, " of ", processes->size(), " restarted"));
    if (absl::Status status = RestartOne(application, process.name, *timeout, stop); !status.ok()) {
      return fail(status, absl::IsCancelled(status) ? kInterrupted : kFailed,
                  absl::StrCat(done, " of ", processes->size(),
                               " were restarted, and the others run on; see curtail logs ", application, " ",
                               process.name));
    }
    ++done;
  }
  console.Progress({});
  console.Print(
      absl::StrCat(flags.target, ": ", done, done == 1 ? " process" : " processes", " restarted\n"));
  return kOk;
}

}  // namespace

Command AddRestart(CLI::App& app) {
  const auto f = std::make_shared<RestartFlags>();
  CLI::App* command =
      app.add_subcommand("restart", "Restart a service, one process after the other, while it serves");
  command
      ->add_option("APP/SERVICE", f->target, "A service of an application that is up, or an instance of it")
      ->required();
  command->add_option("--timeout", f->timeout, "For each process to drain and to serve again")
      ->capture_default_str();
  command->footer(
      "Each process drains and ends, and starts again at its address, before the next one ends: callers of "
      "a\n"
      "service of several instances lose no call. Use it after a build, or to read a file again.\n"
      "Examples:\n"
      "  curtail restart hdsearch/leaf\n"
      "  curtail restart hdsearch/leaf.0");
  return {command, [f](const Invocation& given) { return RunRestart(*f, given.console, given.stop); }};
}

}  // namespace curtail::tool
