// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/train/subject.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "curtail/adapt/training.h"
#include "curtail/base/clock.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/admin/admin.pb.h"
#include "curtail/term/exit_code.h"
#include "tools/curtail/deploy/target.h"
#include "tools/curtail/load/load_setup.h"
#include "tools/curtail/term/flags.h"

namespace curtail::tool {
namespace {

constexpr Nanos kSettle = std::chrono::seconds(5);
constexpr Nanos kLookAgain = std::chrono::milliseconds(20);

// Counts the good replies that arrive in a window. A server that falls behind answers everything in the end, if the run
// is shorter than the timeout; but it answers less than is due in the same time. One that is only slow does not.
class Answered final : public RunObserver {
 public:
  Answered(Nanos from, Nanos until) : from_(from), until_(until) {}
  void Started(TimePoint) override {}
  void Ended(Nanos due, Nanos latency, bool ok) override {
    const Nanos end = due + latency;
    if (ok && end >= from_ && end < until_ + kGrace) ++count_;
  }
  // Of `due` that were due in the window.
  double PerSecond(uint64_t due) const {
    return static_cast<double>(std::min(count_, due)) * 1e9 / static_cast<double>((until_ - from_).count());
  }

 private:
  // Replies that come a moment after the window count: at low loads one or two are always on their way.
  static constexpr Nanos kGrace = std::chrono::milliseconds(20);
  const Nanos from_;
  const Nanos until_;
  uint64_t count_ = 0;
};

// The requests, in a few digits: so that a training is not resumed with other requests.
std::string Digest(const Workload& workload) {
  constexpr uint64_t kRequests = 200;
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (uint64_t i = 0; i < kRequests; ++i) {
    for (const char byte : workload.Request(i))
      hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211u;
  }
  return absl::StrCat(" [requests ", absl::Hex(hash, absl::kZeroPad16), "]");
}

// The flags that make no sense for an application, which knows what to send and where.
absl::Status CheckApplicationFlags(const SubjectFlags& flags) {
  const LoadFlags& load = flags.load;
  const std::pair<bool, const char*> given[] = {
      {!flags.admin.empty(), "--admin"},        {load.tls, "--tls"},
      {!load.method.empty(), "--method"},       {!load.data.empty(), "--data"},
      {!load.data_hex.empty(), "--data-hex"},   {!load.data_binary.empty(), "--data-binary"},
      {!load.metadata.empty(), "--metadata"},   {!load.protos.empty(), "--proto"},
      {load.pick != LoadFlags().pick, "--pick"}};
  for (const auto& [is_given, name] : given) {
    if (!is_given) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is for a server that runs already; ", load.targets.front(),
                     " is started by this command, which has its requests: leave the flag out"));
  }
  return absl::OkStatus();
}

