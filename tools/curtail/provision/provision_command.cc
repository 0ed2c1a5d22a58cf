// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/provision/provision_command.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "curtail/base/clock.h"
#include "curtail/base/cpus.h"
#include "curtail/base/internal/output_path.h"
#include "curtail/base/strings.h"
#include "curtail/deploy/cpu_groups.h"
#include "curtail/deploy/deployment.h"
#include "curtail/exec/config.h"
#include "curtail/load/report/report.h"
#include "curtail/load/report/report_page.h"
#include "curtail/load/report/threshold.h"
#include "curtail/term/exit_code.h"
#include "tools/curtail/deploy/run_folder.h"
#include "tools/curtail/provision/provision_report.h"
#include "tools/curtail/provision/turn_runner.h"
#include "tools/curtail/term/flags.h"
#include "tools/curtail/up/up_reporter.h"

namespace curtail::tool {
namespace {

constexpr Nanos kEndTime = std::chrono::seconds(5);
constexpr double kFirstPart = 0.25;  // of the CPU time, shared out at the start

int Fail(Console& console, const absl::Status& status, const std::string& hint = {}) {
  if (absl::IsCancelled(status)) return kInterrupted;
  const bool flags =
      absl::IsInvalidArgument(status) || absl::IsNotFound(status) || absl::IsFailedPrecondition(status);
  console.Error(std::string(Message(status)),
                hint.empty() && absl::IsInvalidArgument(status) ? "see curtail provision --help" : hint);
  return flags ? kBadConfig : kFailed;
}

// The flags, checked.
struct ProvisionPlan {
  deploy::Topology topology;
  ProvisionOptions options;
  Allocation start;
  std::vector<Threshold> qos;
  Nanos within{0};
  Nanos time{0};
  Nanos start_timeout{0};
  std::string out, json, html;  // absolute

  bool cpu() const {
    return std::find(options.levers.begin(), options.levers.end(), Lever::kCpu) != options.levers.end();
  }
};

absl::Status ReadQos(const std::string& text, ProvisionPlan* plan) {
  absl::StatusOr<std::vector<Threshold>> qos = ParseThresholds(text);
  if (!qos.ok()) return absl::InvalidArgumentError(Join("--qos: ", Message(qos.status())));
  for (const Threshold& condition : *qos) {
    if (condition.metric.starts_with("p") && condition.op.starts_with("<"))
      plan->within = Nanos(static_cast<int64_t>(condition.limit));
  }
  if (plan->within <= Nanos(0)) {
    return absl::InvalidArgumentError("--qos needs a percentile, as in 'p99<50ms'");
  }
  plan->qos = *std::move(qos);
  return absl::OkStatus();
}

absl::Status ReadLevers(const std::string& text, Console& console, ProvisionPlan* plan) {
  const std::vector<std::string> names =
      text.empty() ? std::vector<std::string>{"cpu", "threads"} : absl::StrSplit(text, ',');
  plan->options.levers.clear();
  for (const std::string& name : names) {
    if (name == "threads") {
      plan->options.levers.push_back(Lever::kThreads);
    } else if (name != "cpu") {
      return absl::InvalidArgumentError(
          absl::StrCat("--levers: '", name, "'; write cpu, threads or cpu,threads"));
    } else if (const absl::Status groups = deploy::CpuGroups::Find().status(); groups.ok()) {
      plan->options.levers.push_back(Lever::kCpu);
    } else if (!text.empty()) {
      return groups;
    } else {
      console.Note(absl::StrCat(groups.message(), "\nonly the threads of services are provisioned"));
    }
  }
  return absl::OkStatus();
}

// The shares at the start, and what can be given.
absl::Status ReadShares(const ProvisionFlags& flags, ProvisionPlan* plan) {
  ProvisionOptions& options = plan->options;
  options.cpus = flags.cpus > 0 ? flags.cpus : UsableCpus();
  options.threads = flags.threads;
  options.factor = flags.step;
  options.bound = flags.bound_percent / 100;
  options.start_per_s = flags.load.rps;
  int all = 0;
  for (const deploy::ServiceSpec& s : plan->topology.services) {
    options.instances[s.name] = s.instances();
    for (const deploy::Wiring& call : s.calls) options.calls[s.name].push_back(call.service);
    if (s.external.empty()) all += s.instances();
  }
  const double part = std::max(
      deploy::kLeastCpu, std::floor(kFirstPart * options.cpus / all / deploy::kLeastCpu) * deploy::kLeastCpu);
  const double cpu = flags.cpu > 0 ? flags.cpu : part;
  if (plan->cpu() && cpu * all > options.cpus) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d instances with %.4g CPUs each need %.4g, and --cpus is %.4g; lower --cpu, or "
                        "raise --cpus (it may "
                        "exceed the machine)",
                        all, cpu, cpu * all, options.cpus));
  }
  for (const deploy::ServiceSpec& s : plan->topology.services) {
    TierShare& share = plan->start[s.name];
    if (!s.external.empty()) continue;
    if (plan->cpu()) share.cpu = cpu;
    // A policy changes the config by itself.
    if (s.IsHosted() && s.policy.empty()) share.config = s.config.empty() ? "auto" : s.config;
  }
  return absl::OkStatus();
}

