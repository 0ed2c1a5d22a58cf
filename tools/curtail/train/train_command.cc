// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/train/train_command.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "curtail/adapt/machine.h"
#include "curtail/adapt/training.h"
#include "curtail/base/cpus.h"
#include "curtail/base/read_file.h"
#include "curtail/base/strings.h"
#include "curtail/load/drive/rate_curve.h"
#include "curtail/load/report/report.h"
#include "curtail/term/exit_code.h"
#include "tools/curtail/term/command.h"
#include "tools/curtail/term/flags.h"
#include "tools/curtail/term/validators.h"
#include "tools/curtail/train/fence_command.h"
#include "tools/curtail/train/profile_file.h"
#include "tools/curtail/train/subject_flags.h"
#include "tools/curtail/train/training_run.h"

namespace curtail::tool {
namespace {

constexpr std::string_view kNotKnownYet = "?";  // the service, before it runs

constexpr size_t kMaxCheckpointBytes = size_t{64} << 20;
constexpr double kBusy = 0.5;  // load average a CPU from which a training is not worth much

absl::Status Invalid(const char* flag, const absl::Status& why) {
  return absl::InvalidArgumentError(Join(flag, ": ", Message(why)));
}

absl::StatusOr<TrainingPlan> MakePlan(const TrainFlags& flags) {
  const int cpus = UsableCpus();
  TrainingPlan plan = flags.quick ? QuickTraining(cpus) : DefaultTraining(cpus);
  if (!flags.configs.empty()) {
    plan.configs.clear();
    for (absl::string_view text : absl::StrSplit(flags.configs, ',')) {
      const absl::StatusOr<Config> config = Config::Parse(std::string(text));
      if (!config.ok()) return Invalid("--configs", config.status());
      plan.configs.push_back(*config);
    }
  }
  if (!flags.loads.empty()) {
    absl::StatusOr<std::vector<double>> loads = ParseRates(flags.loads);
    if (!loads.ok()) return Invalid("--loads", loads.status());
    plan.loads = *std::move(loads);
  }
  if (flags.repeats > 0) plan.repeats = flags.repeats;
  if (flags.seconds > 0) plan.cell = Nanos(static_cast<int64_t>(flags.seconds * 1e9));
  plan.seed = flags.seed;
  plan.service = std::string(kNotKnownYet);
  if (absl::Status status = CheckPlan(plan); !status.ok()) return status;
  if (plan.loads.back() > RateCurve::kMaxPerS) {
    return absl::InvalidArgumentError(
        absl::StrCat("--loads: at most ", RateCurve::kMaxPerS, " requests a second"));
  }
  return plan;
}

std::string PlanText(const TrainingPlan& plan) {
  std::vector<std::string> configs;
  for (const Config& config : plan.configs) configs.push_back(config.ToString());
  return absl::StrFormat(
      "configs  %s\nloads    %s requests a second; a config that gives up is spared higher ones\n"
      "cells    %d at most, each %s or longer, %d repeats in turns, seed %d\n"
      "time     about %s, %s at most\n",
      absl::StrJoin(configs, ", "), absl::StrJoin(plan.loads, ", "),
      configs.size() * plan.loads.size() * static_cast<size_t>(plan.repeats), AboutText(plan.cell),
      plan.repeats, plan.seed, AboutText(plan.ExpectedTime()), AboutText(plan.MostTime()));
}

// The file that a training can be resumed from: lines that are on the disk once they were added. One training at a time has
// its lock.
class CheckpointFile {
 public:
  explicit CheckpointFile(std::string path) : path_(std::move(path)) {}
  ~CheckpointFile() {
    if (fd_ >= 0) close(fd_);
  }
  CheckpointFile(const CheckpointFile&) = delete;
  CheckpointFile& operator=(const CheckpointFile&) = delete;

