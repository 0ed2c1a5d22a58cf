// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. The server runs a fence in a dry run, which learns path classes and holds nothing back. A few requests of each
// method come first, so that its class is known. Then each class has the server for itself, in closed loop, and a
// sweep (fence_sweep.h) finds its knee. Concurrency is the client's, from the send to the answer. So a limit has
// the time on the network in it, and is a little above what the server alone would show.
#include "tools/curtail/train/fence_command.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "curtail/adapt/machine.h"
#include "curtail/base/strings.h"
#include "curtail/load/report/report.h"
#include "curtail/rpc/admin/admin.pb.h"
#include "curtail/term/exit_code.h"
#include "tools/curtail/term/flags.h"
#include "tools/curtail/train/fence_classes.h"
#include "tools/curtail/train/fence_sweep.h"
#include "tools/curtail/train/profile_file.h"
#include "tools/curtail/train/training_run.h"

namespace curtail::tool {
namespace {

constexpr int kMostConcurrency = 256;
constexpr uint64_t kFirstRequests = 64;  // of a method, so that its class is known
constexpr Nanos kFirstTime = std::chrono::seconds(20);
constexpr Nanos kStepWarmup = std::chrono::milliseconds(200);
constexpr double kFailedShare = 0.05;  // above: the server cannot take it
constexpr double kSlowStretch = 4;     // of a measurement with too few answers

struct SweepPlan {
  int passes = 2;
  Nanos step = std::chrono::seconds(2);
};

absl::StatusOr<SweepPlan> PlanOf(const TrainFlags& flags) {
  if (!flags.loads.empty() || flags.resume) {
    return absl::InvalidArgumentError(absl::StrCat(flags.resume ? "--resume" : "--loads",
                                                   " is for the loads of configs: --fences tries how many "
                                                   "requests a path class should have at once"));
  }
  if (flags.configs.find(',') != std::string::npos) {
    return absl::InvalidArgumentError(
        "--configs: with --fences give one config, under which the server runs");
  }
  if (flags.out.empty()) return absl::InvalidArgumentError("--out: name the file for the profile");
  SweepPlan plan;
  if (flags.quick) plan = {.passes = 1, .step = std::chrono::milliseconds(800)};
  if (flags.repeats > 0) plan.passes = flags.repeats;
  if (flags.seconds > 0) plan.step = Nanos(static_cast<int64_t>(flags.seconds * 1e9));
  return plan;
}

// The profile at --out; a new profile if nothing is. Errors: INVALID_ARGUMENT for what is no profile of this machine.
absl::StatusOr<Profile> Before(const TrainFlags& flags) {
  if (access(flags.out.c_str(), F_OK) != 0)
    return Profile{.machine = ThisMachineFingerprint(), .seed = flags.seed};
  absl::StatusOr<Profile> profile = ReadProfileFile(flags.out, /*any_machine=*/false);
  if (profile.ok()) return profile;
  return absl::InvalidArgumentError(Join(
      "limits are added to the profile at --out: ", Message(profile.status()), "; or name another file"));
}

// The greatest concurrency that is of interest: what its threads can hold, where requests hold threads.
int MostUnder(const Config& config) {
  if (config.model.waiting != Waiting::kSync) return kMostConcurrency;
  return std::min(kMostConcurrency, config.workers > 0 ? config.workers : config.network);
}

// Carries the sweeps out.
class FenceRun {
 public:
  FenceRun(const SweepPlan& plan, Subject& subject, Console& console)
      : plan_(plan), subject_(subject), console_(console) {}

  // The classes of the workload's methods.
  absl::StatusOr<std::vector<RequestGroup>> Classes() {
    const std::vector<RequestGroup> methods = GroupByMethod(*subject_.workload());
    for (const RequestGroup& method : methods) {
      const ChosenRequests requests(subject_.workload(), method.requests);
      const auto run = subject_.Drive(
          requests,
          {.outstanding = 1, .length = kFirstTime, .requests = kFirstRequests, .observer = nullptr});
      if (!run.ok()) return run.status();
    }
    const auto status = subject_.admin().GetStatus();
    if (!status.ok()) return status.status();
    return GroupByClass(methods, *status);
  }