std::string Absolute(const std::string& path) {
  return path.empty() ? path : std::filesystem::absolute(path).string();
}

absl::StatusOr<ProvisionPlan> PlanOf(const ProvisionFlags& flags, Console& console) {
  absl::StatusOr<deploy::Topology> topology =
      apps::LoadTopology(flags.application, deploy::ServicesAlone(flags.changes));
  if (!topology.ok()) return topology.status();
  ProvisionPlan plan{.topology = *std::move(topology)};
  absl::Status status = CheckNamed(flags.load, apps::IsApplication(flags.application));
  if (status.ok()) status = ReadQos(flags.qos, &plan);
  for (deploy::ServiceSpec& s : plan.topology.services) {
    if (!flags.config.empty() && s.IsHosted())
      status.Update(plan.topology.Set(s.name + ".config", flags.config));
    s.cpu = 0;  // each begins with an equal share
  }
  if (status.ok()) status = plan.topology.Check();
  if (status.ok()) status = ReadLevers(flags.levers, console, &plan);
  if (status.ok()) status = ReadShares(flags, &plan);
  for (const auto& [name, text, out] : {std::tuple("--time", &flags.time, &plan.time),
                                        {"--start-timeout", &flags.start_timeout, &plan.start_timeout}}) {
    const absl::StatusOr<Nanos> time = TimeLimitOf(name, *text);
    if (time.ok()) *out = *time;
    if (!time.ok() && status.ok()) status = time.status();
  }
  plan.out = Absolute(flags.out.empty() ? plan.topology.application + "-provisioned.yaml" : flags.out);
  plan.json = flags.json == "-" ? flags.json : Absolute(flags.json);
  plan.html = Absolute(flags.html);
  for (const std::string& path : {plan.out, plan.json, plan.html}) status.Update(CheckWritable(path));
  if (!status.ok()) return status;
  return plan;
}

std::string PlanText(const ProvisionFlags& flags, const ProvisionPlan& plan) {
  int instances = 0;
  for (const auto& [name, count] : plan.options.instances) instances += count;
  std::string text = absl::StrFormat("%d services, %d processes, within %s, from %.4g/s, at most %s\n",
                                     plan.options.instances.size(), instances, flags.qos,
                                     plan.options.start_per_s, flags.time);
  if (plan.cpu()) {
    double cpu = 0;
    for (const auto& [name, share] : plan.start) cpu = std::max(cpu, share.cpu);
    absl::StrAppendFormat(&text, "cpu        %.2f CPUs a process at the start, %.4g together at the end\n",
                          cpu, plan.options.cpus);
  }
  if (plan.options.levers.back() == Lever::kThreads) {
    absl::StrAppendFormat(&text,
                          "threads    the config of each service at the start%s, pools of %d at most\n",
                          flags.config.empty() ? "" : absl::StrCat(", ", flags.config), plan.options.threads);
  }
  return text;
}

// ----- the run -------------------------------------------------------------------------------------------------------

using Purpose = ProvisionTurn::Purpose;

// From the first turn to the last.
class Provisioning {
 public:
  Provisioning(const ProvisionFlags& flags, const ProvisionPlan& plan, TurnRunner& turns, Console& console,
               const std::atomic<bool>& stop)
      : flags_(flags),
        plan_(plan),
        turns_(turns),
        console_(console),
        stop_(stop),
        provisioner_(plan.options, plan.start) {}