  const std::string& path() const { return path_; }
  bool Exists() const { return access(path_.c_str(), F_OK) == 0; }
  // Makes the file if it is not there. Errors: INVALID_ARGUMENT, another training has it.
  absl::Status Lock() {
    if (fd_ >= 0) return absl::OkStatus();
    fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd_ < 0) return Failed();
    const bool locked = flock(fd_, LOCK_EX | LOCK_NB) == 0;
    if (!locked && errno != EWOULDBLOCK) return Failed();
    struct stat info{};
    if (!locked || fstat(fd_, &info) != 0 ||
        info.st_nlink == 0) {  // or it has just ended, and removed the file
      close(std::exchange(fd_, -1));
      return absl::InvalidArgumentError(
          absl::StrCat("another training writes ", path_, ": wait for it, or give another --out"));
    }
    return absl::OkStatus();
  }
  // For adding lines after the first `keep` bytes. REQUIRES: Lock() was OK.
  absl::Status Keep(size_t keep) {
    if (ftruncate(fd_, static_cast<off_t>(keep)) != 0 || lseek(fd_, 0, SEEK_END) < 0) return Failed();
    return absl::OkStatus();
  }
  absl::Status Add(std::string_view line) {
    while (!line.empty()) {
      const ssize_t written = write(fd_, line.data(), line.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return Failed();
      line.remove_prefix(static_cast<size_t>(written));
    }
    return fdatasync(fd_) == 0 ? absl::OkStatus() : Failed();
  }
  void Remove() { unlink(path_.c_str()); }

 private:
  absl::Status Failed() const { return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path_)); }

  const std::string path_;
  int fd_ = -1;
};

// Tells `training` what an earlier one measured, and gets `file` ready for more.
absl::Status Begin(const TrainFlags& flags, const MachineFingerprint& machine, Training& training,
                   CheckpointFile& file, Console& console) {
  std::string text;
  if (absl::Status status = file.Lock(); !status.ok()) return status;
  if (flags.resume) {
    absl::StatusOr<std::string> read = ReadWholeFile(file.path(), kMaxCheckpointBytes);
    if (!read.ok()) return read.status();
    text = *std::move(read);
  }
  if (text.find('\n') == std::string::npos) {  // not there, or cut off before its first line was whole
    if (flags.resume) console.Note(absl::StrCat("nothing to resume at ", file.path(), ": a new training"));
    if (absl::Status status = file.Keep(0); !status.ok()) return status;
    return file.Add(CheckpointHeader(training.plan(), machine, CURTAIL_VERSION));
  }
  const absl::StatusOr<Checkpoint> before = ReadCheckpoint(text, training.plan(), machine, CURTAIL_VERSION);
  if (!before.ok()) return absl::InvalidArgumentError(Join(file.path(), ": ", Message(before.status())));
  for (const ProfileCell& cell : before->cells) {
    if (absl::Status told = training.Tell(cell); !told.ok()) return told;
  }
  console.Note(absl::StrCat("resumed: ", before->cells.size(), " cells were measured before"));
  return file.Keep(before->whole_bytes);
}

// Limits of path classes that the profile at --out holds stay in it: only --fences measures them.
void KeepFences(const std::string& out, Profile* profile, Console& console) {
  const absl::StatusOr<Profile> before = ReadProfileFile(out, /*any_machine=*/true);
  if (!before.ok() || before->fences.empty()) return;
  const size_t count = before->fences.size();
  const std::string limits =
      absl::StrCat("the ", count, count == 1 ? " limit" : " limits", " of path classes in ", out);
  if (absl::Status fits = CheckProfileFits(*before, profile->service, profile->machine); !fits.ok()) {
    return console.Note(Join("not kept: ", limits, ": ", Message(fits)));
  }
  profile->fences = before->fences;
  console.Note(absl::StrCat("kept: ", limits, "; --fences measures anew"));
}