  // The limit of a class, of `count` as number `index`.
  absl::StatusOr<ProfileFence> LimitOf(const RequestGroup& group, const Config& config, size_t index,
                                       size_t count) {
    FenceSweep sweep(MostUnder(config), plan_.passes);
    while (const std::optional<int> step = sweep.Next()) {
      Show(absl::StrFormat(
          "class %d of %d, %s: %d at once, about %s left", index + 1, count, group.path_class, *step,
          AboutText(static_cast<int64_t>(sweep.left_at_most()) * (plan_.step + kStepWarmup))));
      if (absl::Status told = Measure(group, *step, sweep); !told.ok()) return told;
    }
    console_.Progress({});
    const std::optional<Knee> knee = sweep.knee();
    if (!knee) {
      return absl::FailedPreconditionError(absl::StrCat("too few answers of ", group.path_class,
                                                        " within a measurement: give it more --seconds"));
    }
    const auto status = subject_.admin().GetStatus();
    if (!status.ok()) return status.status();
    for (const std::string& method : group.methods) {
      const std::string now = ClassOfMethod(*status, method);
      if (now == group.path_class) continue;
      return absl::FailedPreconditionError(
          absl::StrCat(method, " called other services while it was measured (", now, ", before ",
                       group.path_class, "): declare those that it may call (Paths())"));
    }
    return ProfileFence{.services = ServicesOf(group.path_class),
                        .limit = static_cast<uint32_t>(std::max(1L, std::lround(knee->lower))),
                        .throughput_per_s = knee->max_throughput,
                        .tried = static_cast<uint32_t>(sweep.tried()),
                        .saturated = knee->saturated,
                        .config = config};
  }

 private:
  // Where there is no terminal to draw on, a line for each class says that it goes on.
  void Show(const std::string& line) {
    if (console_.shows_progress()) return console_.Progress(line);
    const std::string class_of = line.substr(0, line.find(": "));
    if (class_of != std::exchange(shown_, class_of)) console_.Note(line);
  }

