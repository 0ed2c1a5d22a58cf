// SPDX-License-Identifier: Apache-2.0
//
// `curtail scale`: more or fewer instances of a service while it serves.
#include <poll.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "curtail/base/clock.h"
#include "curtail/base/strings.h"
#include "curtail/term/console.h"
#include "curtail/term/exit_code.h"
#include "tools/curtail/deploy/run_folder.h"
#include "tools/curtail/term/command.h"
#include "tools/curtail/term/flags.h"

namespace curtail::tool {
namespace {

struct ScaleFlags {
  std::string target;  // APP/SERVICE
  int count = 0;
  std::string timeout = "60s";  // until they serve, or have ended
};

constexpr int kAskAgainMs = 50;
constexpr int kUntilKnownMs = 500;  // for callers to look, every 0.2 s, and for the address to be there

struct Look {
  int there = 0;  // instances, in any state
  int ready = 0;
  std::string problem;  // of one that does not serve
};

Look LookAt(const UpState& state, std::string_view service) {
  Look look;
  for (const ProcessState& process : state.processes) {
    if (process.service != service) continue;
    ++look.there;
    if (process.state == "ready") ++look.ready;
    if (process.state == "waiting") look.problem = absl::StrCat(process.name, " ", process.problem);
  }
  return look;
}

// Errors: NOT_FOUND for a service that there is not; FAILED_PRECONDITION, which names the services that scale.
absl::Status CheckScales(const UpState& state, const std::string& service) {
  std::vector<std::string> names;
  bool there = false;
  for (const ProcessState& process : state.processes) {
    there |= process.service == service;
    if (!process.scales) continue;
    if (process.service == service) return absl::OkStatus();
    if (names.empty() || names.back() != process.service) names.push_back(process.service);
  }
  const std::string others = names.empty() ? "" : absl::StrCat("; these scale: ", absl::StrJoin(names, ", "));
  if (!there) {
    return absl::NotFoundError(
        service.empty() ? absl::StrCat("name a service, as ", state.application, "/SERVICE", others)
                        : absl::StrCat(state.application, " has no service ", service, others));
  }
  if (const auto shards = state.settings.find(service + ".shards");
      shards != state.settings.end() && shards->second != "1") {
    return absl::FailedPreconditionError(absl::StrCat(
        service, " does not scale, as each of its ", shards->second,
        " shards has its own data; start the application with more: --set ", service, ".shards=N", others));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      service, " does not scale; add scales: true to it in the topology, and no --link to it", others));
}

int Fail(Console& console, const absl::Status& status, int code = kBadConfig, const std::string& hint = {}) {
  console.Error(std::string(Message(status)), hint);
  return code;
}

// Returns the exit code.
int RunScale(const ScaleFlags& flags, Console& console, const std::atomic<bool>& stop) {
  const absl::StatusOr<Nanos> timeout = TimeLimitOf("--timeout", flags.timeout);
  if (!timeout.ok()) return Fail(console, timeout.status());
  const size_t slash = flags.target.find('/');
  const std::string application = flags.target.substr(0, slash);
  const std::string service = slash == std::string::npos ? "" : flags.target.substr(slash + 1);
  absl::StatusOr<UpState> state = ReadUpState(application);
  if (!state.ok()) return Fail(console, state.status());
  if (absl::Status scales = CheckScales(*state, service); !scales.ok()) return Fail(console, scales);
  const Look before = LookAt(*state, service);
  if (absl::Status asked = AskToScale(application, service, flags.count); !asked.ok())
    return Fail(console, asked, kFailed);

  const Deadline deadline = Deadline::In(*timeout);
  Look now = before;
  while (now.there != flags.count || now.ready != flags.count) {
    if (stop.load(std::memory_order_relaxed))
      return Fail(console, absl::CancelledError("interrupted"), kInterrupted,
                  absl::StrCat(service, " goes on to ", flags.count, " instances"));
    const bool fails = !now.problem.empty() && now.problem != before.problem;
    if (fails || deadline.Expired()) {
      return Fail(
          console,
          absl::AbortedError(absl::StrCat(now.ready, " of ", flags.count, " instances of ", service, " serve",
                                          now.problem.empty() ? "" : absl::StrCat("; ", now.problem))),
          kFailed, absl::StrCat("back to what was: curtail scale ", flags.target, " ", before.there));
    }
    console.Progress(absl::StrCat(service, ": ", now.ready, " of ", flags.count, " serve"));
    poll(nullptr, 0, kAskAgainMs);
    state = ReadUpState(application);
    if (!state.ok()) return Fail(console, state.status(), kFailed);
    now = LookAt(*state, service);
  }
  if (flags.count > before.there) poll(nullptr, 0, kUntilKnownMs);
  console.Progress({});
  console.Print(absl::StrCat(flags.target, ": ", before.there, " -> ", flags.count, " instances\n"));
  return kOk;
}

}  // namespace

Command AddScale(CLI::App& app) {
  const auto f = std::make_shared<ScaleFlags>();
  CLI::App* command = app.add_subcommand("scale", "More or fewer instances of a service while it serves");
  command->add_option("APP/SERVICE", f->target, "A service of an application that is up")->required();
  command->add_option("N", f->count, "How many of it there shall be")->required()->check(CLI::Range(1, 256));
  command->add_option("--timeout", f->timeout, "For new ones to serve, and old ones to end")
      ->capture_default_str();
  command->footer(
      "Services with scales: true in the topology scale. Callers learn of new instances within 0.2 s. One "
      "that\n"
      "leaves gets no new calls, and finishes those that it has.\n"
      "Examples:\n"
      "  curtail scale social/read-post 3\n"
      "  curtail scale social/read-post 1");
  return {command, [f](const Invocation& given) { return RunScale(*f, given.console, given.stop); }};
}

}  // namespace curtail::tool