// Writes the profile and says what it says.
int Finish(const TrainFlags& flags, const Training& training, const Subject& subject,
           const MachineFingerprint& machine, CheckpointFile& file, Console& console) {
  const std::string created = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone());
  Profile profile = training.MakeProfile(CURTAIL_VERSION, machine, created);
  const bool any = std::any_of(profile.cells.begin(), profile.cells.end(),
                               [](const ProfileCell& cell) { return !cell.saturated; });
  if (!any) {
    console.Print(TrainingGrid(training));
    console.Error(
        absl::StrFormat("no config kept up with the lowest load, %g/s", training.plan().loads.front()),
        "begin lower with --loads, or give a slow service a longer --timeout");
    file.Remove();
    return kFailed;
  }
  KeepFences(flags.out, &profile, console);
  const absl::StatusOr<std::string> json = ProfileJson(profile);
  if (!json.ok()) return FailWith(console, json.status(), "train", nullptr);
  if (absl::Status written = WriteFile(flags.out, *json); !written.ok()) {
    console.Error(std::string(Message(written)), absl::StrCat("the cells are in ", file.path(),
                                                              "; with --resume they are not measured again"));
    return kFailed;
  }
  file.Remove();
  console.Print(absl::StrCat(TrainingGrid(training), "\n", ProfileSummary(profile)));
  if (subject.disturbed() > 0) {
    console.Note(absl::StrCat("in ", subject.disturbed(), " of ", training.cells().size(),
                              " cells the generator was late itself: a busy machine"));
  }
  console.Print(absl::StrCat("profile  ", flags.out, "\n"));
  return kOk;
}

absl::Status CheckOutput(const TrainFlags& flags, CheckpointFile& file) {
  if (flags.out.empty()) return absl::InvalidArgumentError("--out: name the file for the profile");
  for (const std::string& path : {flags.out, file.path()}) {
    if (absl::Status status = CheckWritable(path); !status.ok()) return status;
  }
  if (!file.Exists()) return absl::OkStatus();
  if (absl::Status status = file.Lock(); !status.ok()) return status;
  if (!flags.resume) {
    return absl::InvalidArgumentError(absl::StrCat("an interrupted training is at ", file.path(),
                                                   ": go on with it by --resume, or delete it"));
  }
  return absl::OkStatus();
}

}  // namespace

int RunTrain(const TrainFlags& flags, Console& console, const std::atomic<bool>& stop) {
  if (flags.subject.load.targets.empty()) {
    return FailWith(console, absl::InvalidArgumentError("say what to train, as in: curtail train hdsearch"),
                    "train", nullptr);
  }
  if (absl::Status target = CheckTarget(flags.subject); !target.ok()) {
    return FailWith(console, target, "train", nullptr);
  }
  if (flags.fences) return RunFenceTraining(flags, console, stop);
  absl::StatusOr<TrainingPlan> plan = MakePlan(flags);
  if (!plan.ok()) return FailWith(console, plan.status(), "train", nullptr);
  console.PrintWrapped(absl::StrCat(console.Bold("train"), "    ",
                                    absl::StrJoin(flags.subject.load.targets, " "), "\n", PlanText(*plan)));
  if (flags.dry_run) return kOk;
  CheckpointFile file(absl::StrCat(flags.out, ".partial"));
  if (absl::Status status = CheckOutput(flags, file); !status.ok())
    return FailWith(console, status, "train", nullptr);
  const Machine now = *ThisOrigin(CURTAIL_VERSION).machine;
  if (now.load_average_before > kBusy * now.cpus) {
    console.Note(absl::StrFormat("the machine is busy (load average %.1f): the profile will be noisy",
                                 now.load_average_before));
  }
  absl::StatusOr<std::unique_ptr<Subject>> subject = Subject::Make(flags.subject, console, stop);
  if (!subject.ok()) return stop ? kInterrupted : FailWith(console, subject.status(), "train", nullptr);
  plan->service = (*subject)->service();
  plan->workload = (*subject)->description();
  const absl::StatusOr<std::string> left_out = LeaveOutRefused(**subject, plan->configs);
  if (!left_out.ok()) return FailWith(console, left_out.status(), "train", subject->get());
  if (!left_out->empty()) console.Note(absl::StrCat("the server cannot run under ", *left_out, ": left out"));
  if (absl::Status status = CheckPlan(*plan); !status.ok())
    return FailWith(console, status, "train", subject->get());

  const MachineFingerprint machine = ThisMachineFingerprint();
  Training training(*plan);
  if (absl::Status begun = Begin(flags, machine, training, file, console); !begun.ok()) {
    return FailWith(console, begun, "train", subject->get());
  }
  const absl::Status status = RunTraining(**subject, training, console, [&file](const ProfileCell& cell) {
    return file.Add(CheckpointLine(cell));
  });
  if (status.ok()) return Finish(flags, training, **subject, machine, file, console);
  if (absl::IsCancelled(status)) {
    console.Print(absl::StrCat("INTERRUPTED after ", training.cells().size(), " cells, which are in ",
                               file.path(), "; go on with --resume\n"));
    return kInterrupted;
  }
  return FailWith(console, status, "train", subject->get());
}