  absl::Status Measure(const RequestGroup& group, int outstanding, FenceSweep& sweep) {
    const ChosenRequests requests(subject_.workload(), group.requests);
    for (const double stretch : {1.0, kSlowStretch}) {
      const Nanos length(static_cast<int64_t>(static_cast<double>(plan_.step.count()) * stretch));
      LoadBins bins(kStepWarmup, kStepWarmup + length);
      const auto run = subject_.Drive(requests, {.outstanding = outstanding,
                                                 .warmup = kStepWarmup,
                                                 .length = length,
                                                 .requests = 0,
                                                 .observer = &bins});
      if (!run.ok()) return run.status();
      if (run->failed_fraction() > kFailedShare) {
        sweep.GiveUp();
        return absl::OkStatus();
      }
      const std::vector<LoadPoint> points = bins.Points();
      if (points.size() < kKneePoints && stretch < kSlowStretch) continue;
      sweep.Tell(points);
      return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  const SweepPlan plan_;
  Subject& subject_;
  Console& console_;
  std::string shown_;
};

std::string Table(const std::vector<RequestGroup>& groups, const std::vector<ProfileFence>& found) {
  std::string text =
      absl::StrFormat("%7s %13s %7s  %s\n", "permits", "throughput", "tried", "path class: its methods");
  for (const RequestGroup& group : groups) {
    std::vector<std::string> names;
    for (const std::string& method : group.methods) names.push_back(method.substr(method.rfind('/') + 1));
    const std::string label = absl::StrCat(group.path_class, ": ", absl::StrJoin(names, ", "));
    const auto at = std::find_if(found.begin(), found.end(), [&](const ProfileFence& fence) {
      return fence.services == ServicesOf(group.path_class);
    });
    if (at == found.end()) {
      absl::StrAppendFormat(&text, "%7s %13s %7s  %s\n", "-", "-", "-", label);
      continue;
    }
    absl::StrAppendFormat(&text, "%7d %11.0f/s %7d  %s%s\n", at->limit, at->throughput_per_s, at->tried,
                          label, at->saturated ? "" : " (still rises: no knee up to there)");
  }
  return text;
}

absl::Status Write(const TrainFlags& flags, Profile profile, const std::vector<ProfileFence>& found) {
  profile.curtail_version = CURTAIL_VERSION;
  profile.created = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone());
  for (const ProfileFence& fence : found) {
    std::erase_if(profile.fences, [&](const ProfileFence& old) { return old.services == fence.services; });
    profile.fences.push_back(fence);
  }
  const absl::StatusOr<std::string> json = ProfileJson(profile);
  return json.ok() ? WriteFile(flags.out, *json) : json.status();
}

}  // namespace

int RunFenceTraining(const TrainFlags& flags, Console& console, const std::atomic<bool>& stop) {
  const auto fail = [&](const absl::Status& status, Subject* subject) {
    if (!absl::IsCancelled(status)) return FailWith(console, status, "train", subject);
    console.Print("INTERRUPTED: no limit was written\n");
    return static_cast<int>(kInterrupted);
  };
  const absl::StatusOr<SweepPlan> plan = PlanOf(flags);
  if (!plan.ok()) return fail(plan.status(), nullptr);
  console.PrintWrapped(absl::StrFormat(
      "%s    %s\nfences   each path class alone, 1, 2, 4, ... requests at once, %d times %s each\n",
      console.Bold("train"), absl::StrJoin(flags.subject.load.targets, " "), plan->passes,
      AboutText(plan->step)));
  if (flags.dry_run) return kOk;
  if (absl::Status writable = CheckWritable(flags.out); !writable.ok()) return fail(writable, nullptr);
  absl::StatusOr<Profile> profile = Before(flags);
  if (!profile.ok()) return fail(profile.status(), nullptr);
  SubjectFlags server = flags.subject;
  server.fence = "dry-run";
  absl::StatusOr<std::unique_ptr<Subject>> made = Subject::Make(server, console, stop);
  if (!made.ok()) return stop ? kInterrupted : fail(made.status(), nullptr);
  Subject& subject = **made;
  if (profile->service.empty()) profile->service = subject.service();
  if (absl::Status fits = CheckProfileFits(*profile, subject.service(), profile->machine); !fits.ok()) {
    return fail(absl::InvalidArgumentError(Join("--out ", flags.out, ": ", Message(fits))), &subject);
  }
  absl::StatusOr<Config> config = subject.SetConfig(flags.configs);
  if (!config.ok()) return fail(config.status(), &subject);
  FenceRun run(*plan, subject, console);
  const absl::StatusOr<std::vector<RequestGroup>> groups = run.Classes();
  if (!groups.ok()) return fail(groups.status(), &subject);
  std::vector<ProfileFence> found;
  for (size_t i = 0; i < groups->size(); ++i) {
    if ((*groups)[i].path_class == "local") continue;
    absl::StatusOr<ProfileFence> limit = run.LimitOf((*groups)[i], *config, i, groups->size());
    if (!limit.ok()) return fail(limit.status(), &subject);
    found.push_back(*std::move(limit));
  }
  console.Print(Table(*groups, found));
  if (found.empty()) {
    console.Note("no method calls a service: there is nothing to fence, and no limit was written");
    return kOk;
  }
  if (absl::Status written = Write(flags, *std::move(profile), found); !written.ok())
    return fail(written, &subject);
  console.Print(absl::StrCat("profile  ", flags.out, "\n"));
  return kOk;
}

}  // namespace curtail::tool