// Why no request of a run was answered, if that says something else than too much load.
absl::Status RefusesAll(const LoadResult& run) {
  if (run.ok > 0 || run.errors.empty()) return absl::OkStatus();
  const auto most = std::max_element(run.errors.begin(), run.errors.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  for (const char* overload : {"DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "UNAVAILABLE"}) {
    if (most->first.starts_with(overload)) return absl::OkStatus();
  }
  return absl::AbortedError(absl::StrCat("every request fails: ", most->first));
}

// "shop.Cart" of "/shop.Cart/Add".
std::string ServiceOf(std::string_view method) {
  const size_t slash = method.rfind('/');
  return std::string(method.substr(1, slash == std::string_view::npos ? slash : slash - 1));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Subject>> Subject::Make(const SubjectFlags& flags, Console& console,
                                                       const std::atomic<bool>& stop) {
  std::unique_ptr<Subject> subject(new Subject(stop));
  const std::vector<std::string>& targets = flags.load.targets;
  const bool start = targets.size() == 1 && apps::IsApplication(targets.front());
  absl::Status made = start ? subject->StartApplication(flags, console) : subject->Reach(flags, console);
  if (!made.ok()) return made;
  return subject;
}

absl::StatusOr<std::unique_ptr<Subject>> Subject::Over(const apps::Application& application,
                                                       deploy::Tiers& tiers, const std::atomic<bool>& stop) {
  std::unique_ptr<Subject> subject(new Subject(stop));
  if (absl::Status started = subject->StartMidTier(application, tiers, {}); !started.ok()) return started;
  return subject;
}

absl::Status Subject::StartApplication(const SubjectFlags& flags, Console& console) {
  if (absl::Status status = CheckApplicationFlags(flags); !status.ok()) return status;
  const absl::StatusOr<Nanos> timeout = TimeLimitOf("--timeout", flags.load.timeout);
  if (!timeout.ok()) return timeout.status();
  options_.timeout = *timeout;
  options_.channel.connections = flags.load.connections.value_or(1);
  logs_ = std::make_unique<deploy::LogFolder>();
  if (logs_->path().empty()) {
    return absl::InternalError("cannot make a folder for logs; set TMPDIR to one that can be written");
  }
  absl::StatusOr<std::unique_ptr<apps::Application>> application =
      apps::MakeApplication(flags.load.targets.front(), flags.application);
  if (!application.ok()) return application.status();
  application_ = *std::move(application);
  console.Note(absl::StrCat("starting ", application_->description, " ..."));
  absl::StatusOr<std::unique_ptr<deploy::Tiers>> tiers =
      deploy::Tiers::Start(application_->topology, *logs_, stop_);
  if (!tiers.ok()) return tiers.status();
  own_tiers_ = *std::move(tiers);
  return StartMidTier(*application_, *own_tiers_, {.fence = flags.fence});
}

absl::Status Subject::StartMidTier(const apps::Application& application, deploy::Tiers& tiers,
                                   deploy::MidTierSetup setup) {
  tiers_ = &tiers;
  absl::StatusOr<std::unique_ptr<deploy::MidTier>> mid_tier =
      tiers.StartMidTier(std::move(setup), /*admin=*/true);
  if (!mid_tier.ok()) return mid_tier.status();
  mid_tier_ = *std::move(mid_tier);
  absl::StatusOr<std::shared_ptr<const Workload>> workload = application.requests();
  if (!workload.ok()) return workload.status();
  workload_ = *std::move(workload);
  service_ = application.service;
  description_ = absl::StrCat(application.description, Digest(*workload_));
  options_.targets = {mid_tier_->address()};
  options_.first_must_succeed = true;
  options_.workload_name = application.name;
  options_.stop = &stop_;
  admin_ = std::make_unique<deploy::AdminClient>(mid_tier_->admin());
  return absl::OkStatus();
}

absl::Status Subject::Reach(const SubjectFlags& flags, Console& console) {
  if (flags.admin.empty()) {
    return absl::InvalidArgumentError(
        "say with --admin ADDRESS where the server's config can be changed (its own --admin), or name an "
        "application, as in: curtail train hdsearch");
  }
  LoadFlags load = flags.load;
  load.corpus = flags.application.data;
  load.own = {flags.application.own.begin(), flags.application.own.end()};
  load.leaves = flags.application.leaves;
  load.rps = 1;  // MakeSetup() wants to know how much is sent; the plan says that for each cell
  absl::StatusOr<LoadTargets> targets = MakeTargets(load);
  if (!targets.ok()) return targets.status();
  if (targets->http) {
    return absl::InvalidArgumentError(
        "the config is changed in a curtail server, which speaks gRPC: give HOST:PORT in place of a URL");
  }
  if (targets->addresses.size() > 1) {
    return absl::InvalidArgumentError(
        "several addresses are given, and the config of one server is changed: give one");
  }
  admin_ = std::make_unique<deploy::AdminClient>(flags.admin);
  absl::StatusOr<std::string> config = admin_->GetConfig();
  if (!config.ok()) {
    return absl::InvalidArgumentError(Join("--admin ", flags.admin, ": ", Message(config.status()),
                                           "; is that the address given to the server as --admin?"));
  }
  config_before_ = *std::move(config);
  absl::StatusOr<LoadSetup> setup = MakeSetup(load, *targets);
  if (!setup.ok()) return setup.status();
  const absl::StatusOr<WorkloadMaker> workloads = MakeWorkloads(load, *targets, !console.shows_progress());
  if (!workloads.ok()) return workloads.status();
  absl::StatusOr<std::shared_ptr<const Workload>> workload = (*workloads)(load.seed);
  if (!workload.ok()) return workload.status();
  workload_ = *std::move(workload);
  service_ = ServiceOf(workload_->method());
  description_ = absl::StrCat(std::string(workload_->method().substr(1)), Digest(*workload_));
  options_ = std::move(setup->options);
  options_.stop = &stop_;
  return absl::OkStatus();
}

Subject::~Subject() {
  if (config_before_.empty()) return;
  admin_->Switch(config_before_).IgnoreError();  // a server that is gone needs no config
}

absl::Status Subject::SwitchTo(const Config& config) { return admin_->Switch(config.ToString()).status(); }

absl::Status Subject::Check() {
  if (stop_) return absl::CancelledError("interrupted");
  if (tiers_ == nullptr) return absl::OkStatus();
  if (absl::Status leaves = tiers_->CheckLeaves(); !leaves.ok()) return leaves;
  return mid_tier_->Check();
}

void Subject::Settle() {
  const Deadline limit = Deadline::In(kSettle);
  while (!limit.Expired() && !stop_) {
    const absl::StatusOr<admin::v1::GetStatusReply> status = admin_->GetStatus();
    if (!status.ok() || status->open_calls() <= 1) return;  // this very call is open
    timespec pause{0, kLookAgain.count()};
    nanosleep(&pause, nullptr);
  }
}

std::optional<Nanos> Subject::Cpu() const {
  const absl::StatusOr<admin::v1::GetStatusReply> status = admin_->GetStatus();
  if (!status.ok() || !status->has_process()) return std::nullopt;
  return std::chrono::microseconds(status->process().cpu_us());
}

absl::StatusOr<ProfileCell> Subject::Measure(const Config& config, double load_per_s, Nanos warmup,
                                             Nanos length, uint64_t seed) {
  if (absl::Status status = SwitchTo(config); !status.ok()) return status;
  const absl::StatusOr<Schedule> schedule = Schedule::Poisson(load_per_s, warmup + length, seed);
  if (!schedule.ok()) return schedule.status();
  RunOptions options = options_;
  options.warmup = warmup;
  Answered answered(warmup, warmup + length);
  options.observer = &answered;
  const std::optional<Nanos> cpu_before = Cpu();
  const TimePoint begun = Now();
  const absl::StatusOr<LoadResult> run = RunOpenLoop(options, *workload_, *schedule);
  const Nanos elapsed = Now() - begun;
  const std::optional<Nanos> cpu_after = Cpu();
  if (absl::Status status = Check(); !status.ok()) return status;
  if (!run.ok()) return run.status();
  if (run->interrupted) return absl::CancelledError("interrupted");
  if (run->scheduled == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("no request is due within a cell at ", load_per_s, "/s: give cells more --seconds"));
  }
  if (absl::Status refused = RefusesAll(*run); !refused.ok()) return refused;
  if (!run->valid()) ++disturbed_;
  score_.name = run->score.name;
  score_.count += run->score.count;
  score_.sum += run->score.sum;
  ProfileCell cell{.config = config, .load_per_s = load_per_s};
  cell.p50_us = InMicros(run->all.Percentile(50));
  cell.p99_us = InMicros(run->all.Percentile(99));
  cell.mean_us = InMicros(run->all.mean());
  cell.achieved_per_s = answered.PerSecond(run->scheduled);
  cell.failed_share = run->failed_fraction();
  cell.saturated = IsSaturated(run->scheduled_per_s, cell.achieved_per_s, run->failed_fraction());
  if (cpu_before && cpu_after && *cpu_after >= *cpu_before)
    cell.cpu_cores = InSeconds(*cpu_after - *cpu_before) / InSeconds(elapsed);
  if (cell.saturated) Settle();
  return cell;
}

absl::StatusOr<Config> Subject::SetConfig(const std::string& config) {
  if (!config.empty()) {
    const absl::StatusOr<Config> wanted = Config::Parse(config);
    if (!wanted.ok()) return wanted;
    if (absl::Status switched = SwitchTo(*wanted); !switched.ok()) return switched;
  }
  const absl::StatusOr<std::string> now = admin_->GetConfig();
  if (!now.ok()) return now.status();
  return Config::Parse(*now);
}

absl::StatusOr<LoadResult> Subject::Drive(const Workload& workload, const DriveOptions& drive) {
  RunOptions options = options_;
  options.warmup = drive.warmup;
  options.requests = drive.requests;
  options.observer = drive.observer;
  const auto outstanding = static_cast<size_t>(drive.outstanding);
  options.channel.connections = static_cast<int>(std::min<size_t>(outstanding, 4));
  absl::StatusOr<LoadResult> run = RunClosedLoop(options, workload, drive.outstanding, drive.length);
  if (absl::Status status = Check(); !status.ok()) return status;
  if (!run.ok()) return run.status();
  if (run->interrupted) return absl::CancelledError("interrupted");
  if (absl::Status refused = RefusesAll(*run); !refused.ok()) return refused;
  return run;
}

absl::Status CheckTarget(const SubjectFlags& flags) {
  for (const std::string& target : flags.load.targets) {
    if (IsAddress(target) || apps::IsApplication(target)) continue;
    if (const auto found = FindProcesses(target); found.ok()) continue;
    return absl::NotFoundError(
        absl::StrCat(apps::NoApplication(target).message(),
                     "\n  hint: for a server that runs give its address, HOST:PORT or unix:PATH"));
  }
  return absl::OkStatus();
}

void Subject::KeepLogs() {
  if (logs_ != nullptr) logs_->Keep();
}

int FailWith(Console& console, const absl::Status& status, std::string_view command, Subject* subject) {
  const bool flags = absl::IsInvalidArgument(status) || absl::IsNotFound(status);
  console.Error(std::string(Message(status)), flags ? Join("see curtail ", command, " --help") : "");
  if (flags) return kBadConfig;
  if (subject != nullptr && !subject->log_folder().empty()) {
    subject->KeepLogs();
    console.Note(absl::StrCat("the logs of the processes are in ", subject->log_folder()));
  }
  return kFailed;
}

}  // namespace curtail::tool
