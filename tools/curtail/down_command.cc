// SPDX-License-Identifier: Apache-2.0
#include "down_command.h"

#include <poll.h>
#include <signal.h>

#include "absl/strings/str_cat.h"
#include "curtail/base/clock.h"
#include "curtail/base/strings.h"
#include "exit_code.h"
#include "flags.h"
#include "run_folder.h"

namespace curtail::tool {
namespace {

constexpr int kLookMs = 20;

bool AwaitDown(const std::string& application, Deadline deadline) {
  while (IsUp(application)) {
    if (deadline.Expired()) return false;
    poll(nullptr, 0, kLookMs);
  }
  return true;
}

}  // namespace

int RunDown(const DownFlags& flags, Console& console) {
  const absl::StatusOr<Nanos> timeout = ParseDuration(flags.timeout);
  if (!timeout.ok()) {
    console.Error(std::string(Message(timeout.status())), "");
    return kBadConfig;
  }
  const absl::StatusOr<UpState> state = ReadUpState(flags.application);
  if (!state.ok()) {
    console.Error(std::string(Message(state.status())), "curtail ps lists what is up");
    return kFailed;
  }
  // The lock is held, so the pid is that of its holder and of nobody else.
  kill(state->pid, SIGTERM);
  if (AwaitDown(flags.application, Deadline::In(*timeout))) {
    console.Print(absl::StrCat(flags.application, " is down\n"));
    return kOk;
  }
  // Its children die with it.
  kill(state->pid, SIGKILL);
  const bool down = AwaitDown(flags.application, Deadline::In(std::chrono::seconds(5)));
  console.Error(absl::StrCat(flags.application, " did not end in ", flags.timeout, " and was killed"),
                down ? "" : "it is still there");
  return kFailed;
}

}  // namespace curtail::tool
