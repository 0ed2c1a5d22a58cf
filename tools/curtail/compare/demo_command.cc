// SPDX-License-Identifier: Apache-2.0
//
// `curtail demo`: image search on this machine learns which threading model suits which load, and is
// then compared with configs and policies that do not.
#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "apps/shipped/application.h"
#include "curtail/adapt/machine.h"
#include "curtail/adapt/training.h"
#include "curtail/base/strings.h"
#include "curtail/load/report/report.h"
#include "curtail/term/console.h"
#include "curtail/term/exit_code.h"
#include "tools/curtail/compare/compare_command.h"
#include "tools/curtail/compare/compare_plan.h"
#include "tools/curtail/compare/demo_story.h"
#include "tools/curtail/compare/policy_judge.h"
#include "tools/curtail/compare/policy_trial.h"
#include "tools/curtail/load/load_results.h"
#include "tools/curtail/term/command.h"
#include "tools/curtail/term/flags.h"
#include "tools/curtail/term/validators.h"
#include "tools/curtail/train/subject.h"
#include "tools/curtail/train/subject_flags.h"
#include "tools/curtail/train/training_run.h"

namespace curtail::tool {
namespace {

struct DemoFlags {
  std::string configs = "auto,SIB1,SIP1,SDB1-16,SDB1-50";
  std::string loads = "200,500,1k,2k,4k";
  std::string policies;  // empty: those of DemoPolicies()
  apps::ApplicationOptions application{{.judged = 500}};
  std::string html = "curtail-demo.html";
  std::string json;
  std::string profile;  // keeps the profile here
  uint64_t seed = 1;
  bool quick = false;
};

constexpr std::string_view kNotKnownYet = "?";  // the service, before it runs

using std::chrono::milliseconds;

// Shorter than those of `curtail train`: to be shown, not to be kept.
absl::StatusOr<TrainingPlan> MakeTraining(const DemoFlags& flags) {
  TrainingPlan plan;
  plan.service = std::string(kNotKnownYet);
  plan.cell = milliseconds(flags.quick ? 200 : 220);
  plan.warmup = milliseconds(100);
  plan.between = milliseconds(20);
  plan.wanted_requests = 100;
  plan.max_stretch = 2;
  plan.seed = flags.seed;
  for (absl::string_view text : absl::StrSplit(flags.configs, ',')) {
    const absl::StatusOr<Config> config = Config::Parse(std::string(text));
    if (!config.ok()) return absl::InvalidArgumentError(Join("--configs: ", Message(config.status())));
    plan.configs.push_back(*config);
  }
  absl::StatusOr<std::vector<double>> loads = ParseRates(flags.loads);
  if (!loads.ok()) return absl::InvalidArgumentError(Join("--loads: ", Message(loads.status())));
  plan.loads = *std::move(loads);
  if (flags.quick && flags.loads == DemoFlags().loads) plan.loads = {200, 1000, 3000};
  if (absl::Status status = CheckPlan(plan); !status.ok()) return status;
  if (plan.loads.size() < 2) return absl::InvalidArgumentError("--loads: give two at least");
  return plan;
}

// A demo in progress.
class Demo {
 public:
  Demo(const DemoFlags& flags, TrainingPlan plan, const deploy::LogFolder& logs, Console& console,
       const std::atomic<bool>& stop)
      : flags_(flags),
        profile_path_(flags.profile.empty() ? absl::StrCat(logs.path(), "/profile.json") : flags.profile),
        training_plan_(std::move(plan)),
        logs_(logs),
        console_(console),
        stop_(stop) {}

  // Errors: what could not be started or measured; CANCELLED when interrupted.
  absl::Status Run();
  // Of what was compared until then.
  int Report() const { return ReportComparison(comparison_, flags_.json, flags_.html, console_); }
  bool compared() const { return !comparison_.runs.empty(); }

 private:
  absl::Status Train();
  absl::Status Compare();
  absl::StatusOr<ComparisonPlan> Plan();

