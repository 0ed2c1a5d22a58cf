// SPDX-License-Identifier: Apache-2.0
#include "subject.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "curtail/adapt/training.h"
#include "curtail/base/strings.h"
#include "load_setup.h"
#include "nlohmann/json.hpp"

namespace curtail::tool {
namespace {

constexpr Nanos kSettle = std::chrono::seconds(5);
constexpr Nanos kLookAgain = std::chrono::milliseconds(20);
// Replies after the end of a cell that still count as in time.
constexpr Nanos kGrace = std::chrono::milliseconds(50);
constexpr Nanos kTimeout = std::chrono::seconds(1);

double Us(Nanos t) { return static_cast<double>(t.count()) / 1e3; }

// Counts what is answered in time. A server that falls behind answers everything in the end, if the run is shorter than
// the timeout.
class InTime final : public RunObserver {
 public:
  InTime(Nanos from, Nanos until) : from_(from), until_(until) {}
  void Started(TimePoint) override {}
  void Ended(Nanos due, Nanos latency, bool ok) override {
    if (due >= from_ && ok && due + latency <= until_) ++count_;
  }
  uint64_t count() const { return count_; }

 private:
  const Nanos from_;
  const Nanos until_;
  uint64_t count_ = 0;
};

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
  const bool start = targets.size() == 1 && IsApplication(targets.front());
  absl::Status made = start ? subject->StartApplication(flags, console) : subject->Reach(flags, console);
  if (!made.ok()) return made;
  return subject;
}

absl::StatusOr<std::unique_ptr<Subject>> Subject::Over(const Application& application, Tiers& tiers,
                                                       const std::atomic<bool>& stop) {
  std::unique_ptr<Subject> subject(new Subject(stop));
  if (absl::Status started = subject->StartMidTier(application, tiers); !started.ok()) return started;
  return subject;
}

absl::Status Subject::StartApplication(const SubjectFlags& flags, Console& console) {
  if (!flags.admin.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--admin is for a server that runs already; give its address before, or after ",
                     flags.load.targets.front()));
  }
  logs_ = std::make_unique<LogFolder>();
  if (logs_->path().empty()) {
    return absl::InternalError("cannot make a folder for logs; set TMPDIR to one that can be written");
  }
  absl::StatusOr<std::unique_ptr<Application>> application =
      MakeApplication(flags.load.targets.front(), flags.application);
  if (!application.ok()) return application.status();
  application_ = *std::move(application);
  console.Note(absl::StrCat("starting ", application_->description(), " ..."));
  absl::StatusOr<std::unique_ptr<Tiers>> tiers = Tiers::Start(*application_, *logs_, stop_);
  if (!tiers.ok()) return tiers.status();
  own_tiers_ = *std::move(tiers);
  return StartMidTier(*application_, *own_tiers_);
}

absl::Status Subject::StartMidTier(const Application& application, Tiers& tiers) {
  tiers_ = &tiers;
  absl::StatusOr<std::unique_ptr<MidTier>> mid_tier = tiers.StartMidTier({}, /*admin=*/true);
  if (!mid_tier.ok()) return mid_tier.status();
  mid_tier_ = *std::move(mid_tier);
  workload_ = std::shared_ptr<const Workload>(std::shared_ptr<void>(), &application.workload());
  service_ = application.service();
  description_ = application.description();
  options_.targets = {mid_tier_->address()};
  options_.workload_name = application.name();
  options_.timeout = kTimeout;
  options_.stop = &stop_;
  admin_ = std::make_unique<AdminClient>(mid_tier_->admin());
  return absl::OkStatus();
}

absl::Status Subject::Reach(const SubjectFlags& flags, Console& console) {
  if (flags.admin.empty()) {
    return absl::InvalidArgumentError(
        "say with --admin ADDRESS where the server's config can be changed (its own --admin), or name an "
        "application, as in: curtail train hdsearch");
  }
  LoadFlags load = flags.load;
  load.rps = 1;  // MakeSetup() wants to know how much is sent; the plan says that for each cell
  absl::StatusOr<LoadTargets> targets = MakeTargets(load);
  if (!targets.ok()) return targets.status();
  absl::StatusOr<LoadSetup> setup = MakeSetup(load, *targets);
  if (!setup.ok()) return setup.status();
  const absl::StatusOr<WorkloadMaker> workloads = MakeWorkloads(load, *targets, !console.shows_progress());
  if (!workloads.ok()) return workloads.status();
  absl::StatusOr<std::shared_ptr<const Workload>> workload = (*workloads)(load.seed);
  if (!workload.ok()) return workload.status();
  workload_ = *std::move(workload);
  service_ = ServiceOf(workload_->method());
  description_ =
      absl::StrCat(std::string(workload_->method().substr(1)), load.data.empty() ? "" : " ", load.data);
  options_ = std::move(setup->options);
  options_.stop = &stop_;
  admin_ = std::make_unique<AdminClient>(flags.admin);
  return absl::OkStatus();
}

absl::Status Subject::SwitchTo(const Config& config) {
  std::string before;
  return admin_->Call("Switch", config.ToString(), &before);
}

absl::Status Subject::Check() {
  if (stop_) return absl::CancelledError("interrupted");
  if (tiers_ == nullptr) return absl::OkStatus();
  if (absl::Status leaves = tiers_->CheckLeaves(); !leaves.ok()) return leaves;
  return mid_tier_->Check();
}

void Subject::Settle() {
  const Deadline limit = Deadline::In(kSettle);
  while (!limit.Expired() && !stop_) {
    std::string status;
    if (!admin_->Call("GetStatus", "", &status).ok()) return;
    const auto json = nlohmann::json::parse(status, nullptr, /*allow_exceptions=*/false);
    // This very call is open.
    if (!json.is_object() || json.value("open_calls", 0) <= 1) return;
    timespec pause{0, kLookAgain.count()};
    nanosleep(&pause, nullptr);
  }
}

absl::StatusOr<ProfileCell> Subject::Measure(const Config& config, double load_per_s, Nanos warmup,
                                             Nanos length, uint64_t seed) {
  if (absl::Status status = SwitchTo(config); !status.ok()) return status;
  const absl::StatusOr<Schedule> schedule = Schedule::Poisson(load_per_s, warmup + length, seed);
  if (!schedule.ok()) return schedule.status();
  RunOptions options = options_;
  options.warmup = warmup;
  InTime in_time(warmup, warmup + length + kGrace);
  options.observer = &in_time;
  const absl::StatusOr<LoadResult> run = RunOpenLoop(options, *workload_, *schedule);
  if (absl::Status status = Check(); !status.ok()) return status;
  if (!run.ok()) return run.status();
  if (run->interrupted) return absl::CancelledError("interrupted");
  if (!run->valid()) ++disturbed_;
  score_.name = run->score.name;
  score_.count += run->score.count;
  score_.sum += run->score.sum;
  ProfileCell cell{.config = config, .load_per_s = load_per_s};
  cell.p50_us = Us(run->all.Percentile(50));
  cell.p99_us = Us(run->all.Percentile(99));
  cell.mean_us = Us(run->all.mean());
  cell.achieved_per_s = static_cast<double>(in_time.count()) * 1e9 / static_cast<double>(length.count());
  cell.failed_share = run->failed_fraction();
  cell.saturated = IsSaturated(run->scheduled_per_s, cell.achieved_per_s, run->failed_fraction());
  if (cell.saturated) Settle();
  return cell;
}

void Subject::KeepLogs() {
  if (logs_ != nullptr) logs_->Keep();
}

}  // namespace curtail::tool
