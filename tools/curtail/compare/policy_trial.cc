// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/compare/policy_trial.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "curtail/adapt/policy_kind.h"
#include "curtail/adapt/training.h"
#include "curtail/base/strings.h"
#include "curtail/deploy/admin_client.h"
#include "curtail/load/drive/runner.h"
#include "curtail/rpc/admin/admin.pb.h"
#include "tools/curtail/compare/policy_judge.h"
#include "tools/curtail/term/progress.h"

namespace curtail::tool {
namespace {

constexpr std::string_view kWithProfile = "+profile";
// Beyond those of a training and of a verification.
constexpr uint64_t kSeeds = uint64_t{3} << 31;
constexpr Nanos kTimeout = std::chrono::seconds(2);  // so that "over a second" is seen

// Keeps every call of a run.
class CallLog final : public RunObserver {
 public:
  explicit CallLog(double expected) {
    samples_.reserve(static_cast<size_t>(std::min(expected * 1.1, 4e6)) + 100);
  }
  void Started(TimePoint start) override { start_ = start; }
  void Ended(Nanos due, Nanos latency, bool ok) override { samples_.push_back({due, latency, ok}); }

  TimePoint start() const { return start_; }
  std::vector<CallSample> Take() { return std::move(samples_); }

 private:
  TimePoint start_;
  std::vector<CallSample> samples_;
};

// The server's account of its policy, in `length` from `start` on.
absl::Status ReadDecisions(deploy::AdminClient& admin, TimePoint start, Nanos length,
                           PolicyMeasurement* measured) {
  const absl::StatusOr<admin::v1::GetDecisionsReply> reply = admin.GetDecisions();
  if (!reply.ok()) return reply.status();
  const uint64_t switches = reply->switches();
  uint64_t listed = 0;
  uint64_t outside = 0;
  for (const admin::v1::Decision& decision : reply->decisions()) {
    if (!decision.failure().empty()) continue;
    ++listed;
    const Nanos at = TimePoint(Nanos(decision.at_ns())) - start;
    if (at < Nanos(0) || at >= length) {
      ++outside;
      continue;
    }
    measured->changes.push_back({.at = at,
                                 .rate_per_s = decision.rate_per_s(),
                                 .from = decision.from(),
                                 .to = decision.to(),
                                 .reason = decision.reason()});
  }
  measured->changes_lost = switches > listed;  // the server remembers the last ones
  measured->switches = std::max<uint64_t>(measured->changes.size(), switches - std::min(switches, outside));
  return absl::OkStatus();
}

deploy::MidTierSetup SetupOf(const PolicyChoice& policy, const TrialOptions& options) {
  deploy::MidTierSetup setup{.policy = policy.policy,
                             .slo = options.slo,
                             .cpu_weight = policy.cpu_weight.value_or(options.cpu_weight)};
  if (policy.wants_profile) setup.profile = policy.profile.empty() ? options.profile : policy.profile;
  setup.any_machine = options.any_machine;
  return setup;
}

// Starts leaves and a mid-tier under the policy, sends the scenario's arrivals, and ends the processes.
class Trial {
 public:
  Trial(const apps::Application& application, const deploy::LogFolder& logs, const TrialOptions& options,
        Console& console, const std::atomic<bool>& stop)
      : application_(application), logs_(logs), options_(options), console_(console), stop_(stop) {}

  // Fills what was measured. Errors: as RunTrials().
  absl::Status Run(const PolicyChoice& policy, const Scenario& scenario, uint64_t seed,
                   const std::string& label, PolicyMeasurement* measured);

 private:
  const apps::Application& application_;
  const deploy::LogFolder& logs_;
  const TrialOptions& options_;
  Console& console_;
  const std::atomic<bool>& stop_;
};

absl::Status Trial::Run(const PolicyChoice& policy, const Scenario& scenario, uint64_t seed,
                        const std::string& label, PolicyMeasurement* measured) {
  const absl::StatusOr<Schedule> schedule = Schedule::Make(scenario.curve, Gaps::kPoisson, seed);
  if (!schedule.ok()) return schedule.status();
  console_.Progress(label);
  const absl::StatusOr<std::unique_ptr<deploy::Tiers>> tiers =
      deploy::Tiers::Start(application_.topology, logs_, stop_);
  if (!tiers.ok()) return tiers.status();
  const absl::StatusOr<std::unique_ptr<deploy::MidTier>> mid_tier =
      (*tiers)->StartMidTier(SetupOf(policy, options_), /*admin=*/true);
  if (!mid_tier.ok()) return mid_tier.status();
  const absl::StatusOr<std::shared_ptr<const Workload>> workload = application_.requests();
  if (!workload.ok()) return workload.status();
  deploy::AdminClient admin((*mid_tier)->admin());
  absl::StatusOr<std::string> first_config = admin.GetConfig();
  if (!first_config.ok()) return first_config.status();
  measured->first_config = *std::move(first_config);

  Live live;
  CallLog log(scenario.curve.total());
  RunOptions run;
  run.targets = {(*mid_tier)->address()};
  run.workload_name = application_.name;
  run.schedule_name = scenario.name;
  run.timeout = kTimeout;
  run.warmup = scenario.warmup;
  run.stop = &stop_;
  run.live = &live;
  run.observer = &log;
  const Nanos cpu = (*mid_tier)->Cpu();
  const TimePoint begun = Now();
  const absl::StatusOr<LoadResult> result = [&] {
    const ProgressLine line(&console_, &live, label, schedule->length());
    return RunOpenLoop(run, **workload, *schedule);
  }();
  const double elapsed = static_cast<double>((Now() - begun).count());
  measured->server_cpu = (*mid_tier)->Cpu() - cpu;
  measured->server_cores = static_cast<double>(measured->server_cpu.count()) / elapsed;
  // That it has ended says more than the calls that failed.
  if (absl::Status died = (*mid_tier)->Check(); !died.ok()) return died;
  if (absl::Status died = (*tiers)->CheckLeaves(); !died.ok()) return died;
  if (!result.ok()) return result.status();
  if (result->interrupted) return absl::CancelledError("interrupted");
  measured->samples = log.Take();
  measured->invalid = result->invalid;
  return policy.switches ? ReadDecisions(admin, log.start(), schedule->length(), measured) : absl::OkStatus();
}

// Runs whole rounds.
class Rounds {
 public:
  Rounds(const apps::Application& application, const deploy::LogFolder& logs, const ComparisonPlan& plan,
         Console& console, const std::atomic<bool>& stop, PolicyComparison& comparison)
      : plan_(plan),
        console_(console),
        stop_(stop),
        comparison_(comparison),
        trial_(application, logs, plan.options, console, stop) {}

