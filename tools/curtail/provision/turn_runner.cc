// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/provision/turn_runner.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "curtail/load/drive/live.h"
#include "curtail/term/interrupt.h"
#include "tools/curtail/load/trial.h"
#include "tools/curtail/term/progress.h"

namespace curtail::tool {
namespace {

constexpr Nanos kTurnWarmup = std::chrono::milliseconds(300);
constexpr Nanos kAfterTurn = std::chrono::milliseconds(100);
constexpr double kLeastRequests = 200;
constexpr double kStretch = 5;  // times the length, however few requests are due

// Counts the requests that are answered within the bound.
class Within final : public RunObserver {
 public:
  explicit Within(Nanos bound) : bound_(bound) {}
  void Started(TimePoint) override {}
  void Ended(Nanos due, Nanos latency, bool ok) override {
    if (due < kTurnWarmup) return;
    ++due_;
    good_ += ok && latency <= bound_ ? 1 : 0;
  }
  double share() const { return due_ == 0 ? 0 : static_cast<double>(good_) / static_cast<double>(due_); }

 private:
  const Nanos bound_;
  uint64_t due_ = 0, good_ = 0;
};

}  // namespace

absl::Status TurnRunner::LiftLimits() {
  absl::Status status;
  for (const deploy::Instance& instance : deployment_.instances()) {
    if (instance.cpu_group != nullptr) status.Update(instance.cpu_group->Limit(0));
  }
  return status;
}

absl::Status TurnRunner::SetConfigs(const Allocation& shares) {
  for (const deploy::Instance& instance : deployment_.instances()) {
    const TierShare& share = shares.at(instance.service->name);
    if (share.config.empty() || instance.admin.empty()) continue;
    std::unique_ptr<deploy::AdminClient>& admin = admins_[instance.name];
    if (admin == nullptr) admin = std::make_unique<deploy::AdminClient>(instance.admin);
    std::string& in_force = configs_[instance.name];
    if (in_force == share.config) continue;
    if (const auto switched = admin->Switch(share.config); !switched.ok()) return switched.status();
    in_force = share.config;
  }
  return absl::OkStatus();
}

absl::Status TurnRunner::Apply(const Allocation& shares) {
  absl::Status status = SetConfigs(shares);
  for (const auto& [name, share] : shares) {
    if (plan_.cpu && share.cpu > 0) status.Update(deployment_.LimitCpu(name, share.cpu));
  }
  return status;
}

absl::StatusOr<TurnRunner::Throttling> TurnRunner::ReadGroups() const {
  Throttling read{.at = Now(), .groups = {}};
  for (const deploy::Instance& instance : deployment_.instances()) {
    if (instance.cpu_group == nullptr) continue;
    const absl::StatusOr<deploy::CpuGroupUse> use = instance.cpu_group->Use();
    if (!use.ok()) return use.status();
    read.groups[instance.name] = *use;
  }
  return read;
}

std::map<std::string, double> TurnRunner::Throttled(const Throttling& from, const Throttling& to) const {
  std::map<std::string, double> throttled;
  const double periods = std::max(1.0, InSeconds(to.at - from.at) / InSeconds(deploy::kCpuPeriod));
  for (const deploy::Instance& instance : deployment_.instances()) {
    const auto begun = from.groups.find(instance.name), ended = to.groups.find(instance.name);
    if (begun == from.groups.end() || ended == to.groups.end()) continue;
    const auto times = static_cast<double>(ended->second.throttled - begun->second.throttled);
    double& most = throttled[instance.service->name];
    most = std::max(most, std::min(1.0, times / periods));
  }
  return throttled;
}

absl::StatusOr<TurnResult> TurnRunner::Run(const ProvisionTurn& turn, const std::string& label) {
  const double seconds = std::clamp(kLeastRequests / turn.rate_per_s, InSeconds(plan_.length),
                                    kStretch * InSeconds(plan_.length));
  const Nanos length = kTurnWarmup + FromSeconds(seconds);
  const absl::StatusOr<Schedule> schedule =
      Schedule::Poisson(turn.rate_per_s, length, plan_.seed + turn.arrivals);
  if (!schedule.ok()) return schedule.status();
  const auto workload = plan_.workloads(plan_.seed + turn.arrivals);
  if (!workload.ok()) return workload.status();
  if (absl::Status configs = SetConfigs(*turn.shares); !configs.ok()) return configs;
  const absl::StatusOr<ApplicationVitals> before = LookAt(plan_.application, stop_);
  if (!before.ok()) return before.status();
  if (absl::Status applied = Apply(*turn.shares); !applied.ok()) return applied;
  const absl::StatusOr<Throttling> from = ReadGroups();
  if (!from.ok()) return from.status();
  Live live;
  Within within(plan_.within);
  RunOptions options = plan_.options;
  options.warmup = kTurnWarmup;
  options.observer = &within;
  options.live = &live;
  options.stop = &stop_;
  absl::StatusOr<LoadResult> run = absl::UnknownError("");
  {
    const ProgressLine line(&console_, &live, label, length);
    run = RunOpenLoop(options, **workload, *schedule);
  }
  const absl::StatusOr<Throttling> to = ReadGroups();
  if (absl::Status lifted = LiftLimits(); !lifted.ok()) return lifted;
  if (stop_.load(std::memory_order_relaxed)) return absl::CancelledError("interrupted");
  if (absl::Status there = deployment_.Check(); !there.ok()) return there;
  if (!run.ok()) return run.status();
  if (!to.ok()) return to.status();
  const absl::StatusOr<ApplicationVitals> now = LookAt(plan_.application, stop_);
  if (!now.ok()) return now.status();
  p99_ = run->all.Percentile(99);
  std::string why;
  TurnResult result{.outcome = JudgeTrial(*run, plan_.qos, &why),
                    .good_share = within.share(),
                    .tiers = TierLoads(*before, *now, Throttled(*from, *to))};
  cpus_ = 0;
  for (const TierLoad& tier : result.tiers) cpus_ += tier.cpus;
  WaitUntil(Now() + kAfterTurn, stop_);
  return result;
}

}  // namespace curtail::tool