namespace {

constexpr char kTrainExamples[] =
    R"(Measures p50 and p99 of each config at each load, several times in turns, and writes a profile, by which a server chooses its
config: `hdsearch --policy mutune --profile profile.json`. A config that gives up at a load is spared higher ones. The
application is started and ended by this; a server that runs already is switched through its admin interface, and gets its
config back at the end. Train on the machine that serves: a profile is of one machine.

With --fences it drives each path class alone, finds the fewest requests at once that have the full throughput, and adds them
to the profile as limits: `hdsearch --fence on --profile profile.json` begins with these. A server that runs already needs
--fence dry-run for this; train it once for each of its methods, with the same --out.

Examples:
  curtail train hdsearch --out profile.json              # about 30 minutes
  curtail train hdsearch --quick --out profile.json      # under 3 minutes
  curtail train hdsearch --dry-run                       # says what it would measure, and how long that takes
  curtail train hdsearch --out profile.json --resume     # goes on after Ctrl-C or a power cut
  curtail train router --fences --out profile.json       # the limits of its path classes, about a minute
  curtail train 127.0.0.1:7000 --admin 127.0.0.1:9090 --method shop.Cart/Add --data @requests.jsonl --out cart.json

Exit codes: 0 ok, 1 a process failed or no disk space, 104 bad flags, a missing program or data set, 105 interrupted.)";

}  // namespace

Command AddTrain(CLI::App& app) {
  const auto f = std::make_shared<TrainFlags>();
  CLI::App* command =
      app.add_subcommand("train", "Measure which config is best at which load; write a profile");
  command->footer(kTrainExamples);
  AddSubjectFlags(*command, &f->subject,
                  "An application to start, or HOST:PORT or unix:PATH of a server that runs");
  command->add_option("--out", f->out, "The profile")->capture_default_str();
  command->add_option("--configs", f->configs, "Configs to measure [some that suit the CPUs]");
  command->add_option("--loads", f->loads, "Requests a second [a ladder until all give up]");
  command->add_option("--repeats", f->repeats, "Times that each cell is measured, at least 3")
      ->check(CLI::Range(3, 1000));
  command->add_option("--seconds", f->seconds, "Length of a cell; low loads take longer")
      ->check(Between(0.05, 3600));
  command->add_option("--seed", f->seed, "Of the arrivals")->check(NotNegative())->capture_default_str();
  command->add_flag("--quick", f->quick, "Fewer configs and loads, shorter cells");
  command->add_flag("--dry-run", f->dry_run, "Print the plan and stop");
  command->add_flag("--resume", f->resume, "Go on with an interrupted training");
  command->add_flag("--fences", f->fences,
                    "Find how many requests of each path class should run at once, in place of configs");
  return {command, [f](const Invocation& given) { return RunTrain(*f, given.console, given.stop); }};
}

}  // namespace curtail::tool