  // All policies under all scenarios. Errors: as RunTrials().
  absl::Status Run(int round);

 private:
  absl::Status RunOne(int round, size_t scenario, const PolicyChoice& policy);

  const ComparisonPlan& plan_;
  Console& console_;
  const std::atomic<bool>& stop_;
  PolicyComparison& comparison_;
  Trial trial_;
};

absl::Status Rounds::Run(int round) {
  for (size_t scenario = 0; scenario < plan_.scenarios.size(); ++scenario) {
    for (size_t i = 0; i < plan_.policies.size(); ++i) {
      if (stop_) return absl::CancelledError("interrupted");
      const size_t turn = (i + static_cast<size_t>(round) + scenario) % plan_.policies.size();
      if (absl::Status status = RunOne(round, scenario, plan_.policies[turn]); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

absl::Status Rounds::RunOne(int round, size_t scenario, const PolicyChoice& policy) {
  const size_t total =
      static_cast<size_t>(comparison_.rounds) * plan_.scenarios.size() * plan_.policies.size();
  const std::string label = absl::StrFormat("run %d/%d  %s  %s", comparison_.runs.size() + 1, total,
                                            plan_.scenarios[scenario].name, policy.label);
  const uint64_t arrivals = static_cast<uint64_t>(round) * plan_.scenarios.size() + scenario;
  PolicyMeasurement measured{.policy = policy.label, .scenario = scenario, .round = round};
  absl::Status status = trial_.Run(policy, plan_.scenarios[scenario],
                                   ArrivalsSeed(plan_.seed, kSeeds + arrivals), label, &measured);
  if (!status.ok()) return status;
  comparison_.runs.push_back(Evaluate(std::move(measured), plan_.scenarios[scenario]));
  const PolicyRun& run = comparison_.runs.back();
  console_.Note(absl::StrFormat("%s  p99 %.2f ms, %d failed, %d switches%s", label, run.whole.p99_us / 1e3,
                                run.whole.failed, run.switches,
                                run.valid() ? "" : ", void: " + absl::StrJoin(run.invalid, "; ")));
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> SplitPolicies(std::string_view list) {
  return absl::StrSplit(std::string(list), list.find(';') == list.npos ? ',' : ';');
}

PolicyChoice ParsePolicyChoice(std::string_view label) {
  PolicyChoice choice{.label = std::string(label), .policy = std::string(label)};
  const bool with_profile = label.ends_with(kWithProfile);
  if (with_profile) choice.policy.resize(label.size() - kWithProfile.size());
  const absl::StatusOr<PolicySpec> spec = ParsePolicy(choice.policy);
  if (!spec.ok()) {
    choice.wants_profile = with_profile;
    return choice;
  }
  choice.wants_profile = spec->NeedsProfile() || (with_profile && spec->TakesProfile());
  choice.switches = spec->kind->switches;
  choice.learns = spec->kind->latencies;
  return choice;
}

Nanos ComparisonPlan::RoundLength() const {
  Nanos length(0);
  for (const Scenario& scenario : scenarios) length += scenario.curve.length();
  return length * static_cast<int64_t>(policies.size());
}

int ComparisonPlan::looks() const {
  return std::max(1, max_rounds - std::max(rounds, static_cast<int>(kRoundsToJudge)) + 1);
}

absl::Status RunTrials(const apps::Application& application, const deploy::LogFolder& logs,
                       const ComparisonPlan& plan, Console& console, const std::atomic<bool>& stop,
                       PolicyComparison& comparison) {
  Rounds rounds(application, logs, plan, console, stop, comparison);
  const TimePoint begun = Now();
  for (int done = 0;; ++done) {
    if (done >= plan.rounds) {
      const std::string why = Unsettled(comparison);
      if (why.empty() || done >= plan.max_rounds) break;
      const Nanos took = (Now() - begun) / std::max(1, done);
      if (Now() - begun + took > plan.max_time) {
        console.Note("no further round: it would end after --max-minutes");
        break;
      }
      console.Note(absl::StrCat("round ", done + 1, " follows. ", why));
      comparison.rounds = done + 1;
    }
    if (absl::Status status = rounds.Run(done); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace curtail::tool