  const DemoFlags& flags_;
  const std::string profile_path_;
  TrainingPlan training_plan_;
  const deploy::LogFolder& logs_;
  Console& console_;
  const std::atomic<bool>& stop_;
  std::unique_ptr<apps::Application> application_;
  Profile profile_;
  Profile blocking_;  // of a service whose libraries block
  std::string blocking_path_;
  PolicyComparison comparison_;
};

absl::Status Demo::Run() {
  console_.Note("reading the queries, and their true neighbours by brute force (kept for the next time) ...");
  absl::StatusOr<std::unique_ptr<apps::Application>> application =
      apps::MakeApplication("hdsearch", flags_.application);
  if (!application.ok()) return application.status();
  application_ = *std::move(application);
  if (stop_) return absl::CancelledError("interrupted");
  console_.Print(absl::StrCat(application_->description, "\n"));
  if (absl::Status status = Train(); !status.ok()) return status;
  return Compare();
}

absl::Status Demo::Train() {
  console_.Print(absl::StrFormat("\n%s  %s at %s requests a second, about %.0f s\n",
                                 console_.Bold("1. learn which config suits which load"), flags_.configs,
                                 absl::StrJoin(training_plan_.loads, ", "),
                                 static_cast<double>(training_plan_.ExpectedTime().count()) / 1e9));
  const absl::StatusOr<std::unique_ptr<deploy::Tiers>> tiers =
      deploy::Tiers::Start(application_->topology, logs_, stop_);
  if (!tiers.ok()) return tiers.status();
  const absl::StatusOr<std::unique_ptr<Subject>> subject = Subject::Over(*application_, **tiers, stop_);
  if (!subject.ok()) return subject.status();
  training_plan_.service = (*subject)->service();
  Training training(training_plan_);
  const absl::Status trained =
      RunTraining(**subject, training, console_, [](const ProfileCell&) { return absl::OkStatus(); });
  console_.Print(TrainingGrid(training));
  if (!trained.ok()) return trained;
  profile_ = training.MakeProfile(CURTAIL_VERSION, ThisMachineFingerprint(),
                                  absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone()));
  console_.Print(absl::StrFormat("%s%s %.4f over %d judged replies\n", ProfileSummary(profile_),
                                 (*subject)->score().name, (*subject)->score().mean(),
                                 (*subject)->score().count));
  const absl::StatusOr<std::string> json = ProfileJson(profile_);
  return json.ok() ? WriteFile(profile_path_, *json) : json.status();
}

absl::StatusOr<ComparisonPlan> Demo::Plan() {
  ComparisonPlan plan;
  plan.rounds = plan.max_rounds = flags_.quick ? 1 : static_cast<int>(kRoundsToJudge);
  plan.seed = flags_.seed;
  plan.options.profile = profile_path_;
  if (flags_.policies.empty()) {
    plan.policies = DemoPolicies(profile_, blocking_, blocking_path_);
    if (flags_.quick) plan.policies.resize(std::min<size_t>(plan.policies.size(), 3));
  } else {
    for (const std::string& label : SplitPolicies(flags_.policies))
      plan.policies.push_back(ParsePolicyChoice(label));
  }
  for (const PolicyChoice& policy : plan.policies) {
    if (absl::Status status = CheckPolicy(policy, &profile_); !status.ok()) return status;
  }
  const absl::StatusOr<LoadRange> range = RangeOf(profile_);
  if (!range.ok()) return absl::FailedPreconditionError(range.status().message());
  if (range->high_per_s <= range->low_per_s) {
    return absl::FailedPreconditionError(
        "no config kept up with more than the lowest load: is the machine busy? Try again, or give lower "
        "--loads");
  }
  absl::StatusOr<Scenario> scenario =
      FlashCrowdScenario(range->low_per_s, range->high_per_s, milliseconds(800), milliseconds(500),
                         milliseconds(1300), milliseconds(300));
  if (!scenario.ok()) return scenario.status();
  plan.scenarios.push_back(*std::move(scenario));
  return plan;
}

absl::Status Demo::Compare() {
  blocking_ = WithoutFibers(profile_);
  if (!blocking_.cells.empty()) {
    blocking_path_ = absl::StrCat(logs_.path(), "/blocking.json");
    const absl::StatusOr<std::string> json = ProfileJson(blocking_);
    const absl::Status written = json.ok() ? WriteFile(blocking_path_, *json) : json.status();
    if (!written.ok()) return written;
  }
  const absl::StatusOr<ComparisonPlan> plan = Plan();
  if (!plan.ok()) return plan.status();
  comparison_ = DescribeComparison(*plan);
  comparison_.application = application_->name;
  const deploy::ServiceSpec& leaf = *application_->topology.Find("leaf");
  comparison_.data = absl::StrFormat("%s, %d leaves (%s)", application_->topology.variables.at("data"),
                                     leaf.instances(), leaf.config);
  comparison_.profile = "trained by this demo";
  console_.Print(absl::StrFormat("\n%s  %s; %d round%s of %.0f s of load\n",
                                 console_.Bold("2. adaptive against static, in a flash crowd"),
                                 absl::StrJoin(comparison_.policies, ", "), plan->rounds,
                                 plan->rounds == 1 ? "" : "s", InSeconds(plan->RoundLength())));
  const absl::Status status = RunTrials(*application_, logs_, *plan, console_, stop_, comparison_);
  comparison_.interrupted = !status.ok();
  BelieveIfNoneCanBe(comparison_);
  for (std::string& line : DemoStory(comparison_, profile_)) comparison_.notes.push_back(std::move(line));
  return status;
}

std::string HintFor(const absl::Status& status, const DemoFlags& flags) {
  // Whatever else is missing says itself where it was looked for.
  if (absl::StrContains(status.message(), "fashion-mnist") && flags.application.data.empty()) {
    return "apt-get install dataset-fashion-mnist, or --corpus synthetic:N=60000,D=128";
  }
  return absl::IsInvalidArgument(status) ? "see curtail demo --help" : "";
}

// Runs it. Returns the exit code. No process that it starts is left when it returns, or when this process
// dies.
int RunDemo(const DemoFlags& flags, Console& console, const std::atomic<bool>& stop) {
  absl::StatusOr<TrainingPlan> plan = MakeTraining(flags);
  if (!plan.ok()) {
    console.Error(std::string(Message(plan.status())), HintFor(plan.status(), flags));
    return kBadConfig;
  }
  absl::Status writable = CheckPaths({flags.html, flags.json}, console);
  writable.Update(CheckWritable(flags.profile));
  if (!writable.ok()) {
    console.Error(std::string(Message(writable)), "");
    return kBadConfig;
  }
  deploy::LogFolder logs;
  if (logs.path().empty()) {
    console.Error("cannot make a folder for logs", "set TMPDIR to a folder that can be written");
    return kFailed;
  }
  console.Print(absl::StrCat(console.Bold("demo"), "  image search that chooses its own threading\n"));
  Demo demo(flags, *std::move(plan), logs, console, stop);
  const absl::Status status = demo.Run();
  if (absl::IsCancelled(status)) {
    console.Print("\nINTERRUPTED: the results are partial\n");
    if (demo.compared()) demo.Report();
    return kInterrupted;
  }
  if (status.ok()) return demo.Report();
  console.Error(std::string(Message(status)), HintFor(status, flags));
  if (absl::IsNotFound(status) || absl::IsInvalidArgument(status)) return kBadConfig;
  if (demo.compared()) demo.Report();  // what was measured is not lost
  logs.Keep();
  console.Note(absl::StrCat("the logs of the processes are in ", logs.path()));
  return kFailed;
}

constexpr char kDemoExamples[] =
    R"(Starts HDSearch (4 leaves and a mid-tier) on this machine, measures some configs of the mid-tier at rising loads, and
then serves a flash crowd: under mutune, the policy that goes by these measurements, and under auto, the config with which
servers begin. It serves the same crowd as a service whose libraries block and which therefore cannot use fibers: under
mutune with the synchronous configs alone, and under those of them that are best at the lowest and at the highest load.
It prints the CPU of each in cores, and says with an interval of 95 % whether a win is believed, or which static config
is right. Every process it starts ends with it.

Examples:
  curtail demo                                    # under 3 minutes; writes curtail-demo.html
  curtail demo --quick --json demo.json           # about 30 s
  curtail demo --configs SIP1,SDB1-50 --loads 50,500,2k

Exit codes: 0 ok, 1 a process failed, 104 bad flags, a missing program or data set, 105 interrupted.)";

}  // namespace

Command AddDemo(CLI::App& app) {
  const auto f = std::make_shared<DemoFlags>();
  CLI::App* demo = app.add_subcommand("demo", "See image search on this machine choose its own threading");
  demo->footer(kDemoExamples);
  demo->add_option("--configs", f->configs, "Threading models of the mid-tier, with pool sizes")
      ->capture_default_str();
  demo->add_option("--loads", f->loads, "Requests a second at which they are measured")
      ->capture_default_str();
  demo->add_option("--policies", f->policies, "What is compared; see curtail compare --help");
  demo->add_option("--seed", f->seed, "Of the arrivals")->check(NotNegative())->capture_default_str();
  demo->add_option("--html", f->html, "Write the report here")->capture_default_str()->take_last();
  demo->add_option("--json", f->json, "Write the results here as JSON; - is the standard output");
  demo->add_option("--profile", f->profile, "Keep the profile here");
  demo->add_flag("--quick", f->quick, "Three loads, the first three policies, one round");
  AddApplicationFlags(*demo, &f->application);
  return {demo, [f](const Invocation& given) { return RunDemo(*f, given.console, given.stop); }};
}

}  // namespace curtail::tool