  // Errors: what ended it early, but an interruption, which is no error. What was kept until then is written all the same.
  absl::Status Run() {
    const Deadline deadline = Deadline::In(plan_.time);
    absl::Status failed;
    while (const std::optional<ProvisionTurn> turn = provisioner_.Next()) {
      if (deadline.Expired()) provisioner_.Finish(ProvisionEnd::kTime);
      const std::optional<ProvisionTurn> now = provisioner_.Next();
      if (!now) break;
      absl::StatusOr<TurnResult> result = turns_.Run(*now, LabelOf(*now));
      if (!result.ok()) {
        provisioner_.Finish(ProvisionEnd::kInterrupted);
        if (!stop_.load(std::memory_order_relaxed)) failed = result.status();
        break;
      }
      const bool kept = now->purpose == Purpose::kSearch || now->purpose == Purpose::kFinal;
      if (kept && result->outcome == TrialOutcome::kMet) at_highest_ = result->tiers;
      Show(*now, *result);
      provisioner_.Tell(*result);
      ShowRounds();
    }
    console_.Progress({});
    absl::Status written = WriteOverlay();
    return failed.ok() ? written : failed;
  }

  ProvisionReport Report() const {
    return {.application = flags_.application,
            .qos = flags_.qos,
            .options = plan_.options,
            .start = plan_.start,
            .kept = provisioner_.kept(),
            .equal = provisioner_.equal_per_s() ? provisioner_.equal() : Allocation(),
            .rounds = provisioner_.rounds(),
            .highest_per_s = provisioner_.highest_per_s(),
            .equal_per_s = provisioner_.equal_per_s(),
            .end = provisioner_.end(),
            .reason = provisioner_.Describe(),
            .at_highest = at_highest_};
  }

 private:
  std::string LabelOf(const ProvisionTurn& turn) const {
    const size_t round = provisioner_.rounds().size();
    switch (turn.purpose) {
      case Purpose::kSearch:
        return absl::StrFormat("round %d: search at %.4g/s", round + 1, turn.rate_per_s);
      case Purpose::kWithout:
      case Purpose::kWith:
        return absl::StrFormat("round %d: %.4g/s %s the step", round, turn.rate_per_s,
                               turn.purpose == Purpose::kWith ? "with" : "without");
      case Purpose::kFinal:
        return absl::StrFormat("the end: search at %.4g/s", turn.rate_per_s);
      case Purpose::kEqual:
        return absl::StrFormat("equal shares: search at %.4g/s", turn.rate_per_s);
    }
    return "";
  }

  void Show(const ProvisionTurn& turn, const TurnResult& result) {
    const char* const word = result.outcome == TrialOutcome::kMet    ? "holds"
                             : result.outcome == TrialOutcome::kVoid ? "void"
                                                                     : "fails";
    console_.Note(absl::StrFormat("  %-36s %-5s  p99 %.1f ms, %.1f %% good, %.2f CPUs", LabelOf(turn), word,
                                  InMillis(turns_.p99()), 100 * result.good_share, turns_.cpus()));
  }

  // Says what a round came to once that is settled; a step that was kept is on the disk by then.
  void ShowRounds() {
    const ProvisionReport report = Report();
    const size_t settled = report.rounds.size() - (Judging() ? 1 : 0);
    for (; shown_ < settled; ++shown_) {
      console_.Note(RoundText(report, shown_));
      if (report.rounds[shown_].verdict != StepVerdict::kHelps) continue;
      if (absl::Status written = WriteOverlay(); !written.ok())
        console_.Error(std::string(Message(written)), "");
    }
  }
  bool Judging() const {
    const auto next = provisioner_.Next();
    return next && (next->purpose == Purpose::kWithout || next->purpose == Purpose::kWith);
  }
  absl::Status WriteOverlay() const {
    return WriteFile(plan_.out, OverlayYaml(Report(), plan_.topology, flags_.command));
  }

  const ProvisionFlags& flags_;
  const ProvisionPlan& plan_;
  TurnRunner& turns_;
  Console& console_;
  const std::atomic<bool>& stop_;
  Provisioner provisioner_;
  std::vector<TierLoad> at_highest_;
  size_t shown_ = 0;
};

// The requests to the application, which is up.
absl::StatusOr<TurnPlan> TurnsOf(const ProvisionFlags& flags, const ProvisionPlan& plan, Console& console) {
  LoadFlags load = flags.load;
  const std::string& name = plan.topology.application;
  load.targets = {
      apps::IsApplication(flags.application) ? name : absl::StrCat(name, "/", plan.topology.entry().name)};
  const absl::StatusOr<LoadTargets> targets = MakeTargets(load);
  if (!targets.ok()) return targets.status();
  absl::StatusOr<LoadSetup> setup = MakeSetup(load, *targets);
  if (!setup.ok()) return setup.status();
  if (absl::Status stream = SetStream(load, *targets, &setup->options); !stream.ok()) return stream;
  absl::StatusOr<WorkloadMaker> workloads = MakeWorkloads(load, *targets, !console.shows_progress());
  if (!workloads.ok()) return workloads.status();
  return TurnPlan{.application = name,
                  .options = std::move(setup->options),
                  .workloads = *std::move(workloads),
                  .seed = load.seed,
                  .qos = plan.qos,
                  .within = plan.within,
                  .length = FromSeconds(flags.seconds),
                  .cpu = plan.cpu()};
}

int Provision(const ProvisionFlags& flags, const ProvisionPlan& plan, deploy::Deployment& deployment,
              Console& console, const std::atomic<bool>& stop) {
  const ReportOrigin origin = [&] {
    ReportOrigin of = ThisOrigin(CURTAIL_VERSION);
    of.command = flags.command;
    return of;
  }();
  absl::StatusOr<TurnPlan> turn_plan = TurnsOf(flags, plan, console);
  if (!turn_plan.ok()) return Fail(console, turn_plan.status());
  TurnRunner turns(*std::move(turn_plan), deployment, console, stop);
  Provisioning provisioning(flags, plan, turns, console, stop);
  const absl::Status ran = provisioning.Run();
  const ProvisionReport report = provisioning.Report();
  if (!report.rounds.empty()) console.Print(ProvisionText(report));
  absl::Status written;
  const std::string json = ProvisionJson(report, origin);
  if (!plan.json.empty()) written.Update(console.DeliverTo(plan.json, json));
  if (!plan.html.empty()) written.Update(WriteFile(plan.html, ReportPage(json)));
  console.Print(absl::StrCat("overlay        ", plan.out, "\n"));
  if (!ran.ok()) return Fail(console, ran);
  if (!written.ok()) return Fail(console, written);
  if (stop.load(std::memory_order_relaxed)) return kInterrupted;
  return report.end == ProvisionEnd::kGenerator ? kVoid : report.highest_per_s ? kOk : kThreshold;
}

}  // namespace

int RunProvision(const ProvisionFlags& flags, Console& console, const std::atomic<bool>& stop) {
  if (internal::IsStdout(flags.json)) console.print_to_stderr();
  const absl::StatusOr<ProvisionPlan> plan = PlanOf(flags, console);
  if (!plan.ok()) return Fail(console, plan.status());
  console.PrintWrapped(absl::StrCat(console.Bold("provision"), "  ", plan->topology.application, ": ",
                                    PlanText(flags, *plan)));
  if (flags.dry_run) return kOk;
  if (absl::Status entered = deploy::EnterFolderOf(flags.application); !entered.ok())
    return Fail(console, entered);
  const absl::StatusOr<std::unique_ptr<RunFolder>> folder = RunFolder::Take(plan->topology.application);
  if (!folder.ok()) {
    return Fail(console, folder.status(),
                absl::StrCat("end it with: curtail down ", plan->topology.application));
  }
  UpReporter reporter(plan->topology, **folder, console);
  reporter.Begin();
  deploy::DeploymentOptions options;
  options.folder = (*folder)->path();
  options.admin = true;
  options.cpu_groups = plan->cpu();
  options.start_timeout = plan->start_timeout;
  options.observer = [&reporter](const deploy::Instance& instance) { reporter.Changed(instance); };
  const std::string logs = absl::StrCat("the logs are in ", (*folder)->path());
  const absl::StatusOr<std::unique_ptr<deploy::Deployment>> deployment =
      deploy::Deployment::Start(plan->topology, options, stop);
  if (!deployment.ok()) return Fail(console, deployment.status(), logs);
  const std::string& entry = (*deployment)->addresses().at(plan->topology.entry().name).front();
  console.Progress("all are ready; preparing");
  int code = kOk;
  if (absl::Status prepared = deploy::Prepare(plan->topology, entry, (*folder)->path(), stop);
      prepared.ok()) {
    reporter.Up(entry);
    code = Provision(flags, *plan, **deployment, console, stop);
  } else {
    code = Fail(console, prepared, logs);
  }
  reporter.Ending();
  console.Progress({});
  (*deployment)->Stop(kEndTime);
  return code;
}

}  // namespace curtail::tool
